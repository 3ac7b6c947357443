"""``spmilp explain``: why a plan is as slow as it is, or why there is none, and what helps."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.output import print_stacked, read_valid_plan
from spmilp.errors import ExitCode

CODES = {"infeasible": ExitCode.INFEASIBLE, "unknown": ExitCode.LIMIT_WITHOUT_PLAN}
"""Exit codes by what is found; where there is a plan, all is done."""


def explain(
    source: Annotated[
        str,
        typer.Argument(
            metavar="OUTDIR|PLAN.json|PROBLEM.json|MODEL.onnx",
            help="A plan or its folder; a problem file; or a model (onnx:NAME for a graph of the "
            "onnx package).",
            show_default=False,
        ),
    ],
    machine: arguments.Machine = None,
    dim: arguments.Dim = None,
    problem: arguments.ProblemFile = None,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit",
            parser=arguments.duration,
            metavar="DURATION",
            help="No further change of the machine is tried after this: 20s, 5m, none.",
            show_default="20s",
        ),
    ] = 20.0,
    what_if: Annotated[
        float | None,
        typer.Option(
            "--what-if",
            parser=arguments.duration,
            metavar="DURATION",
            help="Of a plan: search so long, with a little more of each of what binds it, for what "
            "that saves.",
            show_default="no search",
        ),
    ] = None,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups", help="Of a model: its operators, groups and tiles, and what bounds them."
        ),
    ] = False,
    passes: arguments.Passes = "",
    as_json: arguments.AsJson = False,
) -> None:
    """Say why a plan takes its cycles; or why there is none, and which changes help.

    Of a plan: its critical chain, what binds each phase, idle cores. Of a problem or a model that
    does not fit: what is in the way, required and available bytes, and the smallest changes with
    which a plan was found. Of one that fits, a quick plan is explained; with --groups, nothing
    is solved.

    Exit code 4 or 5 without a plan, as of solve; 7 when a plan is invalid.
    """
    from spmilp.explaining.explain import explain as explained

    dimensions = arguments.dimensions(dim or ())
    if groups:
        _print_groups(source, machine, dimensions, passes, as_json=as_json)
        return
    if _is_plan(source):
        said = explained(read_valid_plan(Path(source), problem, None), what_if=what_if)
    else:
        said = explained(
            source,
            machine,
            dim=dimensions,
            passes=passes,
            time_limit=time_limit,
            what_if=what_if,
        )
    if as_json:
        out.print_json(said.data)
    else:
        out.print_line(said.text)
    raise typer.Exit(CODES.get(str(said.data["status"]), ExitCode.OK))


def _is_plan(source: str) -> bool:
    """Say whether a file is a plan; what is no folder and no JSON is a model."""
    if not source.endswith(".json"):
        return Path(source).is_dir()
    try:
        content = json.loads(Path(source).read_bytes())
    except (OSError, ValueError):
        return False  # whoever reads it as a problem says what is wrong
    return isinstance(content, dict) and content.get("format") == "spmilp-plan"


def _print_groups(
    model: str,
    machine: str | None,
    dim: Mapping[str, int],
    passes: str,
    *,
    as_json: bool,
) -> None:
    from spmilp.explaining.groups import HEADINGS, inspect_network
    from spmilp.source import DEFAULT_MACHINE, load
    from spmilp.tile_selection.first_choice import choose_tilings

    network, target = load(model, machine or DEFAULT_MACHINE, dim=dim, passes=passes)
    tilings = choose_tilings(network, target.machine)
    found = inspect_network(network, target.machine, tilings)
    if as_json:
        out.print_json(found.data())
        return
    to = out.console()
    to.print(f"{found.network} on {found.machine}", markup=False, style="bold")
    to.print(out.table(("", ""), found.figures(), show_headings=False))
    to.print()
    print_stacked(to, HEADINGS, found.rows(), numbers=range(3, 10))
