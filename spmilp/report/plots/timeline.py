"""The timeline: what each core and DMA channel does, and when; several plans on one axis."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from spmilp.analysis.causes import causes_of
from spmilp.analysis.chain import critical_chain
from spmilp.analysis.subject import Part, Subject
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.report.palette import (
    HATCHES,
    OPERATOR_COLOURS,
    PART_COLOURS,
    operators_of,
)
from spmilp.report.plots.figures import (
    grid_of_axes,
    legend_below,
    shortened,
    title,
    without_markup,
)
from spmilp.report.words import PARTS
from spmilp.units import Cycles

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, ROW_BESIDE_OTHERS = 0.17, 0.09
"""Inches of a row of a plan that is alone, and of one of several."""

LETTER = 0.15
"""Inches between the names of rows at least."""

MOST_NAMED = 40
"""Operators that a legend names."""

Row: TypeAlias = list[tuple[Cycles, Cycles, str]]
"""``(start, end, what)`` of what one core or channel does: an operator, or a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A plan to be drawn.

    Parameters
    ----------
    label
        What tells it from the others, its solver for example.
    chain
        Whether its critical chain is to be framed, which takes as long as analysing the plan.
    """

    problem: Problem
    plan: Plan
    label: str = ""
    chain: bool = False


def timeline(shown: Sequence[Shown]) -> "Figure":
    """Draw tasks per core and transfers per DMA channel over time.

    Each operator has a colour, or a colour and a hatching, in all plans the same; transfers are
    coloured by where they go. Cores that do nothing keep their rows, so that idleness is seen;
    channels that move nothing are left out. All plans have one axis of cycles.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    operators = _styles(name for each in shown for name in operators_of(each.problem).values())
    panels = [panel for each in shown for panel in _panels(each, operators)]
    is_alone = len(shown) == 1
    tall = ROW if is_alone else ROW_BESIDE_OTHERS
    figure, axes = grid_of_axes(len(panels), 1, [_height(panel.rows, tall) for panel in panels])
    heading = title(shown[0].problem) + (f": {_cycles(shown[0])}" if is_alone else "")
    figure.suptitle(heading, x=0.01, horizontalalignment="left")
    for axis, panel in zip(axes, panels, strict=True):
        _draw_rows(axis, panel, tall)
        if not is_alone and panel.of_cores:
            label = without_markup(f"{panel.shown.label}: {_cycles(panel.shown)}")
            axis.set_title(label, loc="left", fontsize="small")
        if panel.shown.chain:
            _frame_chain(axis, panel)
    last = max(each.plan.claim.makespan for each in shown)
    axes[-1].set_xlim(0, max(last, 1))
    axes[-1].set_xlabel("cycle")
    _name_transfers(figure, panels)
    _name_operators(figure, operators)
    return figure


def rows_of_cores(problem: Problem, plan: Plan) -> dict[str, Row]:
    """Return what each core runs, by name, in order of core."""
    operators = operators_of(problem)
    rows: dict[str, Row] = {core.name: [] for core in problem.machine.cores}
    for placement in plan.placements:
        row = rows[problem.machine.cores[placement.core].name]
        row.append((placement.start, placement.end, operators[placement.task]))
    return rows


def rows_of_channels(problem: Problem, plan: Plan) -> dict[str, Row]:
    """Return what each channel that moves something does, by name."""
    subject = Subject(problem=problem, plan=plan)
    by_channel: defaultdict[tuple[int, int], Row] = defaultdict(list)
    parts = subject.parts[len(plan.placements) :]
    for move, part in zip(plan.transfers, parts, strict=True):
        by_channel[move.engine, move.channel].append((move.start, move.end, part))
    engines = problem.machine.engines
    return {
        f"{engines[engine].name}:{channel}": by_channel[engine, channel]
        for engine, channel in sorted(by_channel)
    }


Style: TypeAlias = tuple[str, str]
"""A colour, and a hatching or nothing."""

OF_PARTS: dict[str, Style] = {part: (colour, "") for part, colour in PART_COLOURS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """The rows of the cores, or of the channels, of one plan."""

    shown: Shown
    of_cores: bool
    rows: dict[str, Row]
    styles: Mapping[str, Style]


def _panels(shown: Shown, operators: Mapping[str, Style]) -> Iterator[_Panel]:
    rows = rows_of_cores(shown.problem, shown.plan)
    yield _Panel(shown=shown, of_cores=True, rows=rows, styles=operators)
    channels = rows_of_channels(shown.problem, shown.plan)
    if channels:
        yield _Panel(shown=shown, of_cores=False, rows=channels, styles=OF_PARTS)


def _cycles(shown: Shown) -> str:
    return f"{shown.plan.claim.makespan:,} cycles"


def _styles(operators: Iterable[str]) -> dict[str, Style]:
    """Give each operator a colour and a hatching, in the order in which they come."""
    styles = {}
    for number, operator in enumerate(dict.fromkeys(operators)):
        turn, colour = divmod(number, len(OPERATOR_COLOURS))
        styles[operator] = OPERATOR_COLOURS[colour], HATCHES[turn % len(HATCHES)]
    return styles


def _height(rows: Mapping[str, Row], tall: float) -> float:
    return min(max(1.0, tall * len(rows)), 12.0)


def _draw_rows(axis: "Axes", panel: _Panel, tall: float) -> None:
    from matplotlib.collections import PolyCollection

    boxes: defaultdict[str, list[list[tuple[float, float]]]] = defaultdict(list)
    for height, row in enumerate(panel.rows.values()):
        for start, end, what in row:
            boxes[what].append(_corners(start, end, height))
    for what, corners in boxes.items():
        colour, hatch = panel.styles[what]
        bars = PolyCollection(corners, facecolors=colour, edgecolors="black", linewidths=0.2)
        bars.set_hatch(hatch)
        axis.add_collection(bars)
    step = max(-(-len(panel.rows) // 72), round(LETTER / tall))
    names = [without_markup(name) for name in panel.rows]
    axis.set_yticks(range(0, len(names), step), labels=names[::step], fontsize=6)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_ylabel("core" if panel.of_cores else "DMA channel")


def _corners(start: Cycles, end: Cycles, height: int) -> list[tuple[float, float]]:
    low, high = height - 0.4, height + 0.4
    return [(start, low), (end, low), (end, high), (start, high)]


def _frame_chain(axis: "Axes", panel: _Panel) -> None:
    """Frame the activities of the critical chain that lie in these rows."""
    from matplotlib.collections import PolyCollection

    plan, machine = panel.shown.plan, panel.shown.problem.machine
    subject = Subject(problem=panel.shown.problem, plan=plan)
    heights = {name: height for height, name in enumerate(panel.rows)}
    frames = []
    for link in critical_chain(subject, causes_of(subject)).links:
        move = subject.transfer(link.activity)
        if (move is None) != panel.of_cores:
            continue
        if move is None:
            name = machine.cores[plan.placements[link.activity].core].name
        else:
            name = f"{machine.engines[move.engine].name}:{move.channel}"
        frames.append(_corners(link.start, link.end, heights[name]))
    if frames:
        axis.add_collection(
            PolyCollection(frames, facecolors="none", edgecolors="black", linewidths=1.6)
        )


def _name_transfers(figure: "Figure", panels: Sequence[_Panel]) -> None:
    """Name the directions of transfers above the axes."""
    from matplotlib.patches import Patch

    channels = [row for panel in panels if not panel.of_cores for row in panel.rows.values()]
    used = {what for row in channels for _, _, what in row}
    moves = [part for part in Part if part in used]
    if moves:
        figure.legend(
            handles=[Patch(facecolor=PART_COLOURS[part], label=PARTS[part]) for part in moves],
            loc="outside upper right",
            ncols=len(moves),
            title="transfers",
            fontsize="small",
        )


def _name_operators(figure: "Figure", operators: Mapping[str, Style]) -> None:
    """Name the operators below the axes."""
    from matplotlib.patches import Patch

    handles: list[Artist] = [
        Patch(
            facecolor=colour,
            hatch=hatch or None,
            edgecolor="black",
            linewidth=0.4,
            label=without_markup(shortened(name)),
        )
        for name, (colour, hatch) in list(operators.items())[:MOST_NAMED]
    ]
    left_out = len(operators) - len(handles)
    legend_below(figure, handles, f"operators (and {left_out} more)" if left_out else "operators")
