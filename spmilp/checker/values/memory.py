"""One memory as an array of bytes that knows which of them have been written."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.kernels.call import Array
from spmilp.problem.strides import Layout, footprint
from spmilp.units import Bytes, Extents

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
