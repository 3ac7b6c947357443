"""The cut of a group's output into tiles; grids of intervals; names of boxes."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod
from operator import itemgetter

from spmilp.units import Box, Extents, Interval

_start, _stop = itemgetter(0), itemgetter(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """A grid of output tiles of one group.

    Parameters
    ----------
    counts
        Tiles along each axis of the group's output; at least 1 each, none for a scalar.
    parts
        Parts of the anchor's reduction; each tile is then a chain of that many partial sums.
    """

    counts: tuple[int, ...]
    parts: int = 1

    def __post_init__(self) -> None:
        if any(count < 1 for count in (*self.counts, self.parts)):
            raise ValueError(f"tiling {self.describe()}: counts must be positive")

    def with_count(self, axis: int, count: int) -> "Tiling":
        """Return it with another number of tiles along one axis."""
        return replace(self, counts=(*self.counts[:axis], count, *self.counts[axis + 1 :]))

    def describe(self) -> str:
        """Return the counts for people: ``1x2x8x1``, ``/4`` for four parts."""
        counts = "x".join(map(str, self.counts)) or "1"
        return counts + ("" if self.parts == 1 else f"/{self.parts}")


Tilings = dict[int, Tiling]
"""A tiling for each group, by its index."""


_Overlap = tuple[range, tuple[Interval, ...], list[Interval]]
"""Along one axis: the cells' contributions to cell numbers, their intervals, the shared parts."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Disjoint intervals along each axis, sorted; their products are the cells.

    Elements between intervals belong to no cell (nothing reads them).
    """

    axes: tuple[tuple[Interval, ...], ...]
    _known: dict[tuple[int, Interval], _Overlap] = field(
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
        found = [self._overlap(number, interval) for number, interval in enumerate(box)]
        numbers, cells, shared = zip(*found, strict=True) if found else ((), (), ())
        yield from zip(map(sum, product(*numbers)), product(*cells), product(*shared), strict=True)

    def _overlap(self, number: int, interval: Interval) -> _Overlap:
        """Return what an interval of one axis overlaps; boxes of tiles have few on each."""
        if (number, interval) in self._known:
            return self._known[number, interval]
        axis, (start, stop) = self.axes[number], interval
        stride = prod(self.counts[number + 1 :])
        first = bisect_right(axis, start, key=_stop)
        last = bisect_left(axis, stop, key=_start)
        found = axis[first:last]
        shared = [(max(a, start), min(b, stop)) for a, b in found]
        overlap = range(first * stride, last * stride, stride), found, shared
        self._known[number, interval] = overlap
        return overlap

    def count_overlapping(self, box: Box) -> int:
        """Return how many cells share elements with a box."""
        return prod(len(self._overlap(*along)[0]) for along in enumerate(box))


@dataclass(frozen=True, slots=True)
class TileGrid(Grid):
    """The output tiles of one group, and the parts of its reduction in order."""

    parts: tuple[Interval, ...] = field(kw_only=True)


def tile_grid(tiling: Tiling, shape: Extents, reduction: int) -> TileGrid:
    """Return the tiles of an output of ``shape`` whose anchor reduces ``reduction`` elements.

    Raises a ``ValueError`` if the tiling has another number of axes than the output.
    """
    if len(tiling.counts) != len(shape):
        raise ValueError(
            f"tiling {tiling.describe()}: {len(tiling.counts)} counts for {len(shape)} axes"
        )
    axes = tuple(map(split, shape, tiling.counts))
    return TileGrid(axes, parts=split(reduction, tiling.parts))


@lru_cache(maxsize=1 << 14)
def split(length: int, count: int) -> tuple[Interval, ...]:
    """Cut ``length`` elements into at most ``count`` pieces, as equal as possible.

    Piece ``i`` begins at the floor of ``i * length / count``: cuts of two tensors of different
    lengths into equally many pieces then lie at proportional places, so that strips of successive
    layers match.
    """
    count = min(count, length)
    starts = [index * length // count for index in range(count)]
    return tuple(zip(starts, [*starts[1:], length], strict=True))


def box_name(of: str, box: Box, shape: Extents) -> str:
    """Return a readable name, as ``conv1[0,0:16,0:14,:]``; the plain one for the whole shape.

    An axis that is whole is ``:``, a single position its number.
    """
    if all((start, stop) == (0, length) for (start, stop), length in zip(box, shape, strict=True)):
        return of
    axes = (_interval(*interval, length) for interval, length in zip(box, shape, strict=True))
    return f"{of}[{','.join(axes)}]"


def _interval(start: int, stop: int, length: int) -> str:
    if stop - start == 1:
        return str(start)
    return ":" if (start, stop) == (0, length) else f"{start}:{stop}"


def whole_grid(shape: Extents) -> Grid:
    """Return the grid with one cell, the whole of a tensor."""
    return Grid(tuple(((0, length),) for length in shape))


def grid_of_reads(boxes: Iterable[Box], covered: Grid) -> Grid:
    """Return a grid that follows the boxes which the tiles of one group read.

    Where the boxes' intervals along an axis are disjoint, they are the grid's. Where successive
    ones overlap (halos), the cut lies in the middle of what they share: pieces then match the
    group's tiling, and a halo is a slice of the neighbour's piece. Intervals that lie in others
    make no cut. ``covered`` is what the grid has to cover: the disjoint intervals of each axis that
    any group reads.
    """
    intervals = [sorted(set(axis)) for axis in zip(*boxes, strict=True)]
    cuts = map(_cuts, intervals)
    return Grid(tuple(map(_cut_at, covered.axes, cuts)))


def covered_by(boxes: Iterable[Box]) -> Grid:
    """Return the union of boxes' intervals along each axis."""
    return Grid(tuple(_union(axis) for axis in zip(*boxes, strict=True)))


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
    first, end = intervals[0]
    for start, stop in intervals:
        if stop > end:
            if start > first:
                cuts |= {end, start} if start >= end else {(start + end) // 2}
            first, end = start, stop
    return sorted(cuts)


def _cut_at(segments: tuple[Interval, ...], cuts: list[int]) -> tuple[Interval, ...]:
    """Cut disjoint segments at the given positions."""
    found: list[Interval] = []
    for start, stop in segments:
        inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, stop)]
        found += zip([start, *inner], [*inner, stop], strict=True)
    return tuple(found)


def _union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    merged: list[Interval] = []
    for start, stop in sorted(set(intervals)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return tuple(merged)
