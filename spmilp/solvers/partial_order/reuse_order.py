"""Which residencies follow each other on the same bytes."""

from collections.abc import Iterable, Iterator
from operator import add
from typing import TypeAlias

import numpy as np

from spmilp.compiled import compiled
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE, Ints, inverted, numbers, rows_from_pairs
from spmilp.solvers.partial_order.schedule import Flags, PartialOrderSchedule, ReuseOrder
from spmilp.units import Box, ResidencyIdx, SliceIdx, TensorIdx

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
    homes = []
    for what, memory in zip(schedule.slice.tolist(), schedule.memory.tolist(), strict=True):
        place = None if what == NONE else problem.buffers[problem.slices[what].buffer].place
        at_home = place is not None and problem.tensors[place.tensor].memory == memory
        homes.append(place.tensor if place is not None and at_home else NONE)
    return numbers(homes)


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
