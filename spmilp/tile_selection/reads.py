"""Reads of all tiles of a grid of one tensor, derived from those of a few tiles."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.lowering.tiling import Interval, TileGrid
from spmilp.units import Box

Boxes: TypeAlias = NDArray[np.int64]
"""Boxes of one tensor, one per tile: ``[tile, axis, (start, stop)]``."""

Read: TypeAlias = Callable[[Box], Mapping[str, Box]]
"""Gives the box of each tensor that one tile reads; tensors of which it reads nothing are left
out."""


@dataclass(frozen=True, eq=False)
class Reads:
    """The box that each tile of a grid reads of one tensor.

    Where an axis of the tensor is read as one axis of the output says, the array is made only when
    it is asked for.

    Parameters
    ----------
    key
        The same for equal arrays, as a rule.
    counts
        Tiles along each axis of the output.
    base
        What is read where no axis of the output says otherwise.
    columns
        The axes of the tensor that follow an axis of the output: its number, the output's, and the
        interval for each of the tiles along that.
    masks
        The axes of the output along which some tiles read nothing, and which tiles read something.
    given
        The array itself, where it has no such form.
    """

    key: bytes
    counts: tuple[int, ...] = ()
    base: Box = ()
    columns: tuple[tuple[int, int, Boxes], ...] = ()
    masks: tuple[tuple[int, NDArray[np.bool_]], ...] = ()
    given: Boxes | None = None

    @cached_property
    def boxes(self) -> Boxes:
        """One box per tile, in row-major order; an empty one for a tile that reads nothing."""
        if self.given is not None:
            return self.given
        rank = len(self.base)
        result = np.empty((*self.counts, rank, 2), dtype=np.int64)
        result[...] = np.array(self.base, dtype=np.int64).reshape(rank, 2)
        for axis, driver, intervals in self.columns:
            shape = [1] * len(self.counts) + [2]
            shape[driver] = len(intervals)
            result[..., axis, :] = intervals.reshape(shape)
        for driver, something in self.masks:
            np.moveaxis(result, driver, 0)[~something] = 0
        return result.reshape(prod(self.counts), rank, 2)

    @property
    def is_the_same_for_all(self) -> bool:
        """Whether all tiles read the same box, ``base``."""
        return self.given is None and not self.columns and not self.masks

    @property
    def is_something(self) -> bool:
        """Whether any tile reads some of the tensor."""
        return all(something.any() for _, something in self.masks)

    def at(self, place: Sequence[int]) -> Box | None:
        """Return the box of the tile at a place of the grid; ``None`` if it reads nothing."""
        if not all(something[place[driver]] for driver, something in self.masks):
            return None
        box = list(self.base)
        for axis, driver, intervals in self.columns:
            start, stop = intervals[place[driver]].tolist()
            box[axis] = (start, stop)
        return tuple(box)


def tiles_of(grid: TileGrid) -> Boxes:
    """Return the tiles of a grid as an array, in row-major order."""
    rows = list(product(*grid.axes))
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(grid.axes), 2)


class AxisReads:
    """Derives the reads of any grid from those along each axis of a group's output.

    The intervals of an input's axis nearly always depend on one axis of the output. What a slab of
    the output reads, an interval of one axis and all of the others, then tells all tiles in it; a
    slab is asked once for all grids. Whether that is so is seen from the middle tile of the first
    grid that cuts the same axes, and from more tiles where some read nothing.
    """

    def __init__(self, whole: Box, read: Read) -> None:
        self._whole = whole
        self._read = read
        self._slabs: dict[tuple[int, Interval], Mapping[str, Box]] = {}
        self._along: dict[tuple[int, tuple[Interval, ...]], Mapping[str, _Along]] = {}
        self._right: dict[tuple[bool, ...], bool] = {}

    def of(self, grid: TileGrid) -> Mapping[str, Reads] | None:
        """Return what the tiles read; ``None`` where slabs do not tell.

        Where all tiles read all that the middle one reads, there is nothing else.
        """
        along = [self._slabs_along(number, axis) for number, axis in enumerate(grid.axes)]
        found = {}
        for name in self._everything:
            reads = self._composed(name, grid.counts, along)
            if reads is None:
                return None
            found[name] = reads
        middle = [count // 2 for count in grid.counts]
        cut = tuple(count > 1 for count in grid.counts)
        if cut not in self._right:
            self._right[cut] = self._is_right_at(middle, grid, found)
        if not self._right[cut]:
            return None
        of_middle = {name: reads for name, reads in found.items() if reads.at(middle) is not None}
        if not any(reads.masks for reads in of_middle.values()):
            return of_middle
        ends = ([0] * len(grid.counts), [count - 1 for count in grid.counts])
        if not all(self._is_right_at(end, grid, found) for end in ends):
            return None
        return {name: reads for name, reads in found.items() if reads.is_something}

    def _composed(
        self, name: str, counts: tuple[int, ...], along: Sequence[Mapping[str, "_Along"]]
    ) -> Reads | None:
        """Return what tiles read of a tensor; ``None`` where two axes drive one of its axes."""
        base = self._everything[name]
        parts = [of_axis[name] for of_axis in along]
        columns = tuple(
            (axis, driver, intervals)
            for driver, part in enumerate(parts)
            for axis, intervals in part.columns
        )
        if len({axis for axis, _, _ in columns}) < len(columns):
            return None
        masks = tuple(
            (driver, part.mask) for driver, part in enumerate(parts) if part.mask is not None
        )
        key = repr(base).encode()
        if columns or masks:
            key = b"|".join([key, repr(counts).encode(), *(part.key for part in parts)])
        return Reads(key=key, counts=counts, base=base, columns=columns, masks=masks)

    def _is_right_at(
        self, place: Sequence[int], grid: TileGrid, found: Mapping[str, Reads]
    ) -> bool:
        """Return whether the tile at some place reads what was found."""
        tile = tuple(axis[position] for axis, position in zip(grid.axes, place, strict=True))
        read = self._read(tile)
        return all(reads.at(place) == read.get(name) for name, reads in found.items())

    def _slabs_along(self, number: int, axis: tuple[Interval, ...]) -> Mapping[str, "_Along"]:
        """Return how the slabs of one axis differ in what they read."""
        asked = number, axis
        if asked not in self._along:
            slabs = [self._slab(number, interval) for interval in axis]
            self._along[asked] = {
                name: _along(base, [slab.get(name) for slab in slabs])
                for name, base in self._everything.items()
            }
        return self._along[asked]

    def _slab(self, number: int, interval: Interval) -> Mapping[str, Box]:
        if interval == self._whole[number]:
            return self._everything
        asked = number, interval
        if asked not in self._slabs:
            box = (*self._whole[:number], interval, *self._whole[number + 1 :])
            self._slabs[asked] = self._read(box)
        return self._slabs[asked]

    @cached_property
    def _everything(self) -> Mapping[str, Box]:
        return self._read(self._whole)


@dataclass(frozen=True, slots=True)
class _Along:
    """Differences between the slabs of one axis of the output in what they read of a tensor.

    Parameters
    ----------
    columns
        The axes of the tensor of which not all slabs read everything, and what they read.
    mask
        Which slabs read something; ``None`` if all do.
    key
        The same for equal ones.
    """

    columns: tuple[tuple[int, Boxes], ...]
    mask: NDArray[np.bool_] | None
    key: bytes


def _along(base: Box, slabs: Sequence[Box | None]) -> _Along:
    nothing = ((0, 0),) * len(base)
    columns = tuple(
        (axis, np.array([(slab or nothing)[axis] for slab in slabs], dtype=np.int64))
        for axis, interval in enumerate(base)
        if any(slab is not None and slab[axis] != interval for slab in slabs)
    )
    mask = np.array([slab is not None for slab in slabs])
    key = b";".join(b"%d:%s" % (axis, intervals.tobytes()) for axis, intervals in columns)
    if mask.all():
        return _Along(columns, None, key)
    return _Along(columns, mask, key + b"!" + mask.tobytes())
