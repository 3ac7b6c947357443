"""Boxes of values and the pieces of memory that hold them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from spmilp.checker.values.addresses import Addresses, inverse
from spmilp.export.tables.operators import type_code
from spmilp.export.tables.table import NONE, Words
from spmilp.frontend.operators.boxes import extents, intersect
from spmilp.plan.memory import layout_in_memory
from spmilp.plan.plan import Plan
from spmilp.problem.problem import BufferKind, Problem
from spmilp.problem.strides import row_major_strides
from spmilp.units import Box, Bytes, MemoryIdx, ResidencyIdx, SliceIdx, align_up

ALIGNMENT = 16
"""Of what lies in the workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A box of a tensor, or of partial sums, as it lies in a memory; in the model's axes.

    Parameters
    ----------
    of
        The tensor, or the group.
    offset, memory
        Of its first byte; ``None`` for the workspace.
    """

    of: str
    partial: bool
    box: Box
    offset: Bytes
    memory: MemoryIdx | None
    residency: ResidencyIdx | None
    strides: tuple[Bytes, ...]


def piece_of(
    problem: Problem, plan: Plan, addresses: Addresses, slice_: SliceIdx, residency: ResidencyIdx
) -> Piece:
    """Return the piece that a slice in a residency is."""
    buffer = addresses.buffer(slice_)
    tile, part = addresses.tile(buffer), problem.slices[slice_]
    lies = layout_in_memory(problem, plan, slice_, residency)
    box: Box = ()
    strides: tuple[Bytes, ...] = ()
    if tile.box:
        axes = tile.axes or tuple(range(len(tile.box)))
        intervals = [*tile.box]
        for axis, start, extent in zip(axes, part.start, part.extent, strict=True):
            first = tile.box[axis][0] + start
            intervals[axis] = (first, first + extent)
        box = tuple(intervals)
        strides = tuple(lies.strides[axis] for axis in inverse(axes))
    return Piece(
        of=tile.of,
        partial=buffer.kind is BufferKind.PARTIAL,
        box=box,
        offset=lies.offset,
        memory=plan.residencies[residency].memory,
        residency=residency,
        strides=strides,
    )


class Workspace:
    """Memory for packed boxes of one task, allocated from the beginning."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, size: Bytes) -> Bytes:
        """Return the offset of ``size`` bytes that nothing else of the task has."""
        offset = self.size
        self.size += align_up(size, ALIGNMENT)
        return offset


class ViewTable:
    """The tables of views and of pieces; pieces are kept once."""

    def __init__(self, words: Words) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.pieces: list[tuple[int, ...]] = []
        self._words = words
        self._known: dict[tuple[tuple[int, ...], ...], int] = {}

    def add(
        self,
        box: Box,
        dtype: np.dtype[np.generic],
        value: int,
        candidates: Iterable[Piece],
        workspace: Workspace,
        *,
        may_be_direct: bool = True,
    ) -> int:
        """Add the view of a box and return its number.

        Parameters
        ----------
        value
            The tensor's number; ``NONE`` for partial sums.
        candidates
            Pieces of the tensor; those that have no element of the box are left out, and all others
            if one has the whole of it.
        may_be_direct
            Whether the bytes may be used where they lie.
        """
        pieces = _holding(box, candidates)
        item, extent = dtype.itemsize, extents(box)
        packed = row_major_strides(extent, item)
        direct, offset = False, 0
        if len(pieces) == 1:
            offset = _first_byte(pieces[0], box)
            direct = may_be_direct and all(
                count == 1 or own == wanted
                for count, own, wanted in zip(extent, pieces[0].strides, packed, strict=True)
            )
        size = prod(extent) * item
        slot = 0 if direct else workspace.take(size)
        first = self._add_pieces(pieces)
        self.rows.append(
            (
                *(slot, offset, size, value, type_code(dtype), len(box)),
                *(self._words.add(_flat(box)), first, len(pieces), int(direct), 0),
            )
        )
        return len(self.rows) - 1

    def _add_pieces(self, pieces: Sequence[Piece]) -> int:
        rows = tuple(
            (
                piece.offset,
                NONE if piece.memory is None else piece.memory,
                NONE if piece.residency is None else piece.residency,
                self._words.add(_flat(piece.box)),
                self._words.add(piece.strides),
            )
            for piece in pieces
        )
        if rows not in self._known:
            self._known[rows] = len(self.pieces)
            self.pieces += rows
        return self._known[rows]


def _holding(box: Box, candidates: Iterable[Piece]) -> list[Piece]:
    found = []
    for piece in candidates:
        shared = intersect(box, piece.box)
        if shared == box:
            return [piece]
        if shared is not None:
            found.append(piece)
    return found


def _first_byte(piece: Piece, box: Box) -> Bytes:
    steps = (
        (start - first) * stride
        for (start, _), (first, _), stride in zip(box, piece.box, piece.strides, strict=True)
    )
    return piece.offset + sum(steps)


def _flat(box: Box) -> list[int]:
    return [number for start, stop in box for number in (start, stop - start)]
