"""``spmilp explain``: why a plan is as slow as it is."""

from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.valid_plan import read_valid_plan


def explain(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="OUTDIR|PLAN.json", help="A plan, or its folder.", show_default=False
        ),
    ],
    problem: arguments.ProblemFile = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Say why a plan takes its cycles: critical chain, what binds each phase, idle cores.

    Exit code 7 when the plan is invalid.
    """
    said = read_valid_plan(plan, problem, None).explain()
    if as_json:
        out.print_json(said.data)
    else:
        out.print_line(said.text)
