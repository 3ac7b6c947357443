"""The values of a plan and their addresses: boxes of tensors, in some order of axes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spmilp.checker.values.errors import ReplayError
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.kernels.products import accumulator_dtype
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import extents
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Problem, Tile
from spmilp.problem.strides import Layout, footprint, layout_at_place, layout_in_slice
from spmilp.units import Box, Bytes, SliceIdx


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
