"""The slices that tasks read; equal ones are shared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, lcm, prod

from spmilp.lowering.limits import DmaLimits
from spmilp.lowering.storage import Stored
from spmilp.lowering.tiling import split
from spmilp.problem.problem import Buffer, Slice, whole_slice
from spmilp.units import Box, BufferIdx, Extents, SliceIdx


@dataclass(frozen=True, slots=True)
class Piece:
    """One slice of what a task reads.

    Parameters
    ----------
    whole
        The cell of the grid that it is; ``None`` when it is a part of one.
    """

    index: SliceIdx
    whole: Box | None


class SliceTable:
    """Numbers slices: the whole buffers first, then others in the order in which they are read."""

    def __init__(self, buffers: Sequence[Buffer], limits: DmaLimits) -> None:
        self._limits = limits
        self._slices = [whole_slice(buffer) for buffer in buffers]
        self._numbers: dict[tuple[BufferIdx, Extents, Extents], SliceIdx] = {}
        self._covering: dict[tuple[BufferIdx, Box], Sequence[Piece]] = {}
        self._pieces: dict[tuple[Extents, int, Extents], tuple[int, ...]] = {}

    @property
    def slices(self) -> tuple[Slice, ...]:
        """All slices so far."""
        return tuple(self._slices)

    def covering(self, stored: Stored, box: Box) -> Sequence[Piece]:
        """Return the slices that cover a box of a value: its shares of the value's buffers.

        A share whose copy would exceed the DMA's limits is cut into several slices; one that a
        controller cannot move for its unit is made wider, or becomes the whole buffer.
        """
        key = stored.first, box
        if key not in self._covering:
            self._covering[key] = tuple(self._found(stored, box))
        return self._covering[key]

    def _found(self, stored: Stored, box: Box) -> Iterator[Piece]:
        for number, cell, share in stored.grid.overlapping(box):
            buffer = stored.first + number
            shared = self._in_units(stored, cell, share) if self._limits.controllers else share
            if stored.read_whole or shared == cell:
                yield Piece(buffer, cell)
            else:
                yield from self._parts(stored, buffer, cell, shared)

    def _in_units(self, stored: Stored, cell: Box, shared: Box) -> Box:
        """Return a share of a cell that contains another one and that controllers can move."""
        item, wider = stored.value.item, shared
        if shared:
            unit = lcm(*(each.granule for each in self._limits.controllers))
            step = unit // gcd(unit, item)
            (start, end), (low, high) = shared[-1], cell[-1]
            first = low + (start - low) // step * step
            wider = (*shared[:-1], (first, min(high, low - (low - end) // step * step)))
        for box in (shared, wider):
            inside = tuple((a - low, b - low) for (a, b), (low, _) in zip(box, cell, strict=True))
            shapes = [(inside, tuple(high - low for low, high in cell))]
            if stored.home_strides is not None:
                shapes.append((box, stored.value.shape))
            if all(self._limits.is_in_units(each, shape, item) for each, shape in shapes):
                return box
        return cell

    def _parts(self, stored: Stored, buffer: BufferIdx, cell: Box, shared: Box) -> list[Piece]:
        order = stored.value.in_memory
        start = order(a - b for (a, _), (b, _) in zip(shared, cell, strict=True))
        extent = order(stop - start for start, stop in shared)
        item = stored.value.item
        counts = self._counts(extent, item, stored.strides_around(cell))
        if max(counts, default=1) == 1:
            return [Piece(self._number(buffer, start, extent, item), None)]
        intervals = map(split, extent, counts)
        found = []
        for part in product(*intervals):
            begin = tuple(s + first for s, (first, _) in zip(start, part, strict=True))
            size = tuple(last - first for first, last in part)
            found.append(Piece(self._number(buffer, begin, size, item), None))
        return found

    def _counts(self, extent: Extents, item: int, strides: Extents) -> tuple[int, ...]:
        key = extent, item, strides
        if key not in self._pieces:
            self._pieces[key] = self._limits.pieces(extent, item, strides)
        return self._pieces[key]

    def _number(self, buffer: BufferIdx, start: Extents, extent: Extents, item: int) -> SliceIdx:
        key = buffer, start, extent
        if key not in self._numbers:
            index = len(self._slices)
            self._numbers[key] = index
            self._slices.append(
                Slice(
                    index=index,
                    buffer=buffer,
                    start=start,
                    extent=extent,
                    bytes=prod(extent) * item,
                )
            )
        return self._numbers[key]
