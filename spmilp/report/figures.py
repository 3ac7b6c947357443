"""Static figures for papers, drawn by matplotlib; the same figure gives the same bytes.

Colours can be told apart with any colour vision, and in print. Kinds of buffers have colours of
Okabe and Ito, "Color Universal Design" (2008). Operators have the light ones, on which black text
can be read, and parts of the chain and transfers the contrasting ones of Paul Tol, "Colour Schemes"
(SRON/EPS/TN/09-002, 2021). Operators are more than there are colours: they come round with another
hatching.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from spmilp import quantities
from spmilp.errors import ArgumentError, MissingExtraError
from spmilp.explaining.chain import AnalysedPlan, Part, causes_of, critical_chain
from spmilp.explaining.text import network_name
from spmilp.explaining.usage import traffic_of
from spmilp.files import write_atomically
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import BufferKind, Problem
from spmilp.quantities import size
from spmilp.report.answer_table import UNITS
from spmilp.report.search_log import LogEntry
from spmilp.units import Bytes, Cycles, TaskIdx

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

CONTRASTING = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
"""Colours of Okabe and Ito for lines, which are thin."""

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
"""That fit side by side below a figure."""


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
"""What keeps the date out of a file, by its ending."""

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
    channels = [row for panel in panels if not panel.of_cores for row in panel.rows.values()]
    used = {what for row in channels for _, _, what in row}
    parts = [(part.words, PART_COLOURS[part], "") for part in Part if part in used]
    name_colours(figure, parts, "transfers", "outside upper right")
    named = [(without_markup(shortened(name)), *operators[name]) for name in operators]
    left_out = len(named) - MOST_NAMED
    heading = f"operators (and {left_out} more)" if left_out > 0 else "operators"
    name_colours(figure, named[:MOST_NAMED], heading)
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
    subject = AnalysedPlan(problem=problem, plan=plan)
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
    boxes: defaultdict[str, list[Box]] = defaultdict(list)
    for height, row in enumerate(panel.rows.values()):
        for start, end, what in row:
            boxes[what].append((start, end, height - 0.4, height + 0.4))
    for what, mine in boxes.items():
        colour, hatch = panel.styles[what]
        draw_boxes(axis, mine, hatch, facecolors=colour, edgecolors="black", linewidths=0.2)
    step = max(-(-len(panel.rows) // 72), round(LETTER / tall))
    names = [without_markup(name) for name in panel.rows]
    axis.set_yticks(range(0, len(names), step), labels=names[::step], fontsize=6)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_ylabel("core" if panel.of_cores else "DMA channel")


def _frame_chain(axis: "Axes", panel: _Panel) -> None:
    """Frame the activities of the critical chain that lie in these rows."""
    plan, machine = panel.shown.plan, panel.shown.problem.machine
    subject = AnalysedPlan(problem=panel.shown.problem, plan=plan)
    heights = {name: height for height, name in enumerate(panel.rows)}
    frames = []
    for link in critical_chain(subject, causes_of(subject)).links:
        move = subject.transfer(link.activity)
        if (move is None) == panel.of_cores:
            if move is None:
                name = machine.cores[plan.placements[link.activity].core].name
            else:
                name = f"{machine.engines[move.engine].name}:{move.channel}"
            frames.append((link.start, link.end, heights[name] - 0.4, heights[name] + 0.4))
    if frames:
        draw_boxes(axis, frames, facecolors="none", edgecolors="black", linewidths=1.6)


LIMIT, PEAK, OUTLINE = "#D55E00", "#AA3377", "#000000"
"""Colours of the capacity, of the peak, and of outlines and live bytes."""

LETTERS_PER_INCH = 17
"""Of a label."""

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
    residencies = _by_memory(problem, plan)
    drawn = _chosen(problem, memories, residencies)
    columns = 1 if len(drawn) <= 3 else 2 if len(drawn) <= 8 else 4
    rows = -(-len(drawn) // columns)
    figure, axes = grid_of_axes(len(drawn), columns, [3.4 if columns == 1 else 2.1] * rows)
    figure.suptitle(f"{title(problem)}: memory map")
    for position, (axis, memory) in enumerate(zip(axes, drawn, strict=True)):
        here = residencies[memory.index]
        peak = max((residency.offset + residency.bytes for residency in here), default=0)
        axis.set_xlim(0, max(plan.claim.makespan, 1))
        _scale_addresses(axis, max(peak, 1) if zoom else memory.size or max(peak, 1))
        _draw_limits(axis, memory)
        _draw_residencies(axis, problem, here, WIDTH / columns * 0.85 * LETTERS_PER_INCH)
        _draw_usage(axis, here, peak)
        axis.set_title(without_markup(_caption(memory, peak)), fontsize="small", loc="left")
        if position % columns == 0:
            axis.set_ylabel("address")
        if position + columns >= len(drawn):
            axis.set_xlabel("cycle")
    shown = {_what(problem, each)[1] for memory in drawn for each in residencies[memory.index]}
    kinds = [(kind, colour, "") for kind, colour in KIND_COLOURS.items() if kind in shown]
    name_colours(figure, kinds)
    return figure


def _by_memory(problem: Problem, plan: Plan) -> list[list[Residency]]:
    by_memory: list[list[Residency]] = [[] for _ in problem.machine.memories]
    for residency in plan.residencies:
        by_memory[residency.memory].append(residency)
    return by_memory


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


def _scale_addresses(axis: "Axes", top: Bytes) -> None:
    axis.set_ylim(0, top * 1.06)
    axis.set_yticks([0, top / 2, top], labels=["0", size(top // 2), size(top)])


def _caption(memory: Memory, peak: Bytes) -> str:
    if memory.size is None:
        return f"{memory.name}: peak {size(peak)}"
    share = peak / memory.size
    return f"{memory.name}: peak {size(peak)} of {size(memory.size)}, {share:.0%}"


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


def _draw_usage(axis: "Axes", residencies: Sequence[Residency], peak: Bytes) -> None:
    """Draw the peak of the addresses, and the live bytes as a curve."""
    if not residencies:
        return
    cycles, totals = live_bytes(residencies)
    axis.step(cycles, totals, where="post", color=OUTLINE, linewidth=1.0)
    axis.axhline(peak, color=PEAK, linewidth=1.0, linestyle="--")


def _what(problem: Problem, residency: Residency) -> tuple[str, str]:
    """Return the name and the kind of what lies there."""
    if residency.slice is None:
        return SCRATCH, SCRATCH
    buffer = problem.buffers[problem.slices[residency.slice].buffer]
    return buffer.name, buffer.kind


MOST = 40
"""Tensors that get a bar of their own; the others share one."""


def traffic(problem: Problem, plan: Plan) -> "Figure":
    """Draw a bar for each tensor: bytes loaded and stored, and a line at what is compulsory.

    Tensors with the most beyond that come first.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    rows = traffic_of(AnalysedPlan(problem=problem, plan=plan))
    bars = [(row.tensor, row.loaded, row.stored, row.compulsory) for row in rows[:MOST]]
    if len(rows) > MOST:
        loads, stores, compulsory = zip(
            *((row.loaded, row.stored, row.compulsory) for row in rows[MOST:]), strict=True
        )
        bars.append((f"{len(rows) - MOST} more", sum(loads), sum(stores), sum(compulsory)))
    figure, (axis,) = grid_of_axes(1, 1, [max(1.2, 0.2 * len(bars))])
    total, least = plan.claim.dram_traffic, sum(row.compulsory for row in rows)
    of_compulsory = f", of which {quantities.size(least)} are compulsory"
    figure.suptitle(f"{title(problem)}: {quantities.size(total)} of DRAM traffic{of_compulsory}")
    places = range(len(bars))
    loaded = [bar[1] / 1024 for bar in bars]
    axis.barh(places, loaded, color=PART_COLOURS[Part.LOAD], label="loaded")
    stored = [bar[2] / 1024 for bar in bars]
    axis.barh(places, stored, left=loaded, color=PART_COLOURS[Part.STORE], label="stored")
    axis.barh(
        places,
        [bar[3] / 1024 for bar in bars],
        facecolor="none",
        edgecolor="black",
        linewidth=1.6,
        label="compulsory",
    )
    names = [without_markup(shortened(bar[0], 48)) for bar in bars]
    axis.set_yticks(places, labels=names, fontsize="small")
    axis.set_ylim(len(bars) - 0.4, -0.6)
    axis.set_xlabel("KiB")
    axis.legend(loc="lower right")
    return figure


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
            "nothing is known of the search: spmilp solve --log-file FILE.jsonl writes its log"
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
