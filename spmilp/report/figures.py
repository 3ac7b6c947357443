"""Static figures for papers, drawn by matplotlib; the same figure gives the same bytes.

Colours can be told apart with any colour vision, and in print. Kinds of buffers have colours of
Okabe and Ito, "Color Universal Design" (2008). Operators have the light ones, on which black text
can be read, and parts of the chain and transfers the contrasting ones of Paul Tol, "Colour Schemes"
(SRON/EPS/TN/09-002, 2021). Operators are more than there are colours: they come round with another
hatching.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from spmilp import quantities
from spmilp.commands.order import Activity
from spmilp.errors import ArgumentError, MissingExtraError
from spmilp.explaining.chain import AnalysedPlan, Part
from spmilp.explaining.text import network_name
from spmilp.files import write_atomically
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import BufferKind, Problem
from spmilp.quantities import size
from spmilp.report.search_log import LogEntry
from spmilp.report.summary import UNITS
from spmilp.units import TaskIdx

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SCRATCH = "scratch"

KIND_COLOURS: dict[str, str] = {
    BufferKind.INPUT: "#56B4E9",
    BufferKind.WEIGHT: "#E69F00",
    BufferKind.INTERMEDIATE: "#009E73",
    BufferKind.PARTIAL: "#F0E442",
    BufferKind.OUTPUT: "#0072B2",
    SCRATCH: "#999999",
}
"""A colour for each kind of buffer, and for scratch bytes."""

OPERATOR_COLOURS = (
    *("#77AADD", "#EE8866", "#44BB99", "#EEDD88", "#FFAABB", "#BBCC33", "#99DDFF", "#AAAA00"),
)
"""Colours of fused operators, in the order in which they come in a problem."""

HATCHES = ("", "////", "\\\\\\\\", "xxxx")
"""Put over the colours of operators, each time that they come round."""

PART_COLOURS: dict[Part, str] = {
    Part.COMPUTE: "#BBBBBB",
    Part.LOAD: "#004488",
    Part.STORE: "#BB5566",
    Part.MOVE: "#DDAA33",
    Part.UNUSED: "#FFFFFF",
}
"""A colour for each direction of transfers, and for what else the critical chain does."""


def operators_of(problem: Problem) -> dict[TaskIdx, str]:
    """Return the fused operator of each task, or its own name where it is of none."""
    return {task.index: task.name if task.tile is None else task.tile.of for task in problem.tasks}


WIDTH = 11.0
"""Inches of a figure."""

LETTERS_OF_A_LEGEND = 120
"""Letters that fit side by side below a figure."""


def grid_of_axes(
    count: int, columns: int, heights: Sequence[float], *, shares_x: bool = True
) -> "tuple[Figure, list[Axes]]":
    """Return a figure with ``count`` axes in rows of ``columns``.

    Parameters
    ----------
    heights
        Inches of each row.
    shares_x
        The axes have one axis of time in common.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed: pip install 'spmilp[plot]'"
        ) from error

    figure = Figure(figsize=(WIDTH, sum(heights) + 1.0), layout="constrained")
    grid = figure.subplots(
        len(heights), columns, sharex=shares_x, squeeze=False, height_ratios=heights
    )
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def name_colours(
    figure: "Figure",
    styles: Iterable[tuple[str, str, str]],
    heading: str = "",
    where: Literal["outside lower center", "outside upper right"] = "outside lower center",
) -> None:
    """Add a legend of ``(name, colour, hatching)``, as many side by side as the longest allows."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour, hatch=hatch or None, edgecolor="black", linewidth=0.4, label=name)
        for name, colour, hatch in styles
    ]
    if handles:
        longest = max(len(str(handle.get_label())) for handle in handles) + 6
        figure.legend(
            handles=handles,
            loc=where,
            ncols=max(1, min(len(handles), LETTERS_OF_A_LEGEND // longest)),
            title=heading or None,
            fontsize="small",
        )


Box: TypeAlias = tuple[float, float, float, float]
"""``(start, end, low, high)`` of a rectangle."""


def draw_boxes(axis: "Axes", boxes: Sequence[Box], hatch: str = "", **look: Any) -> None:
    """Draw rectangles as one collection."""
    from matplotlib.collections import PolyCollection

    corners = [
        [(start, low), (end, low), (end, high), (start, high)] for start, end, low, high in boxes
    ]
    drawn = PolyCollection(corners, **look)
    drawn.set_hatch(hatch)
    axis.add_collection(drawn)


def without_markup(name: str) -> str:
    """Return a name from a model as plain text: matplotlib reads ``$`` as mathematics."""
    return name.replace("$", r"\$")


def shortened(name: str, longest: int = 32) -> str:
    """Return a name without its middle: the beginning says what it is, the end which tile."""
    if len(name) <= longest:
        return name
    head = longest // 2
    return f"{name[:head]}…{name[head + 1 - longest :]}"


def title(problem: Problem) -> str:
    """Say which network is mapped onto which machine."""
    return without_markup(f"{network_name(problem)} on {problem.machine.name}")


NO_DATE: dict[str, dict[str, str | None]] = {
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
    ".png": {},
}
"""Metadata that keep the date out of a file, by its ending."""

DOTS_PER_INCH = 150


def write_figure(figure: "Figure", file: Path) -> Path:
    """Write a figure as its file's ending says.

    Raises
    ------
    ArgumentError
        If the ending is none of ``.pdf``, ``.png`` and ``.svg``.
    FileError
        If the file cannot be written.
    """
    require_known_ending(file)
    import matplotlib as mpl

    made = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "spmilp"}):
        ending = file.suffix.lower()
        figure.savefig(made, format=ending[1:], dpi=DOTS_PER_INCH, metadata=NO_DATE[ending])
    write_atomically(file, made.getvalue())
    return file


def require_known_ending(file: Path) -> None:
    """Raise an ``ArgumentError`` unless a figure can be written in a file of that name."""
    if file.suffix.lower() not in NO_DATE:
        raise ArgumentError(f"{file}: a figure is written as {', '.join(NO_DATE)}, a page as .html")


ROW, ROW_BESIDE_OTHERS = 0.17, 0.09
"""Inches of a row of a plan that is alone, and of one of several."""

LETTER = 0.15
"""Inches between the names of rows at least."""

MOST_NAMED = 40
"""Operators that a legend names."""


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


Style: TypeAlias = tuple[str, str]
"""A colour, and a hatching or nothing."""


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
    operators: dict[str, Style] = {}
    for name in (name for each in shown for name in operators_of(each.problem).values()):
        turn, colour = divmod(len(operators), len(OPERATOR_COLOURS))
        operators.setdefault(name, (OPERATOR_COLOURS[colour], HATCHES[turn % len(HATCHES)]))
    panels = [
        _Panel(each, subject, label, rows)
        for each in shown
        for subject in [AnalysedPlan(problem=each.problem, plan=each.plan)]
        for label, rows in zip(("core", "DMA channel"), rows_of(subject), strict=True)
        if rows
    ]
    is_alone = len(shown) == 1
    tall = ROW if is_alone else ROW_BESIDE_OTHERS
    heights = [min(max(1.0, tall * len(panel.rows)), 12.0) for panel in panels]
    figure, axes = grid_of_axes(len(panels), 1, heights)
    heading = f"{title(shown[0].problem)}{_cycles(shown[0]) * is_alone}"
    figure.suptitle(heading, x=0.01, horizontalalignment="left")
    for axis, panel in zip(axes, panels, strict=True):
        _draw_rows(axis, panel, operators, tall)
        if not is_alone and panel.label == "core":
            caption = without_markup(f"{panel.shown.label}{_cycles(panel.shown)}")
            axis.set_title(caption, loc="left", fontsize="small")
    last = max(each.plan.claim.makespan for each in shown)
    axes[-1].set_xlim(0, max(last, 1))
    axes[-1].set_xlabel("cycle")
    used = {part for panel in panels for part in panel.subject.parts}
    parts = [
        (part.words, PART_COLOURS[part], "")
        for part in Part
        if part in used and part is not Part.COMPUTE
    ]
    name_colours(figure, parts, "transfers", "outside upper right")
    named = [(without_markup(shortened(name)), *operators[name]) for name in operators]
    left_out = len(named) - MOST_NAMED
    heading = f"operators (and {left_out} more)" if left_out > 0 else "operators"
    name_colours(figure, named[:MOST_NAMED], heading)
    return figure


def _cycles(shown: Shown) -> str:
    return f": {shown.plan.claim.makespan:,} cycles"


Rows: TypeAlias = dict[str, list[Activity]]
"""The activities of cores, or of channels, by name."""


class _Panel(NamedTuple):
    """The rows of the cores, or of the channels, of one plan."""

    shown: Shown
    subject: AnalysedPlan
    label: str
    rows: Rows


def rows_of(subject: AnalysedPlan) -> tuple[Rows, Rows]:
    """Return what each core does, and each channel that moves something, in their order."""
    machine, plan = subject.problem.machine, subject.plan
    cores: Rows = {core.name: [] for core in machine.cores}
    for placement in plan.placements:
        cores[machine.cores[placement.core].name].append(placement.task)
    channels: Rows = {}
    for move in sorted(plan.transfers, key=lambda each: (each.engine, each.channel)):
        name = f"{machine.engines[move.engine].name}:{move.channel}"
        channels.setdefault(name, []).append(len(plan.placements) + move.index)
    return cores, channels


def _draw_rows(axis: "Axes", panel: _Panel, operators: Mapping[str, Style], tall: float) -> None:
    """Draw the rows, and frame what is of the critical chain."""
    subject, names = panel.subject, operators_of(panel.shown.problem)
    framed = {link.activity for link in subject.chain} if panel.shown.chain else set()
    boxes: defaultdict[Style, list[Box]] = defaultdict(list)
    frames: list[Box] = []
    for height, activities in enumerate(panel.rows.values()):
        for activity in activities:
            part, name = subject.parts[activity], names.get(activity, "")
            style = operators[name] if part is Part.COMPUTE else (PART_COLOURS[part], "")
            span = subject.starts[activity], subject.ends[activity]
            boxes[style].append((*span, height - 0.4, height + 0.4))
            frames += boxes[style][-1:] if activity in framed else ()
    for (colour, hatch), mine in boxes.items():
        draw_boxes(axis, mine, hatch, facecolors=colour, edgecolors="black", linewidths=0.2)
    if frames:
        draw_boxes(axis, frames, facecolors="none", edgecolors="black", linewidths=1.6)
    step = max(-(-len(panel.rows) // 72), round(LETTER / tall))
    labels = [without_markup(name) for name in panel.rows]
    axis.set_yticks(range(0, len(labels), step), labels=labels[::step], fontsize=6)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_ylabel(panel.label)


LIMIT, PEAK, OUTLINE = "#D55E00", "#AA3377", "#000000"
"""Colours of the capacity, of the peak, and of outlines and live bytes."""

LETTERS_PER_INCH = 17
"""Letters of a label per inch."""

SHORTEST_LABEL = 6
LABEL_HEIGHT = 0.06
"""A rectangle is labelled when so many letters fit into it, and it has this share of the height."""


def memory_map(
    problem: Problem, plan: Plan, memories: Sequence[str] | None = None, *, zoom: bool = True
) -> "Figure":
    """Draw residencies as rectangles of time by address, one axes for each memory.

    Each axes shows the capacity line, reserved bytes (hatched), borders of banks where there are
    few, residencies coloured by kind of buffer, the peak, and the curve of live bytes, which no
    packing of these lifetimes can be below.

    Parameters
    ----------
    memories
        Names of the on-chip memories to draw; by default every scratchpad in which something lies.
    zoom
        End the axis of addresses above the highest residency; ``False``: at the capacity.

    Raises
    ------
    ValueError
        If a name is not one of the machine's on-chip memories.
    MissingExtraError
        If matplotlib is not installed.
    """
    residencies: list[list[Residency]] = [[] for _ in problem.machine.memories]
    for residency in plan.residencies:
        residencies[residency.memory].append(residency)
    drawn = _chosen(problem, memories, residencies)
    columns = 1 if len(drawn) <= 3 else 2 if len(drawn) <= 8 else 4
    rows = -(-len(drawn) // columns)
    figure, axes = grid_of_axes(len(drawn), columns, [3.4 if columns == 1 else 2.1] * rows)
    figure.suptitle(f"{title(problem)}: memory map")
    for position, (axis, memory) in enumerate(zip(axes, drawn, strict=True)):
        here = residencies[memory.index]
        peak = max((residency.offset + residency.bytes for residency in here), default=0)
        top = max(peak, 1) if zoom else memory.size or max(peak, 1)
        axis.set_xlim(0, max(plan.claim.makespan, 1))
        axis.set_ylim(0, top * 1.06)
        axis.set_yticks([0, top / 2, top], labels=["0", size(top // 2), size(top)])
        _draw_limits(axis, memory)
        _draw_residencies(axis, problem, here, WIDTH / columns * 0.85 * LETTERS_PER_INCH)
        if here:
            cycles, totals = live_bytes(here)
            axis.step(cycles, totals, where="post", color=OUTLINE, linewidth=1.0)
            axis.axhline(peak, color=PEAK, linewidth=1.0, linestyle="--")
        of = "" if memory.size is None else f" of {size(memory.size)}, {peak / memory.size:.0%}"
        caption = without_markup(f"{memory.name}: peak {size(peak)}{of}")
        axis.set_title(caption, fontsize="small", loc="left")
        if position % columns == 0:
            axis.set_ylabel("address")
        if position + columns >= len(drawn):
            axis.set_xlabel("cycle")
    shown = {_what(problem, each)[1] for memory in drawn for each in residencies[memory.index]}
    kinds = [(kind, colour, "") for kind, colour in KIND_COLOURS.items() if kind in shown]
    name_colours(figure, kinds)
    return figure


def _chosen(
    problem: Problem, names: Sequence[str] | None, residencies: Sequence[Sequence[Residency]]
) -> list[Memory]:
    if names is None:
        spms = problem.machine.spms
        return [memory for memory in spms if residencies[memory.index]] or list(spms[:1])
    on_chip = [memory for memory in problem.machine.memories if memory.kind is not MemoryKind.DRAM]
    known = {memory.name: memory for memory in on_chip}
    for name in names:
        if name not in known:
            raise ValueError(f"no on-chip memory {name}; the machine has {', '.join(known)}")
    return [known[name] for name in names]


def _draw_limits(axis: "Axes", memory: Memory) -> None:
    """Draw the capacity, the bytes that no plan may touch, and the borders of the banks."""
    if memory.size is None:
        return
    axis.axhline(memory.size, color=LIMIT, linewidth=1.4)
    for taken in memory.reserved:
        axis.axhspan(taken.start, taken.end, facecolor="0.9", edgecolor="0.5", hatch="///")
    if memory.banks is not None and 1 < memory.banks <= 8:
        for bank in range(1, memory.banks):
            border = memory.size * bank / memory.banks
            axis.axhline(border, color="0.75", linewidth=0.5, linestyle=":")


def _draw_residencies(
    axis: "Axes", problem: Problem, residencies: Sequence[Residency], letters: float
) -> None:
    """Draw residencies; ``letters`` fit side by side into the axes."""
    makespan, top = axis.get_xlim()[1], axis.get_ylim()[1]
    boxes, colours = [], []
    for residency in residencies:
        low, high = residency.offset, residency.offset + residency.bytes
        name, kind = _what(problem, residency)
        boxes.append((residency.start, residency.end, low, high))
        colours.append(KIND_COLOURS[kind])
        room = int((residency.end - residency.start) / makespan * letters)
        if room >= SHORTEST_LABEL and residency.bytes > LABEL_HEIGHT * top:
            middle = (residency.start + residency.end) / 2, (low + high) / 2
            label = without_markup(shortened(name, room))
            axis.text(*middle, label, fontsize=6, ha="center", va="center", clip_on=True)
    draw_boxes(axis, boxes, facecolors=colours, edgecolors=OUTLINE, linewidths=0.25)


def _what(problem: Problem, residency: Residency) -> tuple[str, str]:
    """Return the name and the kind of what lies there."""
    if residency.slice is None:
        return SCRATCH, SCRATCH
    buffer = problem.buffers[problem.slices[residency.slice].buffer]
    return buffer.name, buffer.kind


def gap_over_time(problem: Problem, log: Sequence[LogEntry]) -> "Figure":
    """Draw the best objective and the best bound over the seconds of a search.

    Raises
    ------
    ArgumentError
        If nothing is logged.
    MissingExtraError
        If matplotlib is not installed.
    """
    if not log:
        raise ArgumentError(
            "nothing is known of the search: spmilp solve keeps log.jsonl beside the plan"
        )
    figure, (axis,) = grid_of_axes(1, 1, [4.0])
    quantity = problem.objective.first
    gap = log[-1].gap
    ended = "" if gap is None else f", gap {quantities.percent(gap)} at the end"
    figure.suptitle(f"{title(problem)}: {str(quantity).replace('_', ' ')}{ended}")
    end = log[-1].seconds
    for name, colour, points in (
        ("incumbent", PART_COLOURS[Part.LOAD], [(each.seconds, each.incumbent) for each in log]),
        ("bound", PART_COLOURS[Part.STORE], [(each.seconds, each.bound) for each in log]),
    ):
        known = [(seconds, value) for seconds, value in points if value is not None]
        if known:
            seconds = [second for second, _ in known] + [end]
            values = [value for _, value in known] + [known[-1][1]]
            axis.step(seconds, values, where="post", color=colour, linewidth=2, label=name)
    both = [each for each in log if each.gap is not None]
    axis.fill_between(
        [each.seconds for each in both] + [end] * bool(both),
        [each.bound or 0 for each in (*both, *both[-1:])],
        [each.incumbent or 0 for each in (*both, *both[-1:])],
        step="post",
        color="0.92",
        label="gap",
    )
    axis.set_xlim(0, max(end, 0.001))
    axis.set_xlabel("seconds")
    axis.set_ylabel(UNITS[quantity])
    axis.legend(loc="upper right")
    return figure
