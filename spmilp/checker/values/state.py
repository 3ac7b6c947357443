"""Memories while a plan runs: where its values lie, what the bytes stand for, what is written."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.kernels.products import accumulator_dtype
from spmilp.errors import ExitCode, SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import extents, intersect, slices, starts
from spmilp.plan.memory import layout_in_memory
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Problem, Tile
from spmilp.problem.strides import Layout, footprint, row_major_strides
from spmilp.units import Box, Bytes, Cycles, Extents, MemoryIdx, ResidencyIdx, SliceIdx


class ReplayError(SpmilpError):
    """A plan does not compute: it reads bytes that are not there, or loses them."""

    exit_code = ExitCode.PLAN_INVALID


class ValuesError(SpmilpError):
    """A replay or comparison is impossible: values are missing, or not those of the network."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of a tensor, or of a group's partial sums, and its values in the model's axes."""

    of: str
    box: Box
    values: Array
    partial: bool


class Addresses:
    """Answers where a slice lies in a residency, and what its bytes stand for."""

    def __init__(self, problem: Problem, plan: Plan, network: Network) -> None:
        self._problem = problem
        self._plan = plan
        self._network = network
        self._groups = {group.name: group for group in network.groups}
        self._axes = {
            buffer.place.tensor: buffer.tile.axes
            for buffer in problem.buffers
            if buffer.place is not None and buffer.tile is not None
        }

    def layout(self, slice_: SliceIdx, index: ResidencyIdx) -> Layout:
        """Return the address of a slice in a residency of it or of its parent, and its strides.

        Raises a ``ReplayError`` if the residency holds neither.
        """
        residency = self._plan.residencies[index]
        held = slice_ if residency.slice is None else residency.slice
        try:
            own, whole = (
                layout_in_memory(self._problem, self._plan, each, index) for each in (slice_, held)
            )
        except ValueError as error:
            raise ReplayError(f"residency {index}: {error}") from error
        return Layout(residency.offset + own.offset - whole.offset, own.strides)

    def buffer(self, slice_: SliceIdx) -> Buffer:
        """Return the parent of a slice."""
        return self._problem.buffers[self._problem.slices[slice_].buffer]

    def axes(self, tensor: DramTensor) -> tuple[int, ...]:
        """Return the order of axes in which a DRAM tensor lies; empty for the model's."""
        return self._axes.get(tensor.index, ())

    def group(self, name: str) -> Group:
        """Return the group that a task computes."""
        if name not in self._groups:
            raise ReplayError(f"the model has no group {name}; is the plan of another model?")
        return self._groups[name]

    def tile(self, buffer: Buffer) -> Tile:
        """Return what a buffer is a tile of."""
        if buffer.tile is None:
            raise ReplayError(f"buffer {buffer.name} is no tile of a tensor: nothing to compute on")
        return buffer.tile

    def dtype(self, buffer: Buffer) -> np.dtype[Any]:
        """Return the type of a buffer's values."""
        tile = self.tile(buffer)
        if buffer.kind is BufferKind.PARTIAL:
            group = self.group(tile.of)
            dtype = accumulator_dtype(group.operators[group.anchor])
        elif tile.of in self._network.tensors:
            dtype = self._network.tensors[tile.of].dtype
        else:
            raise ReplayError(f"buffer {buffer.name}: the model has no tensor {tile.of}")
        if dtype.itemsize != buffer.item:
            raise ReplayError(
                f"buffer {buffer.name}: elements of {buffer.item} B, but {dtype} has "
                f"{dtype.itemsize} B"
            )
        return dtype

    def box(self, slice_: SliceIdx) -> tuple[Box, tuple[int, ...]]:
        """Return what a slice is of its tensor, and its own axes in the model's order."""
        tile, part = self.tile(self.buffer(slice_)), self._problem.slices[slice_]
        if not tile.box:
            return (), ()
        axes, intervals = tile.axes or tuple(range(len(tile.box))), [*tile.box]
        for axis, start, extent in zip(axes, part.start, part.extent, strict=True):
            first = tile.box[axis][0] + start
            intervals[axis] = (first, first + extent)
        return tuple(intervals), inverse(axes)

    def piece(self, slice_: SliceIdx, values: Array) -> Piece:
        """Return what the raw values of a slice are, in the model's order of axes."""
        buffer, (box, axes) = self.buffer(slice_), self.box(slice_)
        typed = values.view(self.dtype(buffer))
        ordered = typed.transpose(axes) if box else typed.reshape(())
        return Piece(self.tile(buffer).of, box, ordered, buffer.kind is BufferKind.PARTIAL)

    def in_memory_order(self, buffer: Buffer, values: Array) -> Array:
        """Return values in the model's order of axes as they lie in a buffer."""
        axes = self.tile(buffer).axes
        return (values.transpose(axes) if axes else values).reshape(buffer.shape)


def inverse(axes: Iterable[int]) -> tuple[int, ...]:
    """Return the permutation that undoes another."""
    order = tuple(axes)
    return tuple(order.index(axis) for axis in range(len(order)))


def gather(reader: str, of: str, box: Box, pieces: Iterable[Piece]) -> Array:
    """Return a box of a tensor from the pieces that hold it.

    Raises a ``ReplayError`` if they do not cover it.
    """
    result: Array | None = None
    found = np.zeros(extents(box), dtype=np.bool_)
    for piece in pieces:
        shared = intersect(box, piece.box)
        if shared is None:
            continue
        source = piece.values[slices(shared, starts(piece.box))]
        if shared == box:
            return source
        if result is None:
            result = np.zeros(extents(box), dtype=piece.values.dtype)
        target = slices(shared, starts(box))
        result[target] = source
        found[target] = True
    if result is None or not found.all():
        raise ReplayError(
            f"{reader} needs {found.size} elements of {of}, box {box}, but what it reads holds "
            f"only {int(np.count_nonzero(found))} of them"
        )
    return result


def raw(values: Array) -> Array:
    """Return values as unsigned integers of the same bytes, of which each is equal to itself."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").reshape(values.shape)


class State:
    """The bytes of each memory, from the first to the last that the plan uses, and what is written.

    Values are unsigned integers of their elements' size. Nothing is written at the beginning.
    """

    def __init__(self, problem: Problem, plan: Plan, addresses: Addresses) -> None:
        self._problem = problem
        self._plan = plan
        self._addresses = addresses
        used: list[list[Bytes]] = [[] for _ in problem.machine.memories]
        for residency in plan.residencies:
            size = residency.bytes
            if residency.slice is not None:
                layout = addresses.layout(residency.slice, residency.index)
                item = addresses.buffer(residency.slice).item
                size = footprint(problem.slices[residency.slice].extent, item, layout)
            used[residency.memory] += residency.offset, residency.offset + size
        for tensor, address in zip(problem.tensors, plan.tensors, strict=True):
            used[tensor.memory] += address, address + tensor.bytes
        self._first = [min(each, default=0) for each in used]
        sizes = [max(each, default=0) - min(each, default=0) for each in used]
        self._bytes = [np.zeros(size, dtype=np.uint8) for size in sizes]
        self._written = [np.zeros(size, dtype=np.bool_) for size in sizes]

    def read(self, reader: str, slice_: SliceIdx, index: ResidencyIdx, cycle: Cycles) -> Array:
        """Return a copy of a slice in a residency, packed.

        Raises a ``ReplayError`` if some of its bytes are not there.
        """
        values, written = self._of(slice_, index)
        missing = _count_false(written)
        if missing:
            raise ReplayError(
                f"{reader} reads {self.where(index)}, but {missing} of {values.nbytes} B are not "
                f"there at cycle {cycle}"
            )
        return values.copy()

    def compare(
        self, reader: str, slice_: SliceIdx, index: ResidencyIdx, before: Array, cycle: Cycles
    ) -> None:
        """Make sure that the bytes of a slice are what they were.

        Raises a ``ReplayError`` if some of them have changed or were destroyed.
        """
        now, written = self._of(slice_, index)
        lost = _count_false(written)
        changed = int(np.count_nonzero(now != before)) * now.dtype.itemsize
        if changed or lost:
            raise ReplayError(
                f"{reader} reads {self.where(index)} until cycle {cycle}, but {max(changed, lost)} "
                f"of {before.nbytes} B changed while it did"
            )

    def write(self, index: ResidencyIdx, values: Array) -> None:
        """Store the slice that a residency holds."""
        held = self._plan.residencies[index].slice
        extent = () if held is None else self._problem.slices[held].extent
        if held is None or values.shape != extent:
            raise ReplayError(f"{self.where(index)} holds {extent} elements, not {values.shape}")
        self.restore(held, index, values)

    def restore(self, slice_: SliceIdx, index: ResidencyIdx, values: Array) -> None:
        """Put the bytes of a slice back into a residency of it or of its parent."""
        stored, written = self._of(slice_, index)
        stored[...] = values
        written[...] = True

    def destroy(self, index: ResidencyIdx) -> None:
        """Destroy the bytes of a residency: all ones make a NaN of every float."""
        residency = self._plan.residencies[index]
        if residency.slice is None:
            packed = Layout(residency.offset, (1,))
            stored, written = self._views(residency.memory, packed, (residency.bytes,), 1)
        else:
            stored, written = self._of(residency.slice, index)
        stored[...] = np.iinfo(stored.dtype).max
        written[...] = False

    def fill(self, memory: MemoryIdx, address: Bytes, values: Array) -> None:
        """Store packed values at an address."""
        packed = raw(values).reshape(-1)
        layout = Layout(address, (packed.itemsize,))
        stored, written = self._views(memory, layout, packed.shape, packed.itemsize)
        stored[...] = packed
        written[...] = True

    def read_tensor(self, tensor: DramTensor) -> Array:
        """Return a whole DRAM tensor, in the order in which it lies.

        Raises a ``ReplayError`` if some of it has not been written.
        """
        address = self._plan.tensors[tensor.index]
        layout = Layout(address, row_major_strides(tensor.shape, tensor.item))
        values, written = self._views(tensor.memory, layout, tensor.shape, tensor.item)
        missing = _count_false(written)
        if missing:
            memory = self._problem.machine.memories[tensor.memory].name
            raise ReplayError(
                f"output {tensor.name}: {missing} of {tensor.bytes} B in {memory} at "
                f"{address} have not been written at the end"
            )
        return values.copy()

    def where(self, index: ResidencyIdx) -> str:
        """Name a residency for people."""
        residency = self._plan.residencies[index]
        held, memory = residency.slice, self._problem.machine.memories[residency.memory].name
        what = "scratch" if held is None else self._addresses.buffer(held).name
        return f"residency {index} ({what} in {memory} at {residency.offset})"

    def _of(self, slice_: SliceIdx, index: ResidencyIdx) -> tuple[Array, NDArray[np.bool_]]:
        extent, item = self._problem.slices[slice_].extent, self._addresses.buffer(slice_).item
        layout = self._addresses.layout(slice_, index)
        return self._views(self._plan.residencies[index].memory, layout, extent, item)

    def _views(
        self, memory: MemoryIdx, layout: Layout, extent: Extents, item: Bytes
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return the elements of a box in a memory, and which of their bytes are written."""
        at, strides = layout.offset - self._first[memory], layout.strides
        stored = np.ndarray(extent, f"u{item}", self._bytes[memory].data, at, strides)
        marks = self._written[memory].data
        return stored, np.ndarray((*extent, item), np.bool_, marks, at, (*strides, 1))


def _count_false(marks: NDArray[np.bool_]) -> int:
    return int(marks.size - np.count_nonzero(marks))
