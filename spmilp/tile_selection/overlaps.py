"""Elements that boxes of a tensor share with each other, and with the tiles of a grid."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.lowering.tiling import Interval
from spmilp.tile_selection.reads import Boxes

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

MANY_PAIRS = 1 << 12
"""From so many pairs of boxes on, looking for equal intervals costs less than it saves."""

PAIRS_AT_ONCE = 1 << 18
"""Of a box and a tile that share something, about: what is in memory at one time."""


def volumes(boxes: Boxes) -> Floats:
    """Return the number of elements of each box."""
    sizes: Floats = np.prod(boxes[:, :, 1] - boxes[:, :, 0], axis=1, dtype=np.float64)
    return sizes


def overlaps(a: Boxes, b: Boxes) -> Floats:
    """Return the elements that each box of ``a`` shares with each box of ``b``, as a matrix."""
    result = np.ones((len(a), len(b)))
    for axis in range(a.shape[1]):
        if len(a) * len(b) < MANY_PAIRS:
            result *= _shared(a[:, axis], b[:, axis])
            continue
        # Many boxes have the same interval along an axis, so only distinct ones are compared.
        first, of_a = _distinct(a[:, axis])
        second, of_b = _distinct(b[:, axis])
        shared = _shared(first, second)
        result *= shared if shared.size == 1 else shared[np.ix_(of_a, of_b)]
    return result


class GridOverlaps:
    """Compares boxes with the tiles of a grid, and only with those that share something with them.

    Along each axis these are successive tiles, so that time and memory follow what is shared, not
    the product of the numbers of boxes and tiles.

    Parameters
    ----------
    boxes
        Of one tensor; one that is empty shares nothing.
    axes
        The intervals into which the grid cuts each axis of the tensor, from its start to its end.
    """

    def __init__(self, boxes: Boxes, axes: Sequence[Sequence[Interval]]) -> None:
        self._boxes = boxes
        self._axes = [np.array(axis, dtype=np.int64).reshape(-1, 2) for axis in axes]
        self._tiles = int(np.prod([len(axis) for axis in self._axes], dtype=np.int64))
        rank = len(self._axes)
        self._first = np.zeros((rank, len(boxes)), dtype=np.int64)
        self._counts = np.ones((rank, len(boxes)), dtype=np.int64)
        for number, axis in enumerate(self._axes):
            start, stop = boxes[:, number, 0], boxes[:, number, 1]
            self._first[number] = np.searchsorted(axis[:, 1], start, side="right")
            after = np.searchsorted(axis[:, 0], stop, side="left")
            self._counts[number] = np.where(stop > start, after - self._first[number], 0)

    @property
    def tiles_of_each(self) -> Ints:
        """The number of tiles with which each box shares something."""
        found: Ints = np.prod(self._counts, axis=0, dtype=np.int64)
        return found

    def shared_by(self, takers: Ints, among: int) -> Floats:
        """Return the elements of each tile that the boxes of each taker share with it, added up.

        Parameters
        ----------
        takers
            The taker of each box, a number below ``among``.

        Returns
        -------
        Floats
            ``[taker, tile]``; tiles in row-major order.
        """
        result = np.zeros(among * self._tiles)
        rows = np.column_stack([takers, self._boxes.reshape(len(takers), -1)])
        first, times = distinct_rows(rows)
        for some in self._in_portions(first):
            boxes = first[some]
            pair, tiles, elements = self._pairs(boxes)
            cells = takers[boxes][pair] * self._tiles + tiles
            np.add.at(result, cells, elements * times[some][pair])
        return result.reshape(among, self._tiles)

    def _in_portions(self, boxes: Ints) -> Iterator[slice]:
        """Yield successive ones of some boxes whose pairs are not too many, where possible."""
        ends = np.cumsum(self.tiles_of_each[boxes])
        begin, done = 0, 0
        while begin < len(ends):
            end = int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right"))
            end = max(end, begin + 1)
            yield slice(begin, end)
            begin, done = end, int(ends[end - 1])

    def _pairs(self, some: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of some boxes and tiles: which of them, the tile, what they share."""
        first, counts, boxes = self._first[:, some], self._counts[:, some], self._boxes[some]
        each = np.prod(counts, axis=0, dtype=np.int64)
        box = np.repeat(np.arange(len(each)), each)
        left = np.arange(len(box)) - np.repeat(np.cumsum(each) - each, each)
        tiles, elements = np.zeros(len(box), dtype=np.int64), np.ones(len(box))
        weight = 1
        for number in reversed(range(len(self._axes))):
            axis = self._axes[number]
            left, place = np.divmod(left, counts[number, box])
            place += first[number, box]
            start = np.maximum(axis[place, 0], boxes[box, number, 0])
            elements *= np.minimum(axis[place, 1], boxes[box, number, 1]) - start
            tiles += weight * place
            weight *= len(axis)
        return box, tiles, elements


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the position of one of each set of equal rows, and how many there are of it.

    No entry is negative. Rows are compared as one number each where numbers are long enough, which
    is far quicker.
    """
    spans = [int(span) + 1 for span in rows.max(axis=0)]
    if prod(spans) >= 1 << 62:
        return np.unique(rows, axis=0, return_index=True, return_counts=True)[1:]
    weights = list(accumulate(spans[:-1], mul, initial=1))[: len(spans)]  # none for a scalar
    keys = rows @ np.array(weights, dtype=np.int64)
    return np.unique(keys, return_index=True, return_counts=True)[1:]


def _shared(first: Ints, second: Ints) -> Floats:
    """Return the lengths that each interval of ``first`` shares with each of ``second``."""
    start = np.maximum(first[:, None, 0], second[None, :, 0])
    stop = np.minimum(first[:, None, 1], second[None, :, 1])
    shared: Floats = np.maximum(stop - start, 0).astype(np.float64)
    return shared


def _distinct(intervals: Ints) -> tuple[Ints, Ints]:
    """Return the distinct ones of some intervals, and for each one its position among them."""
    keys = intervals[:, 0] << 32 | intervals[:, 1]
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    return intervals[first], position
