"""Static figures for papers, drawn by matplotlib; the same figure gives the same bytes.

Colours can be told apart with any colour vision, and in print. Kinds of buffers have colours of
Okabe and Ito, "Color Universal Design" (2008). Operators have the light ones, on which black text
can be read, and parts of the chain and transfers the contrasting ones of Paul Tol, "Colour Schemes"
(SRON/EPS/TN/09-002, 2021). Operators are more than there are colours: they come round with another
hatching.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from spmilp.commands.order import Activity
from spmilp.errors import ArgumentError, MissingExtraError
from spmilp.explaining.chain import AnalysedPlan, Part
from spmilp.explaining.text import network_name
from spmilp.files import write_atomically
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Plan, Residency
from spmilp.plan.turns import residencies_of_period
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import BufferKind, Problem
from spmilp.quantities import percent, size
from spmilp.report.search_log import LogEntry
from spmilp.report.summary import UNITS
from spmilp.units import Cycles

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

LIMIT, PEAK, OUTLINE = "#D55E00", "#AA3377", "#000000"
"""Colours of the capacity, of the peak, and of outlines and live bytes."""

MOST_STEPS = 1000
"""Steps of a curve of live bytes; one of more would be a black area, and is left out."""

WIDTH = 11.0
"""Inches of a figure."""


def grid_of_axes(count: int, columns: int, heights: Sequence[float]) -> "tuple[Figure, list[Axes]]":
    """Return a figure with ``count`` axes in rows of so many inches, and one axis of time.

    Raises a ``MissingExtraError`` if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed: pip install 'spmilp[plot]'"
        ) from error

    figure = Figure(figsize=(WIDTH, sum(heights) + 1.0), layout="constrained")
    grid = figure.subplots(len(heights), columns, sharex=True, squeeze=False, height_ratios=heights)
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
    """Add a legend of ``(name, colour, hatching)``, four side by side."""
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour, hatch=hatch or None, edgecolor="black", linewidth=0.4, label=name)
        for name, colour, hatch in styles
    ]
    columns = min(len(handles), 4)
    if handles:
        figure.legend(
            handles=handles, loc=where, ncols=columns, title=heading or None, fontsize="small"
        )


Box: TypeAlias = tuple[float, float, float, float]
"""``(start, end, low, high)`` of a rectangle."""

NARROW = 0.004
"""Share of the axis of time up to which a black outline would hide a rectangle's colour."""


def draw_boxes(
    axis: "Axes", boxes: Sequence[Box], colours: Sequence[str], makespan: Cycles, hatch: str = ""
) -> None:
    """Draw rectangles; narrow ones are outlined in their own colour, so that they are seen."""
    from matplotlib.collections import PolyCollection

    for is_wide in (False, True):
        mine = [n for n, b in enumerate(boxes) if (b[1] - b[0] > NARROW * makespan) == is_wide]
        if mine:
            faces = [colours[number] for number in mine]
            corners = [corners_of(boxes[number]) for number in mine]
            drawn = PolyCollection(corners, facecolors=faces, linewidths=0.25)
            drawn.set_edgecolor(OUTLINE if is_wide else faces)
            drawn.set_hatch(hatch if is_wide else "")
            axis.add_collection(drawn)


def corners_of(box: Box) -> list[tuple[float, float]]:
    """Return the corners of a rectangle."""
    start, end, low, high = box
    return [(start, low), (end, low), (end, high), (start, high)]


def without_markup(name: str) -> str:
    """Return a name from a model as plain text: matplotlib reads ``$`` as mathematics."""
    return name.replace("$", r"\$")


def shortened(name: str) -> str:
    """Return a name without its middle: the beginning says what it is, the end which tile."""
    return name if len(name) <= 28 else f"{name[:14]}…{name[-13:]}"


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


def require_known_ending(file: Path) -> None:
    """Raise an ``ArgumentError`` unless a figure can be written in a file of that name."""
    if file.suffix.lower() not in NO_DATE:
        raise ArgumentError(f"{file}: a figure is written as {', '.join(NO_DATE)}, a page as .html")


def write_figure(figure: "Figure", file: Path) -> Path:
    """Write a figure as its file's ending says, which is a known one."""
    import matplotlib as mpl

    made, ending = BytesIO(), file.suffix.lower()
    with mpl.rc_context({"svg.hashsalt": "spmilp"}):
        figure.savefig(made, format=ending[1:], dpi=DOTS_PER_INCH, metadata=NO_DATE[ending])
    write_atomically(file, made.getvalue())
    return file


ROW, ROW_BESIDE_OTHERS = 0.17, 0.09
"""Inches of a row of a plan that is alone, and of one of several."""

LETTER = 0.15
"""Inches between the names of rows at least."""

MOST_NAMED = 40
"""Operators that a legend names."""

Style: TypeAlias = tuple[str, str]
"""A colour, and a hatching or nothing."""


def timeline(shown: Sequence[tuple[str, AnalysedPlan]], *, chain: bool = False) -> "Figure":
    """Draw tasks per core and transfers per DMA channel over time, of plans with their labels.

    Of a stream, one period is drawn; what began in an earlier one says how many before.

    Each operator has a colour, or a colour and a hatching, in all plans the same; transfers are
    coloured by where they go. Cores that do nothing keep their rows, so that idleness is seen;
    channels that move nothing are left out. All plans have one axis of cycles. With ``chain`` their
    critical chains are framed.
    """
    operators: dict[str, Style] = {}
    for name in (name for _, each in shown for name in each.operators):
        turn, colour = divmod(len(operators), len(OPERATOR_COLOURS))
        operators.setdefault(name, (OPERATOR_COLOURS[colour], HATCHES[turn % len(HATCHES)]))
    rows = [rows_of(subject) for _, subject in shown]
    tall = ROW if len(shown) == 1 else ROW_BESIDE_OTHERS
    heights = [min(max(1.0, tall * len(mine)), 24.0) for mine in rows]
    figure, axes = grid_of_axes(len(shown), 1, heights)
    figure.suptitle(title(shown[0][1].problem), x=0.01, horizontalalignment="left")
    for axis, (label, subject), mine in zip(axes, shown, rows, strict=True):
        framed = {link.activity for link in subject.chain} if chain else set[Activity]()
        _draw_rows(axis, subject, [activities for _, activities in mine], operators, framed)
        step = max(-(-len(mine) // 144), round(LETTER / tall))
        labels = [without_markup(name) for name, _ in mine]
        axis.set_yticks(range(0, len(labels), step), labels=labels[::step], fontsize=6)
        axis.set_ylim(len(labels) - 0.4, -0.6)
        claim = subject.plan.claim
        said = f"{claim.makespan:,} cycles"
        if claim.period is not None:
            said = f"period {claim.period:,} cycles, latency {said}"
        caption = without_markup(f"{label}: {said}")
        axis.set_title(caption, loc="left", fontsize="small")
    lengths = (each.plan.claim.of(Quantity.PERIOD) for _, each in shown)
    axes[-1].set_xlim(0, max(1, *lengths))
    axes[-1].set_xlabel("cycle")
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    used = {part for _, subject in shown for part in subject.parts} - {Part.COMPUTE}
    parts = [(part.words, PART_COLOURS[part], "") for part in Part if part in used]
    name_colours(figure, parts, "transfers", "outside upper right")
    named = [(without_markup(shortened(name)), *style) for name, style in operators.items()]
    left_out = len(named) - MOST_NAMED
    heading = f"operators (and {left_out} more)" if left_out > 0 else "operators"
    name_colours(figure, named[:MOST_NAMED], heading)
    return figure


def rows_of(subject: AnalysedPlan) -> list[tuple[str, list[Activity]]]:
    """Return what each core does, then each channel that moves something, with their names."""
    machine, plan = subject.problem.machine, subject.plan
    cores = [(core.name, list[Activity]()) for core in machine.cores]
    for placement in plan.placements:
        cores[placement.core][1].append(placement.task)
    channels: dict[str, list[Activity]] = {}
    for move in sorted(plan.transfers, key=lambda each: (each.engine, each.channel)):
        name = f"{machine.engines[move.engine].name}:{move.channel}"
        channels.setdefault(name, []).append(len(plan.placements) + move.index)
    return [*cores, *channels.items()]


def _draw_rows(
    axis: "Axes",
    subject: AnalysedPlan,
    rows: Sequence[Sequence[Activity]],
    operators: Mapping[str, Style],
    framed: Set[Activity],
) -> None:
    """Draw the rows, and frame what is of the critical chain; what is near in a row, together."""
    from matplotlib.collections import PolyCollection

    makespan = subject.plan.claim.of(Quantity.PERIOD)
    boxes: defaultdict[Style, list[Box]] = defaultdict(list)
    frames: list[Box] = []
    for height, activities in enumerate(rows):
        every = ((subject.starts[a], subject.ends[a], a) for a in activities)
        shown = ((turn, a) for start, end, a in every for turn in subject.turns(start, end))
        for turn, activity in sorted(shown):
            style = PART_COLOURS[subject.parts[activity]], ""
            if subject.parts[activity] is Part.COMPUTE:
                style = operators[subject.operators[activity]]
            box: Box = (turn.start, turn.end, height - 0.4, height + 0.4)
            if turn.behind and box[1] - box[0] > 3 * NARROW * makespan:
                axis.text(max(0, turn.start), height, f" −{turn.behind}", fontsize=5, va="center")
            if activity in framed:
                _add(frames, box, NARROW * makespan)
            move = subject.transfer(activity)
            if move is not None:
                # Paler below, what is no bytes: set-up and latency.
                _add(boxes[f"{style[0]}55", ""], box, -1)
                later = subject.starts[activity] - turn.start
                first, sent = subject.sends[move.index]
                box = (first - later, sent - later, *box[2:])
            # A narrow task alone would have no hatching.
            is_narrow = style[1] and box[1] - box[0] <= NARROW * makespan
            _add(boxes[style], box, NARROW * makespan / 4 if is_narrow else -1)
    # Overlapped latencies first: the longer names of colours are the transparent ones.
    for (colour, hatch), mine in sorted(boxes.items(), key=lambda each: -len(each[0][0])):
        draw_boxes(axis, mine, [colour] * len(mine), makespan, hatch)
    if frames:
        corners = list(map(corners_of, frames))
        chain = PolyCollection(corners, facecolors="none", edgecolors=OUTLINE, linewidths=1.6)
        axis.add_collection(chain)


def _add(boxes: list[Box], box: Box, near: float) -> None:
    """Add a rectangle, or lengthen the last one if that ends so near before it in its row."""
    if boxes and boxes[-1][2] == box[2] and box[0] - boxes[-1][1] <= near:
        box = (boxes.pop()[0], *box[1:])
    boxes.append(box)


def memory_map(
    problem: Problem, plan: Plan, memories: Sequence[str] | None = None, *, zoom: bool = True
) -> "Figure":
    """Draw residencies as rectangles of time by address, one axes for each memory.

    Each axes shows the capacity line, reserved bytes (hatched), residencies coloured by kind of
    buffer, the peak, and the curve of live bytes, which no packing of these lifetimes can be below
    (unless it has too many steps).
    Parameters are those of :meth:`spmilp.Result.memory_map`.
    """
    residencies: list[list[Residency]] = [[] for _ in problem.machine.memories]
    for residency, _ in residencies_of_period(plan):
        residencies[residency.memory].append(residency)
    length = plan.claim.of(Quantity.PERIOD)
    drawn = _chosen(problem, memories, residencies)
    columns = 1 if len(drawn) <= 3 else 2 if len(drawn) <= 8 else 4
    rows = -(-len(drawn) // columns)
    figure, axes = grid_of_axes(len(drawn), columns, [3.4 if columns == 1 else 2.1] * rows)
    figure.suptitle(f"{title(problem)}: memory map")
    for position, (axis, memory) in enumerate(zip(axes, drawn, strict=True)):
        here = residencies[memory.index]
        peak = max((residency.offset + residency.bytes for residency in here), default=0)
        top = max(peak, 1) if zoom else memory.size or max(peak, 1)
        axis.set_xlim(0, max(length, 1))
        axis.set_ylim(0, top * 1.06)
        axis.set_yticks([0, top / 2, top], labels=["0", size(top // 2), size(top)])
        _draw_limits(axis, memory)
        boxes = [(each.start, each.end, each.offset, each.offset + each.bytes) for each in here]
        colours = [KIND_COLOURS[_kind(problem, each)] for each in here]
        draw_boxes(axis, boxes, colours, length)
        if here:
            cycles, totals = live_bytes(here)
            if len(cycles) <= MOST_STEPS:
                axis.step(cycles, totals, where="post", color=OUTLINE, linewidth=1.0)
            axis.axhline(peak, color=PEAK, linewidth=1.0, linestyle="--")
        of = f" of {size(memory.size)}, {percent(peak / memory.size)}" if memory.size else ""
        caption = without_markup(f"{memory.name}: peak {size(peak)}{of}")
        axis.set_title(caption, fontsize="small" if columns < 4 else 6.3, loc="left")
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.locator_params(axis="x", nbins=8 // columns)
        if position % columns == 0:
            axis.set_ylabel("address")
        if position + columns >= len(drawn):
            axis.set_xlabel("cycle")
    shown = {_kind(problem, each) for memory in drawn for each in residencies[memory.index]}
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
    """Draw the capacity, and the bytes that no plan may touch."""
    if memory.size is None:
        return
    axis.axhline(memory.size, color=LIMIT, linewidth=1.4)
    for taken in memory.reserved:
        axis.axhspan(taken.start, taken.end, facecolor="0.9", edgecolor="0.5", hatch="///")


def _kind(problem: Problem, residency: Residency) -> str:
    if residency.slice is None:
        return SCRATCH
    return problem.buffers[problem.slices[residency.slice].buffer].kind


def gap_over_time(problem: Problem, log: Sequence[LogEntry]) -> "Figure":
    """Draw incumbent and bound over the seconds of a search, of which something must be logged."""
    if not log:
        raise ArgumentError(
            "nothing is known of the search: spmilp solve keeps log.jsonl beside the plan"
        )
    from pandas import DataFrame

    figure, (axis,) = grid_of_axes(1, 1, [4.0])
    quantity = problem.objective.first
    DataFrame(log).astype({"incumbent": float, "bound": float}).plot(
        ax=axis,
        x="seconds",
        y=["incumbent", "bound"],
        color=[PART_COLOURS[Part.LOAD], PART_COLOURS[Part.STORE]],
        drawstyle="steps-post",
        marker=".",
        ylabel=UNITS[quantity],
        title=f"{title(problem)}: {str(quantity).replace('_', ' ')}",
    )
    axis.yaxis.set_major_formatter("{x:,.0f}")
    return figure
