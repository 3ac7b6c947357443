"""``spmilp report``: one page that shows a plan, or a figure of it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out
from spmilp.cli.interrupts import writing
from spmilp.cli.output import folder_of, read_valid_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spmilp.result import Result


class Kind(StrEnum):
    """What a figure shows."""

    TIMELINE = "timeline"
    MEMORY = "memory"
    TRAFFIC = "traffic"
    GAP = "gap"


def report(
    plans: Annotated[
        list[Path],
        typer.Argument(
            metavar="PLAN.json...",
            help="The plan, or its folder; several for timelines on one axis of cycles.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html|.pdf|.png|.svg",
            dir_okay=False,
            help="Where to write the page, or a figure.",
            show_default="report.html beside the plan",
        ),
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option(help="What a figure shows.", show_default="timeline")
    ] = None,
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
    """Show a plan in one page, or in a figure for a paper.

    The page says what bounds the plan, when and where everything runs and lies, and
    why; it needs no network and no other file. Figures: timeline of cores and DMA
    channels; memory, what lies where and when; traffic, loads and stores of each tensor
    beside what is compulsory; gap, incumbent and bound over the time of the search.
    Exit code 7 when a plan is invalid.
    """
    target = file or folder_of(plans[0]) / "report.html"
    if target.suffix.lower() in (".html", ".htm"):
        if len(plans) > 1 or kind is not None:
            asked = f"{len(plans)} plans" if len(plans) > 1 else f"--kind {kind}"
            raise typer.BadParameter(f"a page shows all of one plan: {asked} needs -o FILE.pdf")
        result = read_valid_plan(plans[0], problem, log)
        with writing(target):
            size = len(result.report(target).html.encode())
        written, said = {"file": str(target), "bytes": size}, f" ({quantities.size(size)})"
    else:
        from spmilp.report.figures import require_known_ending, write_figure

        require_known_ending(target)
        kind = kind or Kind.TIMELINE
        if len(plans) > 1 and kind is not Kind.TIMELINE:
            raise typer.BadParameter(f"--kind {kind} shows one plan, and {len(plans)} are given")
        figure = _figure(
            [read_valid_plan(p, problem, log) for p in plans], kind, memory, whole, chain
        )
        with writing(target):
            write_figure(figure, target)
        written, said = {"file": str(target)}, ""
    if as_json:
        out.print_json(written)
    else:
        out.print_line(f"written: {target}{said}")


def _figure(
    results: "list[Result]", kind: Kind, memories: list[str] | None, whole: bool, chain: bool
) -> "Figure":
    first, *others = results
    if kind is Kind.TRAFFIC:
        return first.traffic()
    if kind is Kind.GAP:
        return first.convergence()
    if kind is Kind.TIMELINE:
        return first.timeline(beside=others, chain=chain)
    try:
        return first.memory_map(memories, zoom=not whole)
    except ValueError as error:
        raise typer.BadParameter(f"--memory: {error}") from error
