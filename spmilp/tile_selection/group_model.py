"""Model of one group: what its tiles read, hold and cost under any tiling."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

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
from spmilp.tile_selection.reads import AxisReads, Reads
from spmilp.units import Box, Bytes, Cycles, Extents, align_up

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
