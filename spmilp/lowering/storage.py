"""Where values lie: buffers, DRAM tensors, and the slices of them that tasks read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod

from spmilp.errors import DoesNotFitError, Shortage, SpmilpError
from spmilp.frontend.operators.boxes import volume
from spmilp.lowering.limits import DmaLimits
from spmilp.lowering.rates import MachineRates, usable_bytes
from spmilp.lowering.tiling import Grid, box_name, covered_by, grid_of_reads, split
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Slice, Tile, whole_slice
from spmilp.problem.strides import row_major_strides
from spmilp.units import Box, BufferIdx, Bytes, Extents, Interval, MemoryIdx, SliceIdx, TensorIdx

NO_STATES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """Something that tasks read or write: a tensor, or the partial sums of one part of a group.

    It is ``of`` the tensor, or for partial sums of the group, as ``Tile.of`` says, and
    ``reduction`` is what a partial sum covers; ``None`` for a tensor.
    """

    name: str
    of: str
    kind: BufferKind
    shape: Extents
    item: Bytes
    reduction: Interval | None = None

    def in_memory(self, values: Iterable[int]) -> tuple[int, ...]:
        """Return values for each axis; a scalar lies as one element of one axis, at 0."""
        return tuple(values) if self.shape else (1,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The buffers of a value: one for each cell of a grid, numbered in row-major order.

    Parameters
    ----------
    first
        The buffer of the first cell.
    home_strides
        Bytes between neighbours along each axis of its DRAM tensor, from which slices are copied
        in the worst case: from a packed buffer that takes no more strides. ``None`` without one.
    read_whole
        Tasks read whole buffers of it, even where they need a part.
    """

    value: Value
    grid: Grid
    first: BufferIdx
    home_strides: Extents | None
    read_whole: bool = False


class Storage:
    """Collects buffers and DRAM tensors in the order in which values are added.

    Tensors are spread over a machine's DRAMs in proportion to what their links can send; an output
    that an inference leaves in an input, as ``states`` say, lies in the DRAM of that.

    Raises a ``SpmilpError`` if the machine has no DRAM.
    """

    def __init__(
        self, machine: Machine, limits: DmaLimits, states: Mapping[str, str] = NO_STATES
    ) -> None:
        if not machine.drams:
            raise SpmilpError(
                f"machine {machine.name} has no DRAM, but inputs, weights and outputs lie in one"
            )
        self.limits = limits
        self.buffers: list[Buffer] = []
        self.tensors: list[DramTensor] = []
        self._stored: dict[tuple[str, Interval | None], Stored] = {}
        self._input_of = {output: name for name, output in states.items()}
        self._drams = machine.drams
        self._used = {dram.index: 0 for dram in machine.drams}
        self._rate = {
            dram.index: float(sum(link.rate for link in machine.links if link.source == dram.name))
            or 1.0
            for dram in machine.drams
        }

    def add(self, value: Value, grid: Grid, *, read_whole: bool = False) -> None:
        """Make the buffers of a value: the cells of a grid, cut until one transfer can move each.

        Raises a ``DoesNotFitError`` if it is to lie in DRAM, and none has that many bytes left.
        """
        home = self._home(value)
        strides = None if home is None else row_major_strides(home.shape, home.item)
        refined = self.cut_to_limits(value, grid)
        self._stored[value.of, value.reduction] = Stored(
            value=value,
            grid=refined,
            first=len(self.buffers),
            home_strides=strides,
            read_whole=read_whole,
        )
        for cell in refined.boxes():
            self.buffers.append(_buffer(len(self.buffers), value, cell, home))

    def find(self, of: str, reduction: Interval | None = None) -> Stored:
        """Return the buffers of a tensor, or of a group's partial sums over ``reduction``."""
        return self._stored[of, reduction]

    def cut_to_limits(self, value: Value, grid: Grid) -> Grid:
        """Return the grid with cells that one transfer can move.

        A cell without a home in DRAM lies packed everywhere, so that only its bytes count.
        """
        largest = value.in_memory(grid.largest)
        at_home = value.kind in HAVE_A_HOME
        around = value.in_memory(value.shape) if at_home else largest
        strides = row_major_strides(around, value.item)
        pieces = self.limits.pieces(largest, value.item, strides)
        return grid.refined(pieces) if prod(pieces) > 1 else grid

    def _home(self, value: Value) -> DramTensor | None:
        if value.kind not in HAVE_A_HOME:
            return None
        index: TensorIdx = len(self.tensors)
        shape = value.in_memory(value.shape)
        own = self._input_of.get(value.of)
        state = next((one for one in self.tensors if one.name == own), None)
        if state is None:
            memory = self._chosen_dram(value.name, prod(shape) * value.item)
        else:
            memory = state.memory
            self.tensors[state.index] = replace(state, state=index)
        home = DramTensor(
            index=index, name=value.of, kind=value.kind, memory=memory, shape=shape, item=value.item
        )
        self.tensors.append(home)
        return home

    def _chosen_dram(self, name: str, size: Bytes) -> MemoryIdx:
        """Return the DRAM that is least loaded, for its rate, with a tensor of ``size`` bytes."""
        used = self._used
        with_room = [
            dram.index
            for dram in self._drams
            if dram.usable is None or used[dram.index] + size <= dram.usable
        ]
        if not with_room:
            roomiest = max(self._drams, key=lambda one: (one.usable or 0) - used[one.index])
            usable = roomiest.usable or 0
            raise DoesNotFitError(
                f"tensor {name}: {size} B, but no DRAM has more than "
                f"{usable - used[roomiest.index]} B left; use a machine with a larger DRAM",
                Shortage(
                    what=f"tensor {name}",
                    memory=roomiest.name,
                    needed=used[roomiest.index] + size,
                    usable=usable,
                    parts=((name, size),),
                ),
                is_proven=len(self._drams) == 1,
            )
        chosen = min(with_room, key=lambda dram: (used[dram] + size) / self._rate[dram])
        used[chosen] += size
        return chosen


HAVE_A_HOME = frozenset({BufferKind.INPUT, BufferKind.WEIGHT, BufferKind.OUTPUT})


def _buffer(index: BufferIdx, value: Value, cell: Box, home: DramTensor | None) -> Buffer:
    place = None
    if home is not None:
        start = value.in_memory(start for start, _ in cell) if value.shape else (0,)
        place = Place(home.index, start)
    is_output = value.kind is BufferKind.OUTPUT
    return Buffer(
        index=index,
        name=box_name(value.name, cell, value.shape),
        kind=value.kind,
        shape=value.in_memory(stop - start for start, stop in cell),
        item=value.item,
        starts_in=None if home is None or is_output else home.memory,
        ends_in=home.memory if home is not None and is_output else None,
        place=place,
        tile=Tile(of=value.of, box=cell, reduction=value.reduction),
    )


READ_WHOLE_BELOW: Bytes = 4096
"""A tensor of at most this many bytes is loaded as a whole: its parts would cost more set-up than
bytes, and a core that runs several tiles of a group loads it once."""

SHARE_OF_MEMORY = 32
"""A tensor that is loaded as a whole takes at most this fraction of the least scratchpad."""


def whole_below(machine: Machine) -> Bytes:
    """Return up to how many bytes a tensor is always read as a whole on a machine."""
    least = min(usable_bytes(machine, core) for core in machine.cores)
    return min(READ_WHOLE_BELOW, least // SHARE_OF_MEMORY)


def initial_grid(
    storage: Storage, rates: MachineRates, value: Value, reads: Sequence[Sequence[Box]]
) -> Grid:
    """Choose the buffers of a tensor that lies in DRAM at the start.

    The grid follows the tiling of one of the groups that read the tensor, without halos, so that
    neighbouring tasks share pieces; or it is one cell, and each task reads its own box in one go.
    Pieces that several tasks need can come from another scratchpad, so that DRAM sends each byte
    once; one cell has the fewest transfers, but DRAM sends the halos again. The grid with the least
    cycles of sending and of setting up is taken; the finest among equal ones.

    ``reads`` are, for each group that reads it, the distinct boxes that its tasks read.
    """
    all_reads = [box for boxes in reads for box in boxes]
    covered = covered_by(all_reads)

    def effort(grid: Grid) -> float:
        """Return the cycles for which DRAMs send, and for which channels are held besides."""
        transfers = sum(map(grid.count_overlapping, all_reads))
        sent = grid.boxes() if grid.cells > 1 and rates.pieces_are_shared else all_reads
        held = transfers * rates.from_dram / (rates.channels * len(set(rates.homes)))
        return held + sum(map(volume, sent)) * value.item / rates.dram_out

    candidates = dict.fromkeys([*(grid_of_reads(boxes, covered) for boxes in reads), covered])
    cut = [storage.cut_to_limits(value, grid) for grid in candidates]
    return min(cut, key=lambda grid: (effort(grid), -grid.cells))


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice that a task reads, and the ``whole`` cell that it is; ``None`` for a part of one."""

    index: SliceIdx
    whole: Box | None


class SliceTable:
    """Numbers slices: the whole buffers first, then others in the order in which they are read."""

    def __init__(self, buffers: Sequence[Buffer], limits: DmaLimits) -> None:
        self._limits = limits
        self.slices = [whole_slice(buffer) for buffer in buffers]
        self._numbers: dict[tuple[BufferIdx, Extents, Extents], SliceIdx] = {}
        self._covering: dict[tuple[BufferIdx, Box], Sequence[Piece]] = {}
        self._pieces = cache(limits.pieces)

    def covering(self, stored: Stored, box: Box) -> Sequence[Piece]:
        """Return the slices that cover a box of a value: its shares of the value's buffers.

        A share whose copy would exceed the DMA's limits is cut into several slices. A share that is
        no multiple of a controller's granule becomes the whole buffer.
        """
        key = stored.first, box
        if key not in self._covering:
            self._covering[key] = tuple(self._found(stored, box))
        return self._covering[key]

    def _found(self, stored: Stored, box: Box) -> Iterator[Piece]:
        for number, cell, shared in stored.grid.overlapping(box):
            buffer = stored.first + number
            if stored.read_whole or shared == cell or not self._is_in_units(stored, cell, shared):
                yield Piece(buffer, cell)
            else:
                yield from self._parts(stored, buffer, cell, shared)

    def _is_in_units(self, stored: Stored, cell: Box, shared: Box) -> bool:
        """Say whether controllers can copy a share out of its buffer, and out of its tensor."""
        inside = tuple((a - low, b - low) for (a, b), (low, _) in zip(shared, cell, strict=True))
        item, extent = stored.value.item, tuple(high - low for low, high in cell)
        at_home = stored.home_strides is None or self._limits.is_in_units(
            shared, stored.value.shape, item
        )
        return at_home and self._limits.is_in_units(inside, extent, item)

    def _parts(self, stored: Stored, buffer: BufferIdx, cell: Box, shared: Box) -> Iterator[Piece]:
        order, item = stored.value.in_memory, stored.value.item
        start = order(a - b for (a, _), (b, _) in zip(shared, cell, strict=True))
        extent = order(stop - start for start, stop in shared)
        around = stored.home_strides
        if around is None:
            around = row_major_strides(order(stop - start for start, stop in cell), item)
        counts = self._pieces(extent, item, around)
        for part in product(*map(split, extent, counts)):
            begin = tuple(s + first for s, (first, _) in zip(start, part, strict=True))
            size = tuple(last - first for first, last in part)
            yield Piece(self._number(buffer, begin, size, item), None)

    def _number(self, buffer: BufferIdx, start: Extents, extent: Extents, item: int) -> SliceIdx:
        key = buffer, start, extent
        if key not in self._numbers:
            index, size = len(self.slices), prod(extent) * item
            self._numbers[key] = index
            self.slices.append(
                Slice(index=index, buffer=buffer, start=start, extent=extent, bytes=size)
            )
        return self._numbers[key]
