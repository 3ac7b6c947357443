"""What the tiles of one group read, hold and cost under any tiling; tilings cut until they fit."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.cached import Cache, cached
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.regions import overwritable_inputs, splittable_axes
from spmilp.frontend.workspace import OVERWRITTEN, PARTIAL_ITEM, stated_bytes
from spmilp.frontend.workspace import SUMS as SUMS_IN_PIECES
from spmilp.lowering.cost import can_run, cycles_by_kind
from spmilp.lowering.groups import class_of, computation_of, reduction_length
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.storage import whole_below
from spmilp.lowering.tiling import TileGrid, Tiling, tile_grid
from spmilp.machine.machine import Machine
from spmilp.solvers.schedule.kernels.records import numbered
from spmilp.units import Box, Bytes, Cycles, Extents, Interval, align_up

Boxes: TypeAlias = NDArray[np.int64]
"""Boxes of one tensor, one per tile: ``[tile, axis, (start, stop)]``."""

Columns: TypeAlias = tuple[tuple[int, int, Boxes], ...]
"""Axes of a tensor that follow an axis of the output: its number, the output's, and the interval
for each of the tiles along that; an empty one where these read nothing of the tensor."""


@dataclass(frozen=True, eq=False)
class Reads:
    """The box that each tile of a grid reads of one tensor.

    Parameters
    ----------
    key
        The same for equal boxes, as a rule.
    counts
        Tiles along each axis of the output.
    base
        What is read where no axis of the output says otherwise.
    given
        The boxes themselves, where single axes of the output do not tell.
    """

    key: bytes
    counts: tuple[int, ...] = ()
    base: Box = ()
    columns: Columns = ()
    given: Boxes | None = None

    @cached_property
    def boxes(self) -> Boxes:
        """One box per tile, in row-major order; all zeros for a tile that reads nothing."""
        if self.given is not None:
            return self.given
        rank = len(self.base)
        result = np.empty((*self.counts, rank, 2), dtype=np.int64)
        result[...] = np.array(self.base, dtype=np.int64).reshape(rank, 2)
        for axis, driver, intervals in self.columns:
            shape = [1] * len(self.counts) + [2]
            shape[driver] = len(intervals)
            result[..., axis, :] = intervals.reshape(shape)
        boxes: Boxes = result.reshape(prod(self.counts), rank, 2)
        boxes[np.any(boxes[:, :, 0] >= boxes[:, :, 1], axis=1)] = 0
        return boxes

    @property
    def are_partly_empty(self) -> bool:
        """Whether some tiles read nothing."""
        return any((column[:, 0] >= column[:, 1]).any() for _, _, column in self.columns)

    def at(self, place: Sequence[int]) -> Box | None:
        """Return the box of the tile at a place of the grid; ``None`` if it reads nothing."""
        box = list(self.base)
        for axis, driver, intervals in self.columns:
            start, stop = intervals[place[driver]].tolist()
            box[axis] = (start, stop)
        return tuple(box) if all(start < stop for start, stop in box) else None


def tiles_of(grid: TileGrid) -> Boxes:
    """Return the tiles of a grid as an array, in row-major order."""
    rows = list(product(*grid.axes))
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(grid.axes), 2)


def volumes(boxes: Boxes) -> NDArray[np.float64]:
    """Return the number of elements of each box."""
    sizes: NDArray[np.float64] = np.prod(boxes[:, :, 1] - boxes[:, :, 0], axis=1, dtype=np.float64)
    return sizes


class AxisReads:
    """Derives the reads of any grid from those along each axis of a group's output.

    The intervals of an input's axis nearly always depend on one axis of the output. What a slab of
    the output reads, an interval of one axis and all of the others, then tells all tiles in it; a
    slab is asked once for all grids. Whether that is so is seen from the middle tile and those at
    the ends of the first grid that cuts the same axes.

    Parameters
    ----------
    read
        Gives the box of each tensor that a tile reads, without those of which it reads nothing.
    """

    def __init__(self, whole: Box, read: Callable[[Box], Mapping[str, Box]]) -> None:
        self._whole = whole
        self._read = read
        self._slabs: dict[tuple[int, Interval], Mapping[str, Box]] = {}
        self.cache = Cache()
        self._are_right: dict[tuple[bool, ...], bool] = {}

    def of(self, grid: TileGrid) -> Mapping[str, Reads] | None:
        """Return what the tiles read; ``None`` where slabs do not tell."""
        along = [self._columns_along(number, axis) for number, axis in enumerate(grid.axes)]
        found = {}
        for name, base in self._everything.items():
            columns = tuple(one for of_axis in along for one in of_axis[name])
            if len({axis for axis, _, _ in columns}) < len(columns):
                return None  # Two axes of the output drive one of the tensor.
            if not base and any(name not in slab for slab in self._slabs.values()):
                return None  # No axis of a scalar says that some tiles do not read it.
            key = repr((base, columns and grid.counts)).encode()
            key += b"".join(b"%d,%d:%s" % (a, d, each.tobytes()) for a, d, each in columns)
            found[name] = Reads(key=key, counts=grid.counts, base=base, columns=columns)
        cut = tuple(count > 1 for count in grid.counts)
        if cut not in self._are_right:
            places = zip(*((0, count // 2, count - 1) for count in grid.counts), strict=True)
            self._are_right[cut] = all(self._are_right_at(place, grid, found) for place in places)
        return found if self._are_right[cut] else None

    def _are_right_at(
        self, place: Sequence[int], grid: TileGrid, found: Mapping[str, Reads]
    ) -> bool:
        """Return whether the tile at some place reads what was found."""
        tile = tuple(axis[position] for axis, position in zip(grid.axes, place, strict=True))
        read = self._read(tile)
        return all(reads.at(place) == read.get(name) for name, reads in found.items())

    @cached
    def _columns_along(self, number: int, axis: tuple[Interval, ...]) -> Mapping[str, Columns]:
        """Return the axes of each tensor of which not all slabs of one axis read everything."""
        slabs = [self._slab(number, interval) for interval in axis]
        return {
            name: tuple(_columns(base, number, [slab.get(name) for slab in slabs]))
            for name, base in self._everything.items()
        }

    def _slab(self, number: int, interval: Interval) -> Mapping[str, Box]:
        if interval == self._whole[number]:
            return self._everything
        if (number, interval) not in self._slabs:
            box = (*self._whole[:number], interval, *self._whole[number + 1 :])
            self._slabs[number, interval] = self._read(box)
        return self._slabs[number, interval]

    @cached_property
    def _everything(self) -> Mapping[str, Box]:
        return self._read(self._whole)


def _columns(
    base: Box, driver: int, slabs: Sequence[Box | None]
) -> Iterator[tuple[int, int, Boxes]]:
    """Yield the axes of which slabs read different intervals; one of them where some read nothing.

    For these the first axis that differs says so, or the last of all.
    """
    read = [slab for slab in slabs if slab is not None]
    axes = [axis for axis, all_ in enumerate(base) if any(slab[axis] != all_ for slab in read)]
    if base and len(read) < len(slabs) and not axes:
        axes = [len(base) - 1]
    for axis in axes:
        rows = [(0, 0) if slab is None else slab[axis] for slab in slabs]
        yield axis, driver, np.array(rows, dtype=np.int64)


SUMS = "the partial sum"
SUMS_BEFORE = "the partial sum before"
WORKSPACE = "workspace of its kernels"

Parts: TypeAlias = tuple[tuple[str, Bytes], ...]
"""``(name, bytes)`` of each operand, the workspace, partial sum and output of a task, aligned. A
partial sum is written over the one before."""


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Bytes that the largest task of a tiling needs at one time.

    Parameters
    ----------
    parts
        What it needs.
    ahead
        Bytes of what comes in for the next task during this one. Where the next task adds to the
        same partial sum that is its operands, else another working set.
    """

    parts: Parts
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
        self.input_items = tuple(network.tensors[name].dtype.itemsize for name in group.inputs)
        self._tensors = network.tensors
        self._item = network.tensors[group.output].dtype.itemsize
        self._overwritable = overwritable_inputs(network, group)
        self._kinds = machine.kinds
        self._alignment = machine_rates(machine).alignment
        self._computation = computation_of(network, group)
        self._box, self._part = whole(self.shape), (0, self.reduction)
        computed = {other.output for other in network.groups}
        small = whole_below(machine)
        self._small = {
            name
            for name in group.inputs
            if name not in computed and network.tensors[name].bytes <= small
        }
        self._weights = set(group.inputs).difference(computed, network.inputs)
        self._axis_reads = AxisReads(self._box, self._read)
        self.cache = Cache()

    def grid(self, tiling: Tiling) -> TileGrid:
        """Return the tiles of a tiling."""
        return tile_grid(tiling, self.shape, self.reduction)

    @property
    def uncut(self) -> Tiling:
        """The tiling with one tile."""
        return Tiling(counts=(1,) * len(self.shape))

    @property
    def axes_to_cut(self) -> list[int]:
        """The axes of the output that tiles may split."""
        return [axis for axis, splits in enumerate(self.splittable) if splits]

    @cached
    def footprint(self, tiling: Tiling) -> Footprint:
        """Return the needs of the largest tile: the longest intervals, inner ones before outer."""
        grid = self.grid(tiling)
        parts = dict.fromkeys((grid.parts[0], grid.parts[len(grid.parts) // 2], grid.parts[-1]))
        needs = [self.needs(grid, part) for part in parts]
        largest = max(needs, key=total_of)
        ahead = sum(size for name, size in largest if name != WORKSPACE)
        if len(grid.parts) > 1:
            ahead = sum(size for name, size in needs[1] if name not in (SUMS, WORKSPACE))
        return Footprint(parts=largest, ahead=ahead)

    def needs(
        self,
        grid: TileGrid,
        part: Interval,
        held: Callable[[str, Box], tuple[Bytes, bool]] | None = None,
    ) -> Parts:
        """Return what the largest tile's task for one part of the reduction needs.

        Parameters
        ----------
        held
            The bytes of a box of an operand, aligned, and whether it lies packed. By default those
            of the box as one piece, packed if it is all of the tensor, or as large as the tile,
            which stands for tiles of the same boxes, and of weights.
        """
        box = largest_box(grid)

        def as_one_piece(name: str, read: Box) -> tuple[Bytes, bool]:
            tensor, elements = self._tensors[name], volume(read)
            everything = prod(tensor.shape)
            is_alike = read == box or (self.reduction == 1 and elements == volume(box))
            is_packed = is_alike or name in self._weights or elements == everything
            # What is small is always read whole.
            size = everything if name in self._small else elements
            return self.aligned(size * tensor.dtype.itemsize), is_packed

        found, notes = list[tuple[str, Bytes]](), set[str]()
        for name, read in self._computation.reads(box, part).items():
            size, is_packed = (held or as_one_piece)(name, read)
            found.append((name, size))
            if not is_packed:
                notes.add(name)
        workspace = self._workspace(box, part, frozenset(notes))
        if workspace:
            found.append((WORKSPACE, workspace))
        sums = self.aligned(volume(box) * PARTIAL_ITEM)
        if part != grid.parts[-1]:
            return (*found, (SUMS, sums))
        if part != grid.parts[0] and self._item != PARTIAL_ITEM:
            found.append((SUMS_BEFORE, sums))
        return (*found, (self.group.output, self.aligned(volume(box) * self._item)))

    def least_bytes(self, tiling: Tiling) -> Bytes:
        """Return what the largest task needs at least, with its result written over an operand.

        That is an operand that the group may overwrite, where it is no partial sum.
        """
        footprint = self.footprint(tiling)
        if tiling.parts > 1 and self._item == PARTIAL_ITEM:
            return footprint.bytes
        parts = self.least_parts(tiling)
        sizes = dict(parts)
        over = max((sizes.get(name, 0) for name in self._overwritable), default=0)
        return total_of(parts) - min(over, parts[-1][1])

    def packed_bytes(self, tiling: Tiling) -> Bytes:
        """Return what the largest tile needs if all of its operands lie packed."""
        return total_of(self.least_parts(tiling))

    def least_parts(self, tiling: Tiling) -> Parts:
        """Return the needs of the largest tile if all of its operands lie packed."""
        box = largest_box(self.grid(tiling))
        least = self._workspace(box, self._part, frozenset())
        needs = self.footprint(tiling).parts
        return tuple((n, min(size, least) if n == WORKSPACE else size) for n, size in needs)

    def _workspace(self, box: Box, part: Interval, notes: frozenset[str]) -> Bytes:
        """Return the scratch of a tile's task, aligned."""
        over = {OVERWRITTEN + name for name in self._overwritable}
        if part[0] > 0 and self._item == PARTIAL_ITEM:
            over.add(OVERWRITTEN + SUMS_IN_PIECES)
        needed = self._computation.workspace(box, part, notes | over).bytes
        kinds = [kind for kind in self._kinds if can_run(kind, self.group)]
        anchor = self.group.operators[self.group.anchor].kind
        return self.aligned(stated_bytes(needed, anchor, kinds))

    def aligned(self, size: Bytes) -> Bytes:
        """Return the bytes that a piece takes in a core's memory."""
        return align_up(size, self._alignment)

    def cycles(self, grid: TileGrid) -> tuple[Cycles | None, ...]:
        """Return the cycles of the largest tile on each kind of core, its parts added up.

        ``None`` where a kind cannot run it.
        """
        box, ends = largest_box(grid), {grid.parts[0], grid.parts[-1]}
        # Of parts between, those of one length are alike; a product may be cut into thousands.
        first_like: dict[Interval | int, Interval] = {}
        alike = [part if part in ends else part[1] - part[0] for part in grid.parts]
        for like, part in zip(alike, grid.parts, strict=True):
            first_like.setdefault(like, part)
        total: list[Cycles | None] = [0] * len(self._kinds)
        for like, times in Counter(alike).items():
            work = self._computation.work(box, first_like[like])
            each = cycles_by_kind(self.group, work, self._kinds)
            total = [
                None if sum_ is None or one is None else sum_ + times * one
                for sum_, one in zip(total, each, strict=True)
            ]
        return tuple(total)

    @cached_property
    def able_kinds(self) -> tuple[bool, ...]:
        """Whether each kind of core can run the group."""
        return tuple(cycles is not None for cycles in self.cycles(self.grid(self.uncut)))

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
            if not reads.are_partly_empty:
                along: list[Sequence[Interval]] = [[interval] for interval in reads.base]
                for axis, _, column in reads.columns:
                    along[axis] = [(start, stop) for start, stop in column.tolist()]
                result[name] = tuple(along)
        return result

    def middle_reads(self, grid: TileGrid, *, is_last: bool = False) -> Mapping[str, Box]:
        """Return what the largest tile reads for a part in the middle, or for the last part."""
        part = grid.parts[-1 if is_last else len(grid.parts) // 2]
        return self._computation.reads(largest_box(grid), part)

    def touched(self, grid: TileGrid) -> Iterator[tuple[Box, Extents, Bytes]]:
        """Yield a box, the shape of its tensor and the bytes of an element, of what tiles touch.

        Of the first two tiles and the last along each axis; only of results where reads of one tile
        do not tell those of others.
        """
        reads = self.axis_reads(grid) or {}
        ends = [sorted({0, min(1, len(axis) - 1), len(axis) - 1}) for axis in grid.axes]
        for place in product(*ends):
            yield (
                tuple(axis[at] for axis, at in zip(grid.axes, place, strict=True)),
                self.shape,
                self._item,
            )
            for name, read in reads.items():
                tensor, found = self._tensors[name], read.at(place)
                if found is not None:
                    yield found, tensor.shape, tensor.dtype.itemsize

    @cached_property
    def drivers(self) -> Mapping[str, Mapping[int, int]]:
        """For each input its axes that an axis of the output drives, or the reduction (as -1)."""
        halves = {axis: (self._half(axis), self._part) for axis in self.axes_to_cut}
        if self.reduction > 1:
            halves[-1] = self._box, (0, self.reduction // 2)
        full = self._computation.reads(self._box, self._part)
        found: dict[str, dict[int, int]] = {name: {} for name in full}
        for driver, (tile, part) in halves.items():
            for name, read in self._computation.reads(tile, part).items():
                for axis, (one, other) in enumerate(zip(read, full[name], strict=True)):
                    if one != other:
                        found[name].setdefault(axis, driver)
        return found

    def _half(self, axis: int) -> Box:
        return (*self._box[:axis], (0, self.shape[axis] // 2), *self._box[axis + 1 :])

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
        return largest_box(self.grid(tiling)), tiling

    @property
    def dtype(self) -> str:
        """The data type in which the group computes."""
        return self._computation.work(self._box, self._part).dtype

    def _read(self, box: Box) -> dict[str, Box]:
        return self._computation.reads(box, self._part)

    def _all_reads(self, grid: TileGrid) -> Mapping[str, Reads]:
        """Ask every tile; it has an empty box for an input of which it reads nothing."""
        reads = [self._read(box) for box in grid.boxes()]
        names = [name for name in self.group.inputs if any(name in read for read in reads)]
        found = {}
        for name in names:
            rank = len(self._tensors[name].shape)
            rows = [read.get(name, ((0, 0),) * rank) for read in reads]
            boxes = np.array(rows, dtype=np.int64).reshape(len(reads), rank, 2)
            found[name] = Reads(key=boxes.tobytes(), given=boxes)
        return found


def total_of(parts: Parts) -> Bytes:
    """Return the bytes of all parts."""
    return sum(size for _, size in parts)


def largest_box(grid: TileGrid) -> Box:
    """Return the largest tile: the longest interval along each axis.

    Of equal ones that nearest the middle, for halos are clipped at the ends.
    """

    def longest(axis: tuple[Interval, ...]) -> Interval:
        middle = (len(axis) - 1) / 2
        best = min(range(len(axis)), key=lambda i: (axis[i][0] - axis[i][1], abs(i - middle)))
        return axis[best]

    return tuple(map(longest, grid.axes))


class GroupModels:
    """The models of a network's groups, where groups that are alike share one; and their edges.

    The operands of a group that is like the model's go by the names of that one.

    Attributes
    ----------
    producers
        For each group the ones that compute its inputs; ``None`` for what is given.
    readers
        For each group the ones that read its output, and as which of their inputs.
    """

    def __init__(self, network: Network, machine: Machine) -> None:
        self.network = network
        self.machine = machine
        # A number stands for each class: it is hashed a thousand times as fast.
        self.classes = numbered(class_of(network, group) for group in network.groups).tolist()
        self._models: dict[int, GroupModel] = {}
        computed = {group.output: group.index for group in network.groups}
        self.producers = [[computed.get(name) for name in one.inputs] for one in network.groups]
        self.readers: list[list[tuple[int, int]]] = [[] for _ in network.groups]
        for index, producers in enumerate(self.producers):
            for position, producer in enumerate(producers):
                if producer is not None:
                    self.readers[producer].append((index, position))

    def model(self, group: Group) -> GroupModel:
        """Return the model of a group, or of one that is like it."""
        kind = self.classes[group.index]
        if kind not in self._models:
            self._models[kind] = GroupModel(self.network, group, self.machine)
        return self._models[kind]


class TileShrinker:
    """Cuts tilings further and further, each into the one with the smallest working set.

    The way is the same for every limit, so steps are remembered.

    Parameters
    ----------
    splits_reduction
        Whether the reduction may be cut.
    bytes_of
        The working set of a tiling; that of its footprint by default.
    axes
        Those of the output that may be cut; all of them by default.
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
        self._axes = [axis for axis in model.axes_to_cut if axes is None or axis in axes]
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
        for axis in self._axes:
            length, count = model.shape[axis], tiling.counts[axis]
            if count < length:
                yield tiling.with_count(axis, min(2 * count, length))
        if self._splits_reduction and tiling.parts < model.reduction:
            yield replace(tiling, parts=min(2 * tiling.parts, model.reduction))
