"""``spmilp report``: one page that shows a plan."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp import amounts
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import writing
from spmilp.cli.valid_plan import folder_of, read_valid_plan


def report(
    plan: arguments.PlanFile,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            dir_okay=False,
            help="Where to write it.",
            show_default="report.html beside the plan",
        ),
    ] = None,
    problem: arguments.ProblemFile = None,
    log: arguments.LogFile = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Show a plan in one page: what bounds it, when and where everything runs and lies, and why.

    The page needs no network and no other file. Exit code 7 when the plan is
    invalid.
    """
    result = read_valid_plan(plan, problem, log)
    target = file or folder_of(plan) / "report.html"
    with writing(target):
        page = result.report(target)
    if as_json:
        out.print_json({"file": str(target), "bytes": len(page.html.encode())})
    else:
        out.print_line(f"written: {target} ({amounts.size(len(page.html.encode()))})")
