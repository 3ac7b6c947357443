"""How many pieces of their operands tasks read, and the bytes that they need at one time."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import product
from math import prod

from spmilp.errors import Shortage
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import extents
from spmilp.frontend.workspace import lies_in_one_run
from spmilp.lowering.limits import dma_limits
from spmilp.lowering.rates import usable_bytes
from spmilp.lowering.storage import whole_below
from spmilp.lowering.tiling import Grid, Tiling, covered_by, grid_of_reads, split
from spmilp.machine.machine import Core, Machine
from spmilp.problem.strides import row_major_strides
from spmilp.tile_selection.group_model import GroupModels, Parts, total_of
from spmilp.units import Box, Bytes, Extents, Interval

INTERVALS_ASKED = 16
"""Along one axis of the output; what is read for others in between is much the same."""

Tilings = Mapping[int, Tiling]


class PieceCounts(GroupModels):
    """Counts the slices that all tasks of a group read, under its tiling and those of producers.

    An estimate: intervals along different axes are taken to be independent, and what the limits of
    DMA cut once more is seen at the middle tile. Groups that are alike share what was found.
    """

    def __init__(self, network: Network, machine: Machine) -> None:
        super().__init__(network, machine)
        self.small = whole_below(machine)
        self._limits = dma_limits(machine)
        self._grids: dict[tuple[int, Tiling], Grid] = {}
        self._reads: dict[tuple[int, Tiling], Mapping[str, tuple[Sequence[Interval], ...]]] = {}
        self._counts: dict[Hashable, float] = {}

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
        of = None if producer is None else self.classes[producer]
        key = self.classes[group.index], tiling, position, of, before
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
            cells = self.cells(producer, tilings.get(producer))
        return [_most(cell_axis, some) for cell_axis, some in zip(cells.axes, axes, strict=True)]

    def _of_operand(
        self, group: Group, position: int, tiling: Tiling, before: Tiling | None
    ) -> float:
        producer, model = self.producers[group.index][position], self.model(group)
        name, grid = model.group.inputs[position], model.grid(tiling)
        middle = model.middle_reads(grid)
        box = middle.get(name, model.middle_reads(grid, is_last=True).get(name))
        if box is None:
            return 0.0
        times = grid.cells * (tiling.parts if name in middle else 1)
        tensor = self.network.tensors[group.inputs[position]]
        if producer is None:
            if tensor.bytes <= self.small:
                return float(times)
            read = tuple(stop - start for start, stop in box)
            return float(times * self._cut(read, tensor.shape, tensor.dtype.itemsize))
        cells = self.cells(producer, before)
        found = self._cut_further(box, cells, tensor.dtype.itemsize)
        intervals = self._intervals(group, position, tiling, box)
        for cell_axis, some in zip(cells.axes, intervals, strict=True):
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
        key, model = (self.classes[group.index], tiling), self.model(group)
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

    def cells(self, producer: int, tiling: Tiling | None) -> Grid:
        """Return the buffers of what a group computes."""
        model = self.model(self.network.groups[producer])
        key = self.classes[producer], tiling or model.uncut
        if key not in self._grids:
            self._grids[key] = Grid(model.grid(key[1]).axes)
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
        self._known: dict[Hashable, Bytes] = {}

    def capacity(self, group: Group) -> Bytes:
        """Return the usable bytes of the largest memory of a core that can run a group."""
        return usable_bytes(self.counts.machine, self._roomiest(group))

    def shortage(self, group: Group, tilings: Tilings) -> Shortage | None:
        """Return what a group needs and has; ``None`` where its largest task fits."""
        parts, usable = self.parts(group, tilings), self.capacity(group)
        if total_of(parts) <= usable:
            return None
        memory = self.counts.machine.memories[self._roomiest(group).memory].name
        needed, what = total_of(parts), f"group {group.name}"
        return Shortage(what=what, memory=memory, needed=needed, usable=usable, parts=parts)

    def of_group(self, group: Group, tilings: Tilings) -> Bytes:
        """Return the bytes that the largest task of a group needs at one time."""
        producers = self.counts.producers[group.index]
        before = tuple(None if one is None else tilings.get(one) for one in producers)
        key = group.index, tilings[group.index], before
        if key not in self._known:
            self._go_on()
            self._known[key] = total_of(self.parts(group, tilings))
        return self._known[key]

    def parts(self, group: Group, tilings: Tilings) -> Parts:
        """Return ``(name, bytes)`` of what the largest task of a group needs."""
        model = self.counts.model(group)
        grid = model.grid(tilings[group.index])

        def held(name: str, box: Box) -> tuple[Bytes, bool]:
            return self._held(group, model.group.inputs.index(name), tilings, box)

        parts = dict.fromkeys((grid.parts[len(grid.parts) // 2], grid.parts[-1]))
        needs = (model.needs(grid, part, held) for part in parts)
        largest = max(needs, key=total_of)
        names = dict(zip(model.group.inputs, group.inputs, strict=True))
        names[model.group.output] = group.output
        return tuple((names.get(name, name), size) for name, size in largest)

    def _held(self, group: Group, position: int, tilings: Tilings, box: Box) -> tuple[Bytes, bool]:
        """Return an operand's bytes with the padding of its pieces, and whether it lies packed."""
        counts, aligned = self.counts, self.counts.model(group).aligned
        tensor = counts.network.tensors[group.inputs[position]]
        producer, around = counts.producers[group.index][position], extents(box)
        if producer is not None:
            around = counts.cells(producer, tilings.get(producer)).largest
        pieces = counts.largest_pieces(group, position, tilings, box)
        is_packed = all(len(axis) == 1 for axis in pieces) and lies_in_one_run(extents(box), around)
        if producer is None and tensor.bytes <= counts.small:
            return aligned(tensor.bytes), is_packed
        sizes = (aligned(prod(piece) * tensor.dtype.itemsize) for piece in product(*pieces))
        return sum(sizes), is_packed

    def _roomiest(self, group: Group) -> Core:
        able, machine = self.counts.model(group).able_kinds, self.counts.machine
        cores = (core for core in machine.cores if able[core.kind])
        return max(cores, key=lambda core: usable_bytes(machine, core))
