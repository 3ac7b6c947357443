"""Fast heuristics: items one at a time, each into a gap between those already placed."""

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.packing.outline import Outline, needed_above
from spmilp.packing.search.arrays import Ints
from spmilp.packing.search.room import next_free


def place_in_order(outline: Outline, order: Ints, *, tightest: bool) -> Ints:
    """Return offsets in units: each item in turn at the lowest gap that holds it.

    With ``tightest`` it goes to the smallest gap instead, the lowest of equal ones; the space
    above all others counts as a gap only when no other holds it.
    """
    offset = np.full(outline.units.size, -1, dtype=np.int64)
    by_offset = np.zeros(outline.units.size, dtype=np.int64)
    _place_all(outline, order, offset, by_offset, tightest)
    return offset


@kernel
def _place_all(
    outline: Outline, order: Ints, offset: Ints, by_offset: Ints, tightest: bool
) -> None:
    for count in range(order.size):
        item = order[count]
        offset[item] = _gap_for(outline, item, offset, by_offset, count, tightest)
        slot = count
        while slot > 0 and offset[by_offset[slot - 1]] > offset[item]:
            by_offset[slot] = by_offset[slot - 1]
            slot -= 1
        by_offset[slot] = item


@part
def _gap_for(
    outline: Outline, item: int, offset: Ints, by_offset: Ints, count: int, tightest: bool
) -> int:
    floor = next_free(outline, item, 0)
    best = -1
    best_gap = 0
    for k in range(count):
        other = by_offset[k]
        above = needed_above(outline, other, item)
        if above == 0:
            continue
        gap = offset[other] - floor
        if gap >= needed_above(outline, item, other):
            if not tightest:
                return floor
            if best < 0 or gap < best_gap:
                best, best_gap = floor, gap
        if offset[other] + above > floor:
            floor = next_free(outline, item, offset[other] + above)
    return floor if best < 0 else best
