"""How many pieces of their operands tasks read, and the bytes that they need at one time."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod

from spmilp.errors import Shortage
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import PARTIAL_ITEM, class_of
from spmilp.lowering.limits import dma_limits
from spmilp.lowering.rates import machine_rates, usable_bytes
from spmilp.lowering.storage import whole_below
from spmilp.lowering.tiling import Grid, Interval, Tiling, covered_by, grid_of_reads, split
from spmilp.machine.machine import Core, Machine
from spmilp.problem.strides import row_major_strides
from spmilp.tile_selection.group_model import SUMS, SUMS_BEFORE, GroupModel
from spmilp.units import Box, Bytes, Extents, align_up

INTERVALS_ASKED = 16
"""Along one axis of the output; what is read for others in between is much the same."""

Tilings = Mapping[int, Tiling]


class PieceCounts:
    """Counts the slices that all tasks of a group read, under its tiling and those of producers.

    An estimate: intervals along different axes are taken to be independent, and what the limits of
    DMA cut once more is seen at the middle tile. Groups that are alike share what was found.
    """

    def __init__(self, network: Network, machine: Machine) -> None:
        self.network = network
        self.machine = machine
        self.small = whole_below(machine)
        self._limits = dma_limits(machine)
        numbers: dict[Hashable, int] = {}
        classes = (class_of(network, group) for group in network.groups)
        self._classes = [numbers.setdefault(one, len(numbers)) for one in classes]
        self._models: dict[int, GroupModel] = {}
        self._grids: dict[tuple[int, Tiling], Grid] = {}
        self._reads: dict[tuple[int, Tiling], Mapping[str, tuple[Sequence[Interval], ...]]] = {}
        self._counts: dict[Hashable, float] = {}

    def model(self, group: Group) -> GroupModel:
        """Return the model of a group, or of one that is like it."""
        kind = self._classes[group.index]
        if kind not in self._models:
            self._models[kind] = GroupModel(self.network, group, self.machine)
        return self._models[kind]

    @cached_property
    def producers(self) -> list[list[int | None]]:
        """For each group the ones that compute its inputs; ``None`` for what is given."""
        computed = {group.output: group.index for group in self.network.groups}
        return [[computed.get(name) for name in group.inputs] for group in self.network.groups]

    @cached_property
    def readers(self) -> list[list[tuple[int, int]]]:
        """For each group the ones that read its output, and as which of their inputs."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.network.groups]
        for index, producers in enumerate(self.producers):
            for position, producer in enumerate(producers):
                if producer is not None:
                    found[producer].append((index, position))
        return found

    def of_all(self, tilings: Tilings) -> int:
        """Return the pieces that the tasks of a network read."""
        return round(sum(self.of_group(group, tilings) for group in self.network.groups))

    def of_group(self, group: Group, tilings: Tilings) -> float:
        """Return the pieces that the tasks of a group read.

        Parameters
        ----------
        tilings
            Of the group; and of its producers, where one without tiling counts as one tile.
        """
        tiling = tilings[group.index]
        partial_sums = (tiling.parts - 1) * prod(tiling.counts)
        operands = range(len(group.inputs))
        return partial_sums + sum(self.of_operand(group, one, tilings) for one in operands)

    def of_operand(self, group: Group, position: int, tilings: Tilings) -> float:
        """Return those that are of one input, by its position."""
        tiling, producer = tilings[group.index], self.producers[group.index][position]
        before = None if producer is None else tilings.get(producer)
        of = None if producer is None else self._classes[producer]
        key = self._classes[group.index], tiling, position, of, before
        if key not in self._counts:
            self._counts[key] = self._of_operand(group, position, tiling, before)
        return self._counts[key]

    def largest_pieces(
        self, group: Group, position: int, tilings: Tilings, box: Box
    ) -> list[list[int]]:
        """Return the lengths of the pieces along each axis of an input, for some task.

        Along each axis it is the task that reads most pieces. What is given is taken to be cut as
        the group reads it.

        Parameters
        ----------
        box
            What one of the tasks reads.
        """
        axes = self._intervals(group, position, tilings[group.index], box)
        producer = self.producers[group.index][position]
        if producer is None:
            longest = max(map(len, axes), default=0)
            boxes = [tuple(axis[min(at, len(axis) - 1)] for axis in axes) for at in range(longest)]
            cells = grid_of_reads(boxes, covered_by(boxes)) if boxes else Grid(())
        else:
            cells = self._cells(producer, tilings.get(producer))
        return [_most(cell_axis, some) for cell_axis, some in zip(cells.axes, axes, strict=True)]

    def _of_operand(
        self, group: Group, position: int, tiling: Tiling, before: Tiling | None
    ) -> float:
        producer, model = self.producers[group.index][position], self.model(group)
        # The operands of groups that are alike go by the names of the model's.
        name, grid = model.group.inputs[position], model.grid(tiling)
        middle = model.middle_reads(grid)
        box = middle.get(name, model.middle_reads(grid, is_last=True).get(name))
        if box is None:
            return 0.0
        times = grid.tiles * (tiling.parts if name in middle else 1)
        tensor = self.network.tensors[group.inputs[position]]
        if producer is None:
            if tensor.bytes <= self.small:
                return float(times)
            read = tuple(stop - start for start, stop in box)
            return float(times * self._cut(read, tensor.shape, tensor.dtype.itemsize))
        cells = self._cells(producer, before)
        found = self._cut_further(box, cells, tensor.dtype.itemsize)
        for cell_axis, some in zip(
            cells.axes, self._intervals(group, position, tiling, box), strict=True
        ):
            found *= sum(len(_shares(cell_axis, one)) for one in some) / len(some)
        return times * found

    def _intervals(
        self, group: Group, position: int, tiling: Tiling, box: Box
    ) -> list[Sequence[Interval]]:
        """Return what some of the tasks read along each axis of an input.

        Parameters
        ----------
        box
            What one of the tasks reads; where single axes do not tell, it stands for all.
        """
        key, model = (self._classes[group.index], tiling), self.model(group)
        if key not in self._reads:
            self._reads[key] = model.intervals_read(model.grid(tiling), INTERVALS_ASKED)
        columns = self._reads[key].get(model.group.inputs[position])
        if columns is None:
            return [[here] for here in box]
        return [
            column if len(column) > 1 else _parts_of(column[0], here, tiling.parts)
            for column, here in zip(columns, box, strict=True)
        ]

    def _cut_further(self, box: Box, cells: Grid, item: Bytes) -> float:
        """Return into how many pieces DMA's limits cut the share of a cell, in the mean."""
        limits = self._limits
        if (limits.dimensions, limits.longest, limits.controllers) == (None, None, ()):
            return 1.0
        along = [Counter(_shares(*each)) for each in zip(cells.axes, box, strict=True)]
        shares, pieces = 0, 0
        for combination in product(*(counter.items() for counter in along)):
            times = prod(number for _, number in combination)
            extent = tuple(shared for (shared, _), _ in combination)
            cell = tuple(length for (_, length), _ in combination)
            shares += times
            pieces += times * self._cut(extent, cell, item)
        return pieces / shares if shares else 1.0

    def _cut(self, extent: Extents, container: Extents, item: Bytes) -> int:
        if not extent:
            return 1
        return prod(self._limits.pieces(extent, item, row_major_strides(container, item)))

    def _cells(self, producer: int, tiling: Tiling | None) -> Grid:
        """Return the buffers of what a group computes."""
        group = self.network.groups[producer]
        shape = self.network.tensors[group.output].shape
        tiling = tiling or Tiling(counts=(1,) * len(shape))
        key = self._classes[producer], tiling
        if key not in self._grids:
            self._grids[key] = Grid(self.model(group).grid(tiling).axes)
        return self._grids[key]


def _parts_of(whole: Interval, here: Interval, parts: int) -> Sequence[Interval]:
    """Return what each part of the reduction reads along an axis, from what one of them does."""
    if parts == 1 or here == whole:
        return [here]
    start, stop = whole
    return [(start + first, start + last) for first, last in split(stop - start, parts)]


def _most(cells: Sequence[Interval], intervals: Sequence[Interval]) -> list[int]:
    """Return what that interval shares with each cell which overlaps most of them."""
    shares = (_shares(cells, one) for one in dict.fromkeys(intervals))
    lengths = ([shared for shared, _ in some] for some in shares)
    return max(lengths, key=lambda some: (len(some), sum(some)))


def _shares(cells: Sequence[Interval], interval: Interval) -> list[tuple[int, int]]:
    """Return what an interval has of each cell that it overlaps, and how long that cell is."""
    begin, end = interval
    first = bisect_right(cells, begin, key=lambda cell: cell[1])
    last = bisect_left(cells, end, key=lambda cell: cell[0])
    return [(min(b, end) - max(a, begin), b - a) for a, b in cells[first:last]]


class WorkingSets:
    """Estimates what the largest task of a group needs, every piece of its operands padded.

    An operand comes in pieces, one for each tile of the group that computes it; each of them lies
    at an aligned address. Where scratchpads are small, this padding may be most of a working set,
    and no smaller tiles of the group help, but larger ones of that which it reads.

    Along each axis the interval counts that touches most tiles; so it is rarely too little.

    Parameters
    ----------
    go_on
        Called now and then; what it raises passes on.
    """

    def __init__(self, counts: PieceCounts, go_on: Callable[[], None] = lambda: None) -> None:
        self.counts = counts
        self._go_on = go_on
        self._machine = counts.machine
        self._alignment = machine_rates(counts.machine).alignment
        self._known: dict[Hashable, Bytes] = {}

    def capacity(self, group: Group) -> Bytes:
        """Return the usable bytes of the largest memory of a core that can run a group."""
        return usable_bytes(self._machine, self._roomiest(group))

    def shortage(self, group: Group, tilings: Tilings) -> Shortage | None:
        """Return what a group needs and has; ``None`` where its largest task fits."""
        parts = self.parts(group, tilings)
        needed, usable = sum(size for _, size in parts), self.capacity(group)
        if needed <= usable:
            return None
        memory = self._machine.memories[self._roomiest(group).memory].name
        what = f"group {group.name}"
        return Shortage(what=what, memory=memory, needed=needed, usable=usable, parts=parts)

    def of_group(self, group: Group, tilings: Tilings) -> Bytes:
        """Return the bytes that the largest task of a group needs at one time."""
        producers = self.counts.producers[group.index]
        before = tuple(None if one is None else tilings.get(one) for one in producers)
        key = group.index, tilings[group.index], before
        if key not in self._known:
            self._go_on()
            self._known[key] = sum(size for _, size in self.parts(group, tilings))
        return self._known[key]

    def parts(self, group: Group, tilings: Tilings) -> tuple[tuple[str, Bytes], ...]:
        """Return ``(name, bytes)`` of what the largest task of a group needs."""
        tiling, model = tilings[group.index], self.counts.model(group)
        grid = model.grid(tiling)
        tile = prod(max(stop - start for start, stop in axis) for axis in grid.axes)
        item = self.counts.network.tensors[group.output].dtype.itemsize
        sums, result = self._aligned(tile * PARTIAL_ITEM), self._aligned(tile * item)
        last = [(group.output, result)]
        if tiling.parts > 1 and item != PARTIAL_ITEM:
            last.append((SUMS_BEFORE, sums))
        found = []
        for is_last in {tiling.parts == 1, True}:
            # A partial sum is written over the one before.
            written = last if is_last else [(SUMS, sums)]
            boxes = model.middle_reads(grid, is_last=is_last)
            found.append((*self._operands(group, tilings, boxes), *written))
        return max(found, key=lambda parts: sum(size for _, size in parts))

    def _operands(
        self, group: Group, tilings: Tilings, boxes: Mapping[str, Box]
    ) -> Iterator[tuple[str, Bytes]]:
        model = self.counts.model(group)
        for position, name in enumerate(group.inputs):
            # The operands of groups that are alike go by the names of the model's.
            box = boxes.get(model.group.inputs[position])
            if box is None:
                continue
            tensor = self.counts.network.tensors[name]
            is_given = self.counts.producers[group.index][position] is None
            if is_given and tensor.bytes <= self.counts.small:
                yield name, self._aligned(tensor.bytes)
                continue
            pieces = self.counts.largest_pieces(group, position, tilings, box)
            lengths = (prod(piece) * tensor.dtype.itemsize for piece in product(*pieces))
            yield name, sum(map(self._aligned, lengths))

    def _roomiest(self, group: Group) -> Core:
        model = self.counts.model(group)
        untiled = model.cycles(model.grid(Tiling(counts=(1,) * len(model.shape))))
        able = (core for core in self._machine.cores if untiled[core.kind] is not None)
        return max(able, key=lambda core: usable_bytes(self._machine, core))

    def _aligned(self, size: Bytes) -> Bytes:
        return align_up(size, self._alignment)
