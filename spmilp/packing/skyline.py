"""A heuristic for very many items: always the one that can lie lowest, on top of all below it."""

import heapq

import numpy as np

from spmilp.compiled import compiled, part
from spmilp.packing.outline import Outline
from spmilp.packing.search.arrays import Ints
from spmilp.packing.search.fit import next_free


def place_lowest_first(outline: Outline, rank: Ints, sections: int) -> Ints:
    """Return offsets in units; of items that can lie equally low the lower rank goes first.

    No item goes below one that is already there, so one height per section describes what is
    placed: a segment tree answers and updates it in logarithmic time. Pairs kept apart are not
    looked at.
    """
    leaves = 1 << max(0, (sections - 1).bit_length())
    return _place_all(outline, rank, leaves)


@compiled
def _place_all(outline: Outline, rank: Ints, leaves: int) -> Ints:
    items = outline.units.size
    offset = np.full(items, -1, np.int64)
    most = np.zeros(2 * leaves, np.int64)
    whole = np.full(2 * leaves, -1, np.int64)
    heap = [(next_free(outline, item, 0), rank[item], item) for item in range(items)]
    heapq.heapify(heap)
    while heap:
        stale, order, item = heapq.heappop(heap)
        top = 0
        for k in range(outline.run_start[item], outline.run_start[item + 1]):
            top = max(top, _highest(most, whole, leaves, outline.run_from[k], outline.run_until[k]))
        low = next_free(outline, item, top)
        if low > stale:
            heapq.heappush(heap, (low, order, item))
            continue
        offset[item] = low
        for k in range(outline.run_start[item], outline.run_start[item + 1]):
            _raise_to(
                most,
                whole,
                leaves,
                outline.run_from[k],
                outline.run_until[k],
                low + outline.run_units[k],
            )
    return offset


@part
def _highest(most: Ints, whole: Ints, leaves: int, first: int, until: int) -> int:
    """Return the greatest height in ``[first, until)``.

    ``most[node]`` is the greatest height below a node; ``whole[node]`` the height that was last
    given to its whole range, or -1. Heights only grow, so the greatest of both is true without
    pushing down.
    """
    top = 0
    left, right = first + leaves, until + leaves
    while left < right:
        if left & 1:
            top = max(top, most[left])
            left += 1
        if right & 1:
            right -= 1
            top = max(top, most[right])
        left >>= 1
        right >>= 1
    for edge in (first + leaves, until - 1 + leaves):
        node = edge >> 1
        while node > 0:
            top = max(top, whole[node])
            node >>= 1
    return top


@part
def _raise_to(most: Ints, whole: Ints, leaves: int, first: int, until: int, height: int) -> None:
    """Set the height of ``[first, until)``, nowhere lower than it was."""
    left, right = first + leaves, until + leaves
    while left < right:
        if left & 1:
            most[left] = whole[left] = height
            left += 1
        if right & 1:
            right -= 1
            most[right] = whole[right] = height
        left >>= 1
        right >>= 1
    for edge in (first + leaves, until - 1 + leaves):
        node = edge >> 1
        while node > 0:
            most[node] = max(most[node], height)
            node >>= 1
