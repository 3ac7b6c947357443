"""From a plan to a partial-order schedule, and to the order in which residencies reuse bytes."""

from collections.abc import Iterable, Iterator
from math import lcm
from operator import add
from typing import TypeAlias

import numpy as np

from spmilp.compiled import compiled
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.plan_columns import PlanColumns, buffer_columns
from spmilp.solvers.kernels.records import (
    NONE,
    Ints,
    Rows,
    inverted,
    numbers,
    owners_of,
    rows_from_pairs,
    rows_of,
)
from spmilp.solvers.kernels.tables import alignment_of
from spmilp.solvers.partial_order.schedule import FREE, Flags, PartialOrderSchedule, ReuseOrder
from spmilp.units import Box, CoreIdx, KindIdx, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


def pools_of(machine: Machine) -> tuple[tuple[CoreIdx, ...], ...]:
    """Return the cores of each kind at each memory: to a task they are all the same."""
    pools: dict[tuple[KindIdx, MemoryIdx], list[CoreIdx]] = {}
    for core in machine.cores:
        pools.setdefault((core.kind, core.memory), []).append(core.index)
    return tuple(tuple(cores) for cores in pools.values())


def partial_order_of(problem: Problem, columns: PlanColumns) -> PartialOrderSchedule:
    """Return the decisions of a valid plan."""
    activities, residencies = columns.start.size, columns.slice.size
    transfers = columns.moved.size
    before = rows_of([*(task.after for task in problem.tasks), *((),) * transfers])
    memory, offset, size = columns.memory, columns.offset, columns.bytes
    overwrites, overwritten_by = _in_place(columns.reads, columns.fills, memory, offset, size)
    demands, amounts, capacity = _resources(problem, columns)
    return PartialOrderSchedule(
        cycles=columns.end - columns.start,
        demands=demands,
        amounts=amounts,
        capacity=capacity,
        reads=columns.reads,
        fills=columns.fills,
        before=before,
        after=inverted(before, activities),
        readers=inverted(columns.reads, residencies),
        filler=columns.fillers(),
        memory=memory,
        offset=offset,
        bytes=size,
        alignment=numbers(
            alignment_of(problem.machine, memory.index) for memory in problem.machine.memories
        ),
        lasting=_lasting(problem, columns),
        slice=columns.slice,
        moved_slice=np.concatenate((np.full(columns.tasks, NONE), columns.moved)),
        overwrites=overwrites,
        overwritten_by=overwritten_by,
        head=np.zeros(activities, np.int64),
        tail=np.zeros(activities, np.int64),
        fixed=np.full(activities, FREE),
    )


def _lasting(problem: Problem, columns: PlanColumns) -> Ints:
    """Say of each residency whether it is an output, or lies in a DRAM from the start, to the end.

    A copy that happens to be there at the end need not stay.
    """
    buffers, is_slice = buffer_columns(problem), columns.slice != NONE
    buffer = buffers.of_slices[columns.slice]
    is_output = (columns.slice == buffer) & (buffers.ends_in[buffer] == columns.memory)
    is_initial = (columns.fillers() == NONE) & (buffers.tensor[buffer] != NONE)
    to_the_end = columns.last >= columns.end.max(initial=0)
    found: Ints = (is_slice & to_the_end & (is_output | is_initial)).astype(np.int64)
    return found


def _resources(problem: Problem, columns: PlanColumns) -> tuple[Rows, Ints, Ints]:
    """Return what each activity holds, how much of it, and the capacity of each resource."""
    machine = problem.machine
    rates = [*(engine.rate for engine in machine.engines), *(link.rate for link in machine.links)]
    scale = lcm(*(rate.denominator for rate in rates))
    whole = numbers(int(rate * scale) for rate in rates)
    of_engines, of_links = whole[: len(machine.engines)], whole[len(machine.engines) :]
    pools = pools_of(machine)
    pool_of = np.zeros(len(machine.cores), np.int64)
    for pool, cores in enumerate(pools):
        pool_of[[*cores]] = pool
    engines, links = len(pools), len(pools) + len(machine.engines)
    moves, tasks = np.arange(columns.moved.size), np.arange(columns.tasks)
    crossing = owners_of(columns.routes)
    held = of_engines[columns.engine]
    np.minimum.at(held, crossing, of_links[columns.routes.items])
    owners = np.concatenate((tasks, tasks.size + moves, tasks.size + crossing))
    resources = (pool_of[columns.core], engines + columns.engine, links + columns.routes.items)
    amounts = (np.ones(owners.size - crossing.size, np.int64), held[crossing])
    count = columns.start.size
    capacity = [
        *(len(cores) for cores in pools),
        *(engine.channels for engine in machine.engines),
        *of_links.tolist(),
    ]
    return (
        rows_from_pairs(owners, np.concatenate(resources), count),
        rows_from_pairs(owners, np.concatenate(amounts), count).items,
        numbers(capacity),
    )


@compiled
def _in_place(
    reads: Rows, fills: Rows, memory: Ints, offset: Ints, size: Ints
) -> tuple[Ints, Ints]:
    """Return the in-place predecessor and successor of each residency.

    A task that writes over an operand is the only case in which a valid plan lets two share bytes.
    """
    overwrites, overwritten_by = np.full(size.size, NONE), np.full(size.size, NONE)
    for act in range(reads.begin.size - 1):
        for i in range(reads.begin[act], reads.begin[act + 1]):
            old = reads.items[i]
            for j in range(fills.begin[act], fills.begin[act + 1]):
                new = fills.items[j]
                below = offset[old] < offset[new] + size[new]
                above = offset[new] < offset[old] + size[old]
                if memory[old] == memory[new] and below and above:
                    overwritten_by[old], overwrites[new] = new, old
    return overwrites, overwritten_by


Pairs: TypeAlias = Iterable[tuple[ResidencyIdx, ResidencyIdx]]


def reuse_order_of(
    schedule: PartialOrderSchedule, start: Ints, where: Flags, extra: Pairs = ()
) -> ReuseOrder:
    """Return which residencies have the same bytes one after the other, in a valid plan's times.

    Parameters
    ----------
    where
        The residencies whose addresses count; the others follow nothing.
    extra
        Further pairs of residencies, one before the other.
    """
    count = schedule.filler.size
    begins = np.where(schedule.filler == NONE, -1, start[schedule.filler])
    counted = np.flatnonzero(where)
    counted = counted[np.lexsort((counted, begins[counted], schedule.memory[counted]))]
    before, after = _follow(counted, schedule.memory, schedule.offset, schedule.bytes)
    before = np.concatenate((before, numbers(pair[0] for pair in extra)))
    after = np.concatenate((after, numbers(pair[1] for pair in extra)))
    earlier = rows_from_pairs(after, before, count)
    return ReuseOrder(earlier=earlier, later=inverted(earlier, count))


@compiled
def _follow(counted: Ints, memory: Ints, offset: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Sweep each memory in time, with the last owner of each run of bytes, by lowest address."""
    low = np.zeros(2 * counted.size + 2, np.int64)
    owner = np.zeros(2 * counted.size + 2, np.int64)
    runs = 0
    before = np.zeros(4 * counted.size + 16, np.int64)
    after = np.zeros(4 * counted.size + 16, np.int64)
    count = 0
    last_memory = NONE
    for one in counted:
        if memory[one] != last_memory:
            last_memory = memory[one]
            low[0], owner[0], runs = 0, NONE, 1
        first, last = offset[one], offset[one] + size[one]
        # The runs that meet [first, last) are those from i to j - 1.
        i = np.searchsorted(low[:runs], first, side="right") - 1
        j = i
        while j < runs and low[j] < last:
            if owner[j] != NONE:
                seen = False
                for k in range(i, j):
                    seen = seen or owner[k] == owner[j]
                if not seen:
                    if count == before.size:
                        before = np.concatenate((before, np.zeros_like(before)))
                        after = np.concatenate((after, np.zeros_like(after)))
                    before[count], after[count] = owner[j], one
                    count += 1
            j += 1
        tail = owner[j - 1]
        keeps_head = low[i] < first
        ends_inside = j == runs or low[j] > last
        new = i + (1 if keeps_head else 0)
        kept = new + 1 + (1 if ends_inside else 0)
        shift = kept - j
        if shift > 0:
            for k in range(runs - 1, j - 1, -1):
                low[k + shift], owner[k + shift] = low[k], owner[k]
        elif shift < 0:
            for k in range(j, runs):
                low[k + shift], owner[k + shift] = low[k], owner[k]
        runs += shift
        low[new], owner[new] = first, one
        if ends_inside:
            low[new + 1], owner[new + 1] = last, tail
    return before[:count].copy(), after[:count].copy()


def home_tensors(problem: Problem, schedule: PartialOrderSchedule) -> Ints:
    """Return the tensor in which each residency lies at its buffer's place; -1 for the others."""
    buffers = buffer_columns(problem)
    tensor = buffers.tensor[buffers.of_slices[schedule.slice]]
    memory_of = numbers([*(tensor.memory for tensor in problem.tensors), NONE])
    homes: Ints = np.where(memory_of[tensor] == schedule.memory, tensor, NONE)
    return homes


def followers_at_places(
    problem: Problem, schedule: PartialOrderSchedule, homes: Ints, begins: Ints, ends: Ints
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the pairs in one tensor of which the second may begin only when the first has ended."""
    written = set(homes[(schedule.filler != NONE) & (homes != NONE)].tolist())
    for tensor in sorted(written):
        there = np.flatnonzero(homes == tensor).tolist()
        for one, other in _that_share_elements(problem, schedule, tensor, there):
            first, second = (one, other) if begins[one] < begins[other] else (other, one)
            if ends[first] <= begins[second] and schedule.filler[second] != NONE:
                yield first, second


def _that_share_elements(
    problem: Problem,
    schedule: PartialOrderSchedule,
    tensor: TensorIdx,
    residencies: list[ResidencyIdx],
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Sweep along the axis on which the boxes differ most."""
    boxes = [(_box_of(problem, int(schedule.slice[one])), one) for one in residencies]
    axes = range(len(problem.tensors[tensor].shape))
    axis = max(axes, key=lambda a: len({box[a] for box, _ in boxes}), default=None)
    if axis is not None:
        boxes.sort(key=lambda item: item[0][axis])
    open_boxes: list[tuple[Box, ResidencyIdx]] = []
    for box, one in boxes:
        if axis is not None:
            open_boxes = [item for item in open_boxes if item[0][axis][1] > box[axis][0]]
        for other_box, other in open_boxes:
            if all(a < d and c < b for (a, b), (c, d) in zip(box, other_box, strict=True)):
                yield other, one
        open_boxes.append((box, one))


def _box_of(problem: Problem, what: SliceIdx) -> Box:
    slice_ = problem.slices[what]
    place = problem.buffers[slice_.buffer].place
    start = slice_.start if place is None else tuple(map(add, place.start, slice_.start))
    return tuple((a, a + n) for a, n in zip(start, slice_.extent, strict=True))
