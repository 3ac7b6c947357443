"""Memories while a plan runs: where its values lie, what the bytes stand for, what is written.

Each memory is an array of bytes that knows which of them have been written.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.kernels.products import accumulator_dtype
from spmilp.errors import ExitCode, SpmilpError
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import extents
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Problem, Tile
from spmilp.problem.strides import (
    Layout,
    footprint,
    layout_at_place,
    layout_in_slice,
    row_major_strides,
)
from spmilp.units import Box, Bytes, Cycles, Extents, ResidencyIdx, SliceIdx


class ReplayError(SpmilpError):
    """A plan does not compute: it reads bytes that are not there, or loses them."""

    exit_code = ExitCode.PLAN_INVALID


class ValuesError(SpmilpError):
    """A replay or comparison is impossible: values are missing, or not those of the network."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of a tensor (or of a group's partial sums) and its values.

    Parameters
    ----------
    of
        The tensor, or the group.
    box
        In the model's order of axes, as are the values.
    partial
        Whether it is of partial sums.
    """

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

    def layout(self, slice_: SliceIdx, residency: Residency) -> Layout:
        """Return how a slice lies, from the offset of a residency that holds it or its parent."""
        held = residency.slice
        if held is None:
            raise ReplayError(f"residency {residency.index} is scratch, but slice {slice_} is read")
        if not self.is_at_place(residency):
            try:
                return layout_in_slice(self._problem, slice_, held)
            except ValueError as error:
                raise ReplayError(f"residency {residency.index}: {error}") from error
        own, whole = layout_at_place(self._problem, slice_), layout_at_place(self._problem, held)
        return Layout(own.offset - whole.offset, own.strides)

    def is_at_place(self, residency: Residency) -> bool:
        """Say whether a residency lies in a DRAM tensor, at the tensor's strides."""
        if residency.slice is None:
            return False
        place = self.buffer(residency.slice).place
        return place is not None and self._problem.tensors[place.tensor].memory == residency.memory

    def buffer(self, slice_: SliceIdx) -> Buffer:
        """Return the parent of a slice."""
        return self._problem.buffers[self._problem.slices[slice_].buffer]

    def span(self, residency: Residency) -> tuple[Bytes, Bytes]:
        """Return the first address of a residency and the one behind its last."""
        if residency.slice is None:
            return residency.offset, residency.offset + residency.bytes
        slice_ = self._problem.slices[residency.slice]
        item = self.buffer(residency.slice).item
        size = footprint(slice_.extent, item, self.layout(residency.slice, residency))
        return residency.offset, residency.offset + size

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
            shape = self._network.tensors[tile.of].shape
            if len(shape) != len(tile.box):
                raise ReplayError(
                    f"buffer {buffer.name}: box of {len(tile.box)} axes, but {tile.of} has "
                    f"{len(shape)}"
                )
        else:
            raise ReplayError(f"buffer {buffer.name}: the model has no tensor {tile.of}")
        if dtype.itemsize != buffer.item:
            raise ReplayError(
                f"buffer {buffer.name}: elements of {buffer.item} B, but {dtype} has "
                f"{dtype.itemsize} B"
            )
        return dtype

    def piece(self, slice_: SliceIdx, values: Array) -> Piece:
        """Return what the raw values of a slice are, in the model's order of axes."""
        buffer = self.buffer(slice_)
        tile = self.tile(buffer)
        box = self._problem.slices[slice_]
        typed = values.view(self.dtype(buffer))
        partial = buffer.kind is BufferKind.PARTIAL
        if not tile.box:
            return Piece(tile.of, (), typed.reshape(()), partial)
        axes = tile.axes or tuple(range(len(tile.box)))
        intervals = [*tile.box]
        for axis, start, extent in zip(axes, box.start, box.extent, strict=True):
            first = tile.box[axis][0] + start
            intervals[axis] = (first, first + extent)
        return Piece(tile.of, tuple(intervals), typed.transpose(inverse(axes)), partial)

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

    Raises
    ------
    ReplayError
        If they do not cover it.
    """
    result: Array | None = None
    found = np.zeros(extents(box), dtype=np.bool_)
    for piece in pieces:
        shared = tuple(
            (max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, piece.box, strict=True)
        )
        if any(start >= stop for start, stop in shared):
            continue
        source = piece.values[
            tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, piece.box, strict=True))
        ]
        if shared == box:
            return source
        if result is None:
            result = np.zeros(extents(box), dtype=piece.values.dtype)
        target = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, box, strict=True))
        result[target] = source
        found[target] = True
    if result is None or not found.all():
        raise ReplayError(
            f"{reader} needs {found.size} elements of {of}, box {box}, but what it reads holds "
            f"only {int(np.count_nonzero(found))} of them"
        )
    return result


POISON = 0xFF
"""Bytes that make a NaN of every float."""


class Memory:
    """The addresses ``[first, end)`` of a memory. Nothing is written at the beginning.

    A value is given as unsigned integers of its elements' size, so that every bit pattern is equal
    to itself.
    """

    def __init__(self, name: str, first: Bytes, end: Bytes) -> None:
        self.name = name
        self._first = first
        self._bytes = np.zeros(max(0, end - first), dtype=np.uint8)
        self._written = np.zeros(max(0, end - first), dtype=np.bool_)

    def read(self, address: Bytes, layout: Layout, extent: Extents, item: Bytes) -> Array:
        """Return a copy of the elements of a box, packed."""
        return self._view(address, layout, extent, item).copy()

    def write(self, address: Bytes, layout: Layout, values: Array) -> None:
        """Store the elements of a box; ``values`` are unsigned integers."""
        extent, item = values.shape, values.dtype.itemsize
        self._view(address, layout, extent, item)[...] = values
        self._marks(address, layout, extent, item)[...] = True

    def poison(self, address: Bytes, layout: Layout, extent: Extents, item: Bytes) -> None:
        """Destroy the elements of a box."""
        view = self._view(address, layout, extent, item)
        view[...] = np.iinfo(view.dtype).max
        self._marks(address, layout, extent, item)[...] = False

    def missing(self, address: Bytes, layout: Layout, extent: Extents, item: Bytes) -> Bytes:
        """Return how many bytes of a box have not been written, or were destroyed since."""
        marks = self._marks(address, layout, extent, item)
        return int(marks.size - np.count_nonzero(marks))

    def holds(self, address: Bytes, layout: Layout, extent: Extents, item: Bytes) -> bool:
        """Say whether a box lies inside the memory."""
        first = address + layout.offset - self._first
        return first >= 0 and first + footprint(extent, item, layout) <= self._bytes.size

    def _view(self, address: Bytes, layout: Layout, extent: Extents, item: Bytes) -> Array:
        offset = address + layout.offset - self._first
        dtype = raw_dtype(item)
        return np.ndarray(extent, dtype, self._bytes.data, offset, layout.strides)

    def _marks(
        self, address: Bytes, layout: Layout, extent: Extents, item: Bytes
    ) -> NDArray[np.bool_]:
        offset = address + layout.offset - self._first
        strides = (*layout.strides, 1)
        return np.ndarray((*extent, item), np.bool_, self._written.data, offset, strides)


def raw_dtype(item: Bytes) -> np.dtype[Any]:
    """Return the unsigned integers of a size in bytes."""
    return np.dtype(f"u{item}")


def raw(values: Array) -> Array:
    """Return values as unsigned integers of the same bytes."""
    return np.ascontiguousarray(values).view(raw_dtype(values.dtype.itemsize)).reshape(values.shape)


class State:
    """One array of bytes for each memory, as large as what the plan uses of it."""

    def __init__(self, problem: Problem, plan: Plan, addresses: Addresses) -> None:
        self._problem = problem
        self._plan = plan
        self._addresses = addresses
        spans: list[list[tuple[Bytes, Bytes]]] = [[] for _ in problem.machine.memories]
        for residency in plan.residencies:
            spans[residency.memory].append(addresses.span(residency))
        for tensor, address in zip(problem.tensors, plan.tensors, strict=True):
            spans[tensor.memory].append((address, address + tensor.bytes))
        self._memories = tuple(
            Memory(
                memory.name,
                min((first for first, _ in used), default=0),
                max((end for _, end in used), default=0),
            )
            for memory, used in zip(problem.machine.memories, spans, strict=True)
        )

    def read(self, reader: str, slice_: SliceIdx, index: ResidencyIdx, cycle: Cycles) -> Array:
        """Return the bytes of a slice in a residency, as unsigned integers.

        Raises
        ------
        ReplayError
            If some of them are not there.
        """
        residency = self._plan.residencies[index]
        memory = self._memories[residency.memory]
        layout, extent, item = self._shape(slice_, residency)
        if not memory.holds(residency.offset, layout, extent, item):
            raise ReplayError(
                f"{reader}: {self.where(index)} is smaller than the slice it is read for"
            )
        missing = memory.missing(residency.offset, layout, extent, item)
        if missing:
            raise ReplayError(
                f"{reader} reads {self.where(index)}, but {missing} of "
                f"{self._problem.slices[slice_].bytes} B are not there at cycle {cycle}"
            )
        return memory.read(residency.offset, layout, extent, item)

    def compare(
        self, reader: str, slice_: SliceIdx, index: ResidencyIdx, before: Array, cycle: Cycles
    ) -> None:
        """Make sure that the bytes of a slice are what they were.

        Raises
        ------
        ReplayError
            If some of them have changed or were destroyed.
        """
        residency = self._plan.residencies[index]
        memory = self._memories[residency.memory]
        layout, extent, item = self._shape(slice_, residency)
        lost = memory.missing(residency.offset, layout, extent, item)
        now = memory.read(residency.offset, layout, extent, item)
        changed = int(np.count_nonzero(now != before)) * item
        if changed or lost:
            raise ReplayError(
                f"{reader} reads {self.where(index)} until cycle {cycle}, but {max(changed, lost)} "
                f"of {before.nbytes} B changed while it did"
            )

    def write(self, index: ResidencyIdx, values: Array) -> None:
        """Store the slice that a residency holds; ``values`` are unsigned integers."""
        residency = self._plan.residencies[index]
        if residency.slice is None:
            raise ReplayError(f"{self.where(index)} is written, but holds no slice")
        layout, extent, _ = self._shape(residency.slice, residency)
        if values.shape != extent:
            raise ReplayError(f"{self.where(index)} holds {extent} elements, not {values.shape}")
        self._memories[residency.memory].write(residency.offset, layout, values)

    def restore(self, slice_: SliceIdx, index: ResidencyIdx, values: Array) -> None:
        """Put the bytes of a slice back into a residency of it or of its parent."""
        residency = self._plan.residencies[index]
        layout, _, _ = self._shape(slice_, residency)
        self._memories[residency.memory].write(residency.offset, layout, values)

    def destroy(self, index: ResidencyIdx) -> None:
        """Destroy the bytes of a residency."""
        residency = self._plan.residencies[index]
        memory = self._memories[residency.memory]
        if residency.slice is None:
            memory.poison(residency.offset, Layout(0, (1,)), (residency.bytes,), 1)
            return
        memory.poison(residency.offset, *self._shape(residency.slice, residency))

    def write_tensor(self, tensor: DramTensor, values: Array) -> None:
        """Store a whole DRAM tensor, in the order in which it lies."""
        layout = Layout(0, row_major_strides(tensor.shape, tensor.item))
        address = self._plan.tensors[tensor.index]
        self._memories[tensor.memory].write(address, layout, values)

    def read_tensor(self, tensor: DramTensor) -> Array:
        """Return a whole DRAM tensor, in the order in which it lies.

        Raises
        ------
        ReplayError
            If some of it has not been written.
        """
        memory, address = self._memories[tensor.memory], self._plan.tensors[tensor.index]
        layout = Layout(0, row_major_strides(tensor.shape, tensor.item))
        missing = memory.missing(address, layout, tensor.shape, tensor.item)
        if missing:
            raise ReplayError(
                f"output {tensor.name}: {missing} of {tensor.bytes} B in {memory.name} at "
                f"{address} have not been written at the end"
            )
        return memory.read(address, layout, tensor.shape, tensor.item)

    def where(self, index: ResidencyIdx) -> str:
        """Name a residency for people."""
        residency = self._plan.residencies[index]
        what = "scratch"
        if residency.slice is not None:
            what = self._addresses.buffer(residency.slice).name
        memory = self._memories[residency.memory].name
        return f"residency {index} ({what} in {memory} at {residency.offset})"

    def _shape(self, slice_: SliceIdx, residency: Residency) -> tuple[Layout, Extents, Bytes]:
        layout = self._addresses.layout(slice_, residency)
        return layout, self._problem.slices[slice_].extent, self._addresses.buffer(slice_).item
