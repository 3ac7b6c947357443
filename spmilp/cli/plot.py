"""``spmilp plot``: static figures of plans."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import writing
from spmilp.cli.valid_plan import read_valid_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spmilp.result import Result


class Kind(StrEnum):
    """What a figure shows."""

    TIMELINE = "timeline"
    MEMORY = "memory"
    TRAFFIC = "traffic"
    GAP = "gap"
    COMPARE = "compare"


def plot(
    plans: Annotated[
        list[Path],
        typer.Argument(
            metavar="PLAN.json...",
            help="The plan, or its folder; several for --kind compare.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.pdf|.png|.svg",
            dir_okay=False,
            help="Where to write it.",
            show_default=False,
        ),
    ],
    kind: Annotated[Kind, typer.Option(help="What to show.")] = Kind.TIMELINE,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A memory to draw (repeat); for --kind memory.",
            show_default="every scratchpad that is used",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Memories up to their capacity, not to what is used.")
    ] = False,
    chain: Annotated[
        bool, typer.Option("--chain", help="Frame the critical chain in timelines.")
    ] = False,
    problem: arguments.ProblemFile = None,
    log: arguments.LogFile = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Draw a plan, or several on one axis of cycles, for a paper.

    timeline: cores and DMA channels. memory: what lies where, and when. traffic:
    loads and stores of each tensor beside what is compulsory. gap: incumbent and
    bound over the time of the search. compare: the timelines of several plans.
    """
    from spmilp.report.plots.files import require_known_ending, write_figure

    require_known_ending(file)
    if len(plans) > 1 and kind is not Kind.COMPARE:
        raise typer.BadParameter(f"--kind {kind} shows one plan, and {len(plans)} are given")
    first, *others = [read_valid_plan(plan, problem, log) for plan in plans]
    if kind is Kind.MEMORY:
        figure = _memory_map(first, memory, whole=whole)
    elif kind is Kind.TRAFFIC:
        figure = first.traffic()
    elif kind is Kind.GAP:
        figure = first.convergence()
    else:
        figure = first.timeline(beside=others, chain=chain)
    with writing(file):
        write_figure(figure, file)
    if as_json:
        out.print_json({"file": str(file)})
    else:
        out.print_line(f"written: {file}")


def _memory_map(result: "Result", names: list[str] | None, *, whole: bool) -> "Figure":
    try:
        return result.memory_map(names, zoom=not whole)
    except ValueError as error:
        raise typer.BadParameter(f"--memory: {error}") from error
