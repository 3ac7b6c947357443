"""The memory map: what lies where in each scratchpad, and when."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.quantities import size
from spmilp.report.palette import KIND_COLOURS, SCRATCH
from spmilp.report.plots.figures import (
    WIDTH,
    grid_of_axes,
    legend_of_colours,
    shortened,
    title,
    without_markup,
)
from spmilp.units import Bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    shown = {
        _kind_of(problem, residency) for memory in drawn for residency in residencies[memory.index]
    }
    legend_of_colours(figure, KIND_COLOURS, shown)
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
    from matplotlib.collections import PolyCollection

    makespan, top = axis.get_xlim()[1], axis.get_ylim()[1]
    corners, colours = [], []
    for residency in residencies:
        low, high = residency.offset, residency.offset + residency.bytes
        corners.append(
            [
                (residency.start, low),
                (residency.end, low),
                (residency.end, high),
                (residency.start, high),
            ]
        )
        colours.append(KIND_COLOURS[_kind_of(problem, residency)])
        room = int((residency.end - residency.start) / makespan * letters)
        if room >= SHORTEST_LABEL and residency.bytes > LABEL_HEIGHT * top:
            axis.text(
                (residency.start + residency.end) / 2,
                (low + high) / 2,
                without_markup(shortened(_name_of(problem, residency), room)),
                fontsize=6,
                ha="center",
                va="center",
                clip_on=True,
            )
    axis.add_collection(
        PolyCollection(corners, facecolors=colours, edgecolors=OUTLINE, linewidths=0.25)
    )


def _draw_usage(axis: "Axes", residencies: Sequence[Residency], peak: Bytes) -> None:
    """Draw the peak of the addresses, and the live bytes as a curve."""
    if not residencies:
        return
    cycles, totals = live_bytes(residencies)
    axis.step(cycles, totals, where="post", color=OUTLINE, linewidth=1.0)
    axis.axhline(peak, color=PEAK, linewidth=1.0, linestyle="--")


def _kind_of(problem: Problem, residency: Residency) -> str:
    if residency.slice is None:
        return SCRATCH
    return problem.buffers[problem.slices[residency.slice].buffer].kind


def _name_of(problem: Problem, residency: Residency) -> str:
    if residency.slice is None:
        return SCRATCH
    return problem.buffers[problem.slices[residency.slice].buffer].name
