"""What needs an instance's outline alone: conflicts, and simple ways to place all items."""

import cython
import numpy as np

from spmilp.compiled import address, in_c
from spmilp.packing.arrays import Ints, Outline, Shorts

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import longs_at, whole
    from spmilp.packing.arrays import outline_at, shorts_at
    from spmilp.packing.kernel import next_free


def lowest_offsets(outline: Outline) -> Ints:
    """Return the lowest offset in units of each item in an empty memory."""
    offset = np.zeros(outline.units.size, dtype=np.int64)
    kept = in_c(outline)
    here, lowest = outline_at(address(kept)), longs_at(address(offset))
    items = whole(offset.size)
    with cython.nogil:
        _lay_all(here, items, lowest)
    return offset


def _lay_all(outline: Outline, items: int, offset: Ints) -> None:
    """Set ``offset`` to the lowest one of each item, as if it were alone."""
    for item in range(items):
        offset[item] = next_free(outline, item, 0)


def list_conflicts(outline: Outline, filled: Ints, other: Shorts, extent: Ints, limit: int) -> None:
    """Fill in the conflicts of each item, or count them where there is no room for any.

    ``filled`` is where the next one of each goes. It stops soon after ``limit`` were found.
    """
    kept = in_c(outline)
    here, places = outline_at(address(kept)), longs_at(address(filled))
    others, extents = shorts_at(address(other)), longs_at(address(extent))
    items, most = whole(filled.size), whole(limit)
    with_others, with_extents = whole(other.size), whole(extent.size)
    with cython.nogil:
        _list_conflicts(here, items, places, others, with_others, extents, with_extents, most)


def _list_conflicts(
    outline: Outline,
    items: int,
    filled: Ints,
    other: Shorts,
    with_others: bool,
    extent: Ints,
    with_extents: bool,
    limit: int,
) -> None:
    total = 0
    for i in range(items):
        for j in range(i + 1, items):
            above_i = extent_over(outline, i, j)
            if above_i == 0:
                continue
            if with_others:
                other[filled[i]] = j
                other[filled[j]] = i
            if with_extents:
                extent[filled[i]] = above_i
                extent[filled[j]] = extent_over(outline, j, i)
            filled[i] += 1
            filled[j] += 1
            total += 2
        if total > limit:
            break


def extent_over(outline: Outline, lower: int, upper: int) -> int:
    """Return how far ``upper`` must lie above ``lower``: its most units while both live, or 0."""
    needed = 0
    k, other = outline.run_start[lower], outline.run_start[upper]
    k_last, last = outline.run_start[lower + 1] - 1, outline.run_start[upper + 1] - 1
    if (
        outline.run_from[k] >= outline.run_until[last]
        or outline.run_from[other] >= outline.run_until[k_last]
    ):
        return needed
    while k <= k_last:
        while other <= last and outline.run_until[other] <= outline.run_from[k]:
            other += 1
        if other <= last and outline.run_from[other] < outline.run_until[k]:
            needed = max(needed, outline.run_units[k])
        k += 1
    return needed


def place_lowest_first(outline: Outline, order: Ints, sections: int) -> Ints:
    """Return offsets in units: always the item that can lie lowest, the first in order of equals.

    No item goes below one that is already there, so one height per section is enough.
    """
    rank, heap = np.zeros(order.size, dtype=np.int64), np.arange(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    offset, top = np.zeros(order.size, dtype=np.int64), np.zeros(sections, dtype=np.int64)
    kept = in_c(outline)
    here, items = outline_at(address(kept)), whole(order.size)
    ranks, waiting = longs_at(address(rank)), longs_at(address(heap))
    offsets, tops = longs_at(address(offset)), longs_at(address(top))
    with cython.nogil:
        _stack_all(here, items, ranks, waiting, offsets, tops)
    return offset


def _stack_all(
    outline: Outline, items: int, rank: Ints, heap: Ints, offset: Ints, top: Ints
) -> None:
    """Set ``offset``, from the items in ``heap`` and a height of 0 for each section."""
    _lay_all(outline, items, offset)
    for slot in range(items // 2 - 1, -1, -1):
        _sift(heap, items, slot, offset, rank)
    waiting = items
    while waiting > 0:
        item = heap[0]
        low = offset[item]
        for k in range(outline.run_start[item], outline.run_start[item + 1]):
            for section in range(outline.run_from[k], outline.run_until[k]):
                low = max(low, top[section])
        low = next_free(outline, item, low)
        if low > offset[item]:
            offset[item] = low
            _sift(heap, waiting, 0, offset, rank)
            continue
        waiting -= 1
        heap[0] = heap[waiting]
        _sift(heap, waiting, 0, offset, rank)
        for k in range(outline.run_start[item], outline.run_start[item + 1]):
            for section in range(outline.run_from[k], outline.run_until[k]):
                top[section] = low + outline.run_units[k]


def _sift(heap: Ints, size: int, slot: int, offset: Ints, rank: Ints) -> None:
    """Move what is at a slot of a heap down until none below it has less ``(offset, rank)``."""
    item = heap[slot]
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        if child + 1 < size and _goes_first(heap[child + 1], heap[child], offset, rank):
            child += 1
        if not _goes_first(heap[child], item, offset, rank):
            break
        heap[slot] = heap[child]
        slot = child
    heap[slot] = item


def _goes_first(one: int, other: int, offset: Ints, rank: Ints) -> bool:
    """Return whether an item goes before another."""
    if offset[one] != offset[other]:
        return bool(offset[one] < offset[other])
    return bool(rank[one] < rank[other])


def place_in_order(outline: Outline, order: Ints, *, tightest: bool) -> Ints:
    """Return offsets in units: each item in turn at the lowest gap that holds it.

    With ``tightest`` it goes to the smallest gap instead, the lowest of equal ones; the space
    above all others counts as a gap only when no other holds it.
    """
    offset = np.full(outline.units.size, -1, dtype=np.int64)
    by_offset = np.zeros(outline.units.size, dtype=np.int64)
    kept = in_c(outline)
    here, items = outline_at(address(kept)), whole(order.size)
    turns, offsets = longs_at(address(order)), longs_at(address(offset))
    sorted_items, is_tightest = longs_at(address(by_offset)), whole(tightest)
    with cython.nogil:
        _place_all(here, items, turns, offsets, sorted_items, is_tightest)
    return offset


def _place_all(
    outline: Outline, items: int, order: Ints, offset: Ints, by_offset: Ints, tightest: bool
) -> None:
    """Set ``offset``, -1 everywhere before; ``by_offset`` is room for the items placed."""
    for count in range(items):
        item = order[count]
        offset[item] = _gap_for(outline, item, offset, by_offset, count, tightest)
        slot = count
        while slot > 0 and offset[by_offset[slot - 1]] > offset[item]:
            by_offset[slot] = by_offset[slot - 1]
            slot -= 1
        by_offset[slot] = item


def _gap_for(
    outline: Outline, item: int, offset: Ints, by_offset: Ints, count: int, tightest: bool
) -> int:
    """Return the offset of the gap for an item among ``count`` others in order of offset."""
    floor = next_free(outline, item, 0)
    best = -1
    best_gap = 0
    for k in range(count):
        other = by_offset[k]
        above = extent_over(outline, other, item)
        if above == 0:
            continue
        gap = offset[other] - floor
        if gap >= extent_over(outline, item, other):
            if not tightest:
                return floor
            if best < 0 or gap < best_gap:
                best, best_gap = floor, gap
        if offset[other] + above > floor:
            floor = next_free(outline, item, offset[other] + above)
    return floor if best < 0 else best
