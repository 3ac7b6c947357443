"""The cut of a tensor into buffers: a grid of half-open intervals along each axis."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

from spmilp.lowering.tiling import Interval, split
from spmilp.units import Box, Extents


@dataclass(frozen=True, slots=True)
class Grid:
    """Disjoint intervals along each axis, sorted; their products are the cells.

    Elements between intervals belong to no cell (nothing reads them).
    """

    axes: tuple[tuple[Interval, ...], ...]
    _known: dict[tuple[int, Interval], "_Overlap"] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def counts(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(map(len, self.axes))

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(self.counts)

    @property
    def largest(self) -> Extents:
        """The largest extent along each axis."""
        return tuple(max(stop - start for start, stop in axis) for axis in self.axes)

    def boxes(self) -> Iterator[Box]:
        """Yield the cells in row-major order."""
        return product(*self.axes)

    def refined(self, pieces: Iterable[int]) -> "Grid":
        """Return the grid with every interval cut into so many pieces along each axis.

        The pieces are no longer than those of the largest interval: shorter ones are cut into as
        many as that takes.
        """
        return Grid(
            tuple(
                axis if count == 1 else _cut(axis, count)
                for axis, count in zip(self.axes, pieces, strict=True)
            )
        )

    def overlapping(self, box: Box) -> Iterator[tuple[int, Box, Box]]:
        """Yield ``(number, cell, shared box)`` of each cell that shares elements with a box."""
        numbers, cells, shared = [], [], []
        for number, interval in enumerate(box):
            # Boxes of tiles have few intervals along each axis.
            found = self._known.get((number, interval))
            if found is None:
                found = self._known[number, interval] = self._overlap(number, interval)
            numbers.append(found[0])
            cells.append(found[1])
            shared.append(found[2])
        yield from zip(map(sum, product(*numbers)), product(*cells), product(*shared), strict=True)

    def _overlap(self, number: int, interval: Interval) -> "_Overlap":
        """Return what an interval of one axis overlaps."""
        axis, (start, stop) = self.axes[number], interval
        stride = prod(self.counts[number + 1 :])
        first = bisect_right(axis, start, key=_stop)
        last = bisect_left(axis, stop, key=_start)
        found = axis[first:last]
        shared = [(max(a, start), min(b, stop)) for a, b in found]
        return range(first * stride, last * stride, stride), found, shared

    def count_overlapping(self, box: Box) -> int:
        """Return how many cells share elements with a box."""
        found = 1
        for axis, (start, stop) in zip(self.axes, box, strict=True):
            found *= max(
                0, bisect_left(axis, stop, key=_start) - bisect_right(axis, start, key=_stop)
            )
        return found


_Overlap = tuple[range, tuple[Interval, ...], list[Interval]]
"""What the numbers of cells along one axis add to those of cells, the cells, what is shared."""


def whole_grid(shape: Extents) -> Grid:
    """Return the grid with one cell, the whole of a tensor."""
    return Grid(tuple(((0, length),) for length in shape))


def grid_of_reads(boxes: Iterable[Box], covered: Grid) -> Grid:
    """Return a grid that follows the boxes which the tiles of one group read.

    Where the boxes' intervals along an axis are disjoint, they are the grid's. Where successive
    ones overlap (halos), the cut lies in the middle of what they share: pieces then match the
    group's tiling, and a halo is a slice of the neighbour's piece. Intervals that lie in others
    make no cut.

    Parameters
    ----------
    covered
        What the grid has to cover: for each axis the disjoint intervals that any group reads.
    """
    intervals = [sorted(set(axis)) for axis in zip(*boxes, strict=True)]
    cuts = map(_cuts, intervals)
    return Grid(tuple(map(_cut_at, covered.axes, cuts)))


def covered_by(boxes: Iterable[Box]) -> Grid:
    """Return the union of boxes' intervals along each axis."""
    return Grid(tuple(_union(sorted(set(axis))) for axis in zip(*boxes, strict=True)))


def _cut(axis: tuple[Interval, ...], count: int) -> tuple[Interval, ...]:
    longest = -(-max(stop - start for start, stop in axis) // count)
    return tuple(
        (start + first, start + last)
        for start, stop in axis
        for first, last in split(stop - start, -(-(stop - start) // longest))
    )


def _cuts(intervals: list[Interval]) -> list[int]:
    """Return where a grid is cut that follows sorted intervals."""
    cuts: set[int] = set()
    furthest: Interval | None = None
    for start, stop in intervals:
        if furthest is not None:
            if stop <= furthest[1]:
                continue
            if start == furthest[0]:
                furthest = (start, stop)
                continue
            if start >= furthest[1]:
                cuts |= {furthest[1], start}
            else:
                cuts.add((start + furthest[1]) // 2)
        furthest = (start, stop)
    return sorted(cuts)


def _cut_at(segments: tuple[Interval, ...], cuts: list[int]) -> tuple[Interval, ...]:
    """Cut disjoint segments at the given positions."""
    found: list[Interval] = []
    for start, stop in segments:
        inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, stop)]
        found += zip([start, *inner], [*inner, stop], strict=True)
    return tuple(found)


def _union(intervals: list[Interval]) -> tuple[Interval, ...]:
    merged: list[Interval] = []
    for start, stop in intervals:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return tuple(merged)


def _start(interval: Interval) -> int:
    return interval[0]


def _stop(interval: Interval) -> int:
    return interval[1]
