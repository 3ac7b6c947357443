"""What the tiles of one group read, hold and cost under any tiling; tilings cut until they fit."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.lowering.cost import cycles_by_kind
from spmilp.lowering.groups import (
    PARTIAL_ITEM,
    Computation,
    overwritable_inputs,
    reduction_length,
    splittable_axes,
)
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.storage import whole_below
from spmilp.lowering.tiling import Interval, TileGrid, Tiling, tile_grid
from spmilp.machine.machine import Machine
from spmilp.units import Box, Bytes, Cycles, Extents, align_up

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


SUMS = "the partial sum"
SUMS_BEFORE = "the partial sum before"


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Bytes that the largest task of a tiling needs at one time.

    Parameters
    ----------
    parts
        ``(name, bytes)`` of each operand, partial sum and output, aligned. A partial sum is written
        over the one before.
    ahead
        Bytes of what comes in for the next task during this one. Where the next task adds to the
        same partial sum that is its operands, else another working set.
    """

    parts: tuple[tuple[str, Bytes], ...]
    ahead: Bytes

    @cached_property
    def bytes(self) -> Bytes:
        """The working set."""
        return sum(size for _, size in self.parts)

    @property
    def with_next(self) -> Bytes:
        """The working set and what the next task needs besides."""
        return self.bytes + self.ahead


class GroupModel:
    """Answers questions about the tiles of one group on one machine, and remembers the answers."""

    def __init__(self, network: Network, group: Group, machine: Machine) -> None:
        self.group = group
        self.shape = network.tensors[group.output].shape
        self.splittable = splittable_axes(network, group)
        self.reduction = reduction_length(network, group)
        self._tensors = network.tensors
        made = network.tensors[group.output].dtype
        self._item = made.itemsize
        self._overwritable = {
            name
            for name in overwritable_inputs(network, group)
            if network.tensors[name].dtype == made
        }
        self._kinds = machine.kinds
        self._alignment = machine_rates(machine).alignment
        self._computation = Computation(network, group, self.reduction)
        computed = {other.output for other in network.groups}
        small = whole_below(machine)
        self._small = {
            name
            for name in group.inputs
            if name not in computed and network.tensors[name].bytes <= small
        }
        self.input_items = tuple(network.tensors[name].dtype.itemsize for name in group.inputs)
        self._axis_reads = AxisReads(whole(self.shape), self._read)
        self._footprints: dict[Tiling, Footprint] = {}

    def grid(self, tiling: Tiling) -> TileGrid:
        """Return the tiles of a tiling."""
        return tile_grid(tiling, self.shape, self.reduction)

    def footprint(self, tiling: Tiling) -> Footprint:
        """Return the needs of the largest tile: the longest intervals, inner ones before outer."""
        if tiling not in self._footprints:
            grid = self.grid(tiling)
            box = tuple(map(_longest, grid.axes))
            parts = dict.fromkeys((grid.parts[0], grid.parts[len(grid.parts) // 2], grid.parts[-1]))
            needs = [self._needs(box, part, grid) for part in parts]
            largest = max(needs, key=lambda found: sum(size for _, size in found))
            ahead = sum(size for _, size in largest)
            if len(grid.parts) > 1:
                ahead = sum(size for name, size in needs[1] if name != SUMS)
            self._footprints[tiling] = Footprint(parts=largest, ahead=ahead)
        return self._footprints[tiling]

    def least_bytes(self, tiling: Tiling) -> Bytes:
        """Return what the largest task needs at least, with its result written over an operand.

        That is an operand that the group may overwrite, where it is no partial sum.
        """
        footprint = self.footprint(tiling)
        if tiling.parts > 1 and self._item == PARTIAL_ITEM:
            return footprint.bytes
        sizes = dict(footprint.parts)
        over = max((sizes.get(name, 0) for name in self._overwritable), default=0)
        return footprint.bytes - min(over, footprint.parts[-1][1])

    def cycles(self, grid: TileGrid) -> tuple[Cycles | None, ...]:
        """Return the cycles of the largest tile on each kind of core, its parts added up.

        ``None`` where a kind cannot run it.
        """
        box = tuple(map(_longest, grid.axes))
        ends = {grid.parts[0], grid.parts[-1]}
        # Of parts between, those of one length are alike; a product may be cut into thousands.
        alike: dict[Interval | int, list[Interval]] = {}
        for part in grid.parts:
            alike.setdefault(part if part in ends else part[1] - part[0], []).append(part)
        by_length: list[list[Cycles | None]] = []
        for same in alike.values():
            each = cycles_by_kind(self.group, self._computation.work(box, same[0]), self._kinds)
            by_length.append([None if one is None else len(same) * one for one in each])
        return tuple(map(_sum, zip(*by_length, strict=True)))

    def reads(self, grid: TileGrid) -> Mapping[str, Reads]:
        """Return what each tile reads of each input, all parts together.

        Where a few tiles do not tell all others (two axes of the output drive one of an input, as
        in a reshape), every tile is asked.
        """
        found = self.axis_reads(grid)
        return self._all_reads(grid) if found is None else found

    def axis_reads(self, grid: TileGrid) -> Mapping[str, Reads] | None:
        """Return the same, or ``None`` where every tile would have to be asked."""
        return self._axis_reads.of(grid)

    def intervals_read(
        self, grid: TileGrid, most: int
    ) -> Mapping[str, tuple[Sequence[Interval], ...]]:
        """Return what tiles read along each axis of each input, of so many tiles along an axis.

        One interval where it is the same for all. Inputs are left out where single axes of the
        output do not tell, or some tiles read nothing.
        """

        def some(axis: tuple[Interval, ...]) -> tuple[Interval, ...]:
            step = -(-len(axis) // most)
            return axis[step // 2 :: step]

        found = self.axis_reads(replace(grid, axes=tuple(map(some, grid.axes)))) or {}
        result: dict[str, tuple[Sequence[Interval], ...]] = {}
        for name, reads in found.items():
            if not reads.masks:
                along: list[Sequence[Interval]] = [[interval] for interval in reads.base]
                for axis, _, column in reads.columns:
                    along[axis] = [(start, stop) for start, stop in column.tolist()]
                result[name] = tuple(along)
        return result

    def middle_reads(self, grid: TileGrid, *, is_last: bool = False) -> Mapping[str, Box]:
        """Return what the largest tile reads for a part in the middle, or for the last part."""
        part = grid.parts[-1 if is_last else len(grid.parts) // 2]
        return self._computation.reads(tuple(map(_longest, grid.axes)), part)

    def touched(self, grid: TileGrid) -> Iterator[tuple[Box, Extents, Bytes]]:
        """Yield a box, the shape of its tensor and the bytes of an element, of what tiles touch.

        Of the first two tiles and the last along each axis; only of results where reads of one tile
        do not tell those of others.
        """
        reads = self.axis_reads(grid) or {}
        ends = [sorted({0, min(1, len(axis) - 1), len(axis) - 1}) for axis in grid.axes]
        for place in product(*ends):
            box = tuple(axis[at] for axis, at in zip(grid.axes, place, strict=True))
            yield box, self.shape, self._item
            for name, read in reads.items():
                tensor, found = self._tensors[name], read.at(place)
                if found is not None:
                    yield found, tensor.shape, tensor.dtype.itemsize

    @cached_property
    def drivers(self) -> Mapping[str, Mapping[int, int]]:
        """For each input its axes that an axis of the output drives, or the reduction (as -1)."""
        box, part = whole(self.shape), (0, self.reduction)
        halves = {
            axis: ((*box[:axis], (0, length // 2), *box[axis + 1 :]), part)
            for axis, (length, split) in enumerate(zip(self.shape, self.splittable, strict=True))
            if split
        }
        if self.reduction > 1:
            halves[-1] = box, (0, self.reduction // 2)
        full = self._computation.reads(box, part)
        found: dict[str, dict[int, int]] = {name: {} for name in full}
        for driver, (tile, some) in halves.items():
            for name, read in self._computation.reads(tile, some).items():
                for axis, (one, other) in enumerate(zip(read, full[name], strict=True)):
                    if one != other:
                        found[name].setdefault(axis, driver)
        return found

    def smallest(self) -> tuple[Box, Tiling]:
        """Return a tile that needs as little as any that the group can be cut into, and its tiling.

        Parts of the reduction need room for partial sums, so that it may be better not to cut it.
        """
        counts = tuple(
            length if splits else 1
            for length, splits in zip(self.shape, self.splittable, strict=True)
        )
        tilings = (Tiling(counts=counts, parts=parts) for parts in (1, self.reduction))
        tiling = min(tilings, key=self.least_bytes)
        return tuple(map(_longest, self.grid(tiling).axes)), tiling

    @property
    def dtype(self) -> str:
        """The data type in which the group computes."""
        return self._computation.work(whole(self.shape), (0, self.reduction)).dtype

    @cached_property
    def loops(self) -> dict[int, str]:
        """The loop of the MACs that each axis of the output drives, where it drives one."""
        box, part = whole(self.shape), (0, self.reduction)
        full = dict(self._computation.work(box, part).loops)
        found = {}
        for axis, (length, split) in enumerate(zip(self.shape, self.splittable, strict=True)):
            if split:
                halved = (*box[:axis], (0, length // 2), *box[axis + 1 :])
                loops = dict(self._computation.work(halved, part).loops)
                changed = [loop for loop, trip in full.items() if loops.get(loop) != trip]
                if len(changed) == 1:
                    found[axis] = changed[0]
        return found

    def _needs(self, box: Box, part: Interval, grid: TileGrid) -> tuple[tuple[str, Bytes], ...]:
        found = []
        for name, read in self._computation.reads(box, part).items():
            tensor = self._tensors[name]
            elements = prod(tensor.shape) if name in self._small else volume(read)
            found.append((name, self._aligned(elements * tensor.dtype.itemsize)))
        sums = self._aligned(volume(box) * PARTIAL_ITEM)
        if part != grid.parts[-1]:
            return (*found, (SUMS, sums))
        if part != grid.parts[0] and self._item != PARTIAL_ITEM:
            found.append((SUMS_BEFORE, sums))
        return (*found, (self.group.output, self._aligned(volume(box) * self._item)))

    def _aligned(self, size: Bytes) -> Bytes:
        return align_up(size, self._alignment)

    def _read(self, box: Box) -> dict[str, Box]:
        return self._computation.reads(box, (0, self.reduction))

    def _all_reads(self, grid: TileGrid) -> Mapping[str, Reads]:
        """Ask every tile; it has an empty box for an input of which it reads nothing."""
        reads = [self._read(box) for box in grid.boxes()]
        names = [name for name in self.group.inputs if any(name in read for read in reads)]
        found = {}
        for name in names:
            rank = len(self._tensors[name].shape)
            nothing = ((0, 0),) * rank
            rows = [read.get(name, nothing) for read in reads]
            boxes = np.array(rows, dtype=np.int64).reshape(len(reads), rank, 2)
            found[name] = Reads(key=boxes.tobytes(), given=boxes)
        return found


def _sum(values: tuple[Cycles | None, ...]) -> Cycles | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _longest(axis: tuple[Interval, ...]) -> Interval:
    """Return the longest interval, the one nearest the middle: halos are clipped at the ends."""
    middle = (len(axis) - 1) / 2
    best = min(
        range(len(axis)),
        key=lambda i: (axis[i][0] - axis[i][1], abs(i - middle)),
    )
    return axis[best]


class TileShrinker:
    """Cuts tilings further and further, each into the one with the smallest working set.

    The way is the same for every limit, so steps are remembered.

    Parameters
    ----------
    splits_reduction
        Whether the reduction may be cut.
    axes
        Those of the output that may be cut; all of them by default.
    bytes_of
        The working set of a tiling; that of its footprint by default.
    """

    def __init__(
        self,
        model: GroupModel,
        splits_reduction: bool,
        bytes_of: Callable[[Tiling], Bytes] | None = None,
        *,
        axes: Collection[int] | None = None,
    ) -> None:
        self._model = model
        self._bytes_of = bytes_of or (lambda tiling: model.footprint(tiling).bytes)
        self._splits_reduction = splits_reduction
        self._axes = range(len(model.shape)) if axes is None else axes
        self._next: dict[Tiling, Tiling | None] = {}

    def until_it_fits(self, tiling: Tiling, limit: Bytes) -> Tiling | None:
        """Return the first tiling whose largest tile fits; ``None`` if there is none."""
        found: Tiling | None = tiling
        while found is not None and self._bytes_of(found) > limit:
            if found not in self._next:
                self._next[found] = min(self._one_step(found), key=self._bytes_of, default=None)
            found = self._next[found]
        return found

    def _one_step(self, tiling: Tiling) -> Iterator[Tiling]:
        """Yield the tilings with twice the tiles along one axis, or twice the parts."""
        model = self._model
        for axis, splits in enumerate(model.splittable):
            length, count = model.shape[axis], tiling.counts[axis]
            if axis in self._axes and splits and count < length:
                more = tiling.with_count(axis, min(2 * count, length))
                multiples = tiling.multiples
                if multiples and 2 * count * multiples[axis] > length:
                    multiples = (*multiples[:axis], 1, *multiples[axis + 1 :])
                yield Tiling(counts=more.counts, parts=tiling.parts, multiples=multiples)
        if self._splits_reduction and tiling.parts < model.reduction:
            parts = min(2 * tiling.parts, model.reduction)
            yield Tiling(counts=tiling.counts, parts=parts, multiples=tiling.multiples)
