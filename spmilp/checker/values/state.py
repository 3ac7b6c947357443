"""The memories of a machine while a plan runs, addressed through the plan's residencies.

Each is an array of bytes that knows which of them have been written.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.addresses import Addresses
from spmilp.checker.values.errors import ReplayError
from spmilp.checker.values.kernels.call import Array
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import DramTensor, Problem
from spmilp.problem.strides import Layout, footprint, row_major_strides
from spmilp.units import Bytes, Cycles, Extents, ResidencyIdx, SliceIdx

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
