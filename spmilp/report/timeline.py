"""The timeline: what each core and each DMA channel does, and when."""

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.report.figures import (
    BLACK,
    BLUE,
    GROUP_COLOURS,
    ORANGE,
    SKY_BLUE,
    grid_of_axes,
    legend_of_colours,
    title,
    without_markup,
)
from spmilp.units import Cycles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOAD, STORE, EXCHANGE = "load from DRAM", "store to DRAM", "move on chip"
TRANSFER_COLOURS = {LOAD: ORANGE, STORE: BLUE, EXCHANGE: SKY_BLUE}

Row: TypeAlias = list[tuple[Cycles, Cycles, str]]
"""``(start, length, colour)`` of what one core or channel does."""


def timeline(problem: Problem, plan: Plan) -> "Figure":
    """Draw tasks per core and transfers per DMA channel over time.

    Tasks of one fused operator have one colour; transfers are coloured by where they go. Cores that
    do nothing keep their rows, so that idleness is seen; channels that move nothing are left out.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    cores = rows_of_cores(problem, plan)
    channels = rows_of_channels(problem, plan)
    parts = [_height(cores), _height(channels)] if channels else [_height(cores)]
    figure, axes = grid_of_axes(len(parts), 1, parts)
    figure.suptitle(f"{title(problem)}: {plan.claim.makespan:,} cycles")
    _draw_rows(axes[0], cores, "core")
    if channels:
        _draw_rows(axes[1], channels, "DMA channel")
    axes[-1].set_xlim(0, max(plan.claim.makespan, 1))
    axes[-1].set_xlabel("cycle")
    directions = {direction_of(problem, plan, transfer) for transfer in plan.transfers}
    legend_of_colours(figure, TRANSFER_COLOURS, directions)
    return figure


def rows_of_cores(problem: Problem, plan: Plan) -> dict[str, Row]:
    """Return what each core runs, by name, in order of core."""
    colour = _colours_of_groups(problem)
    rows: dict[str, Row] = {core.name: [] for core in problem.machine.cores}
    for placement in plan.placements:
        task = problem.tasks[placement.task]
        row = rows[problem.machine.cores[placement.core].name]
        group = task.tile.of if task.tile is not None else task.name
        row.append((placement.start, placement.end - placement.start, colour[group]))
    return rows


def rows_of_channels(problem: Problem, plan: Plan) -> dict[str, Row]:
    """Return what each channel that moves something does, by name."""
    by_channel: defaultdict[tuple[int, int], Row] = defaultdict(list)
    for transfer in plan.transfers:
        colour = TRANSFER_COLOURS[direction_of(problem, plan, transfer)]
        row = by_channel[transfer.engine, transfer.channel]
        row.append((transfer.start, transfer.end - transfer.start, colour))
    engines = problem.machine.engines
    return {
        f"{engines[engine].name}:{channel}": by_channel[engine, channel]
        for engine, channel in sorted(by_channel)
    }


def direction_of(problem: Problem, plan: Plan, transfer: Transfer) -> str:
    """Say whether a transfer loads from DRAM, stores to DRAM, or stays on the chip."""
    memories = problem.machine.memories
    ends = [plan.residencies[residency].memory for residency in transfer.destinations]
    if memories[plan.residencies[transfer.source].memory].kind is MemoryKind.DRAM:
        return LOAD
    return STORE if any(memories[end].kind is MemoryKind.DRAM for end in ends) else EXCHANGE


def _colours_of_groups(problem: Problem) -> dict[str, str]:
    """Give neighbouring groups of tasks different colours."""
    colours: dict[str, str] = {}
    for task in problem.tasks:
        group = task.tile.of if task.tile is not None else task.name
        if group not in colours:
            colours[group] = GROUP_COLOURS[len(colours) % len(GROUP_COLOURS)]
    return colours


def _height(rows: dict[str, Row]) -> float:
    """Return inches in which the rows' names can be read."""
    return min(max(1.0, 0.17 * len(rows)), 12.0)


def _draw_rows(axis: "Axes", rows: dict[str, Row], what: str) -> None:
    for height, row in enumerate(rows.values()):
        spans = [(start, length) for start, length, _ in row]
        colours = [colour for _, _, colour in row]
        axis.broken_barh(
            spans, (height - 0.4, 0.8), facecolors=colours, edgecolors=BLACK, linewidth=0.2
        )
    step = -(-len(rows) // 72)
    names = [without_markup(name) for name in rows]
    axis.set_yticks(range(0, len(rows), step), labels=names[::step], fontsize=6)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_ylabel(what)
