"""Limits of DMA engines on the shape of a transfer."""

from dataclasses import dataclass
from math import prod

from spmilp.errors import SpmilpError
from spmilp.machine.machine import Machine
from spmilp.problem.strides import Layout, row_major_strides, strided_copy
from spmilp.units import Bytes, Extents


@dataclass(frozen=True, slots=True, kw_only=True)
class DmaLimits:
    """Limits that every engine of a machine meets, so that any of them may be chosen.

    Parameters
    ----------
    longest
        Bytes of one transfer; ``None`` without limit.
    dimensions
        Nested strides of one descriptor, the contiguous run included; ``None`` without limit.
    """

    longest: Bytes | None
    dimensions: int | None

    def pieces(self, extent: Extents, item: Bytes, strides: Extents) -> tuple[int, ...]:
        """Return into how many pieces along each axis a box must be cut.

        Each piece can then be copied by one transfer from its place in a container of the given
        strides to a packed layout, or back. For too many nested strides the axis that gives the
        fewest pieces is cut into single positions; for too many bytes the outermost one into as
        few pieces as possible.

        Parameters
        ----------
        extent
            Elements along each axis, in memory order.
        strides
            Bytes between neighbours along each axis in the container.

        Raises
        ------
        SpmilpError
            If not even one element can be moved.
        """
        counts = [1] * len(extent)
        while self._dimensions_are_exceeded(_sizes(extent, counts), item, strides):
            axis = self._axis_to_single_out(extent, counts, item, strides)
            counts[axis] = extent[axis]
        while self.longest is not None and prod(_sizes(extent, counts)) * item > self.longest:
            sizes = _sizes(extent, counts)
            long_axes = [axis for axis, size in enumerate(sizes) if size > 1]
            if not long_axes:
                raise SpmilpError(
                    f"an element of {item} B exceeds the longest transfer of {self.longest} B"
                )
            outermost = long_axes[0]
            one = prod(sizes[outermost + 1 :]) * item
            fitting = max(1, self.longest // one)
            counts[outermost] = -(-extent[outermost] // fitting)
        return tuple(counts)

    def _dimensions_are_exceeded(self, sizes: Extents, item: Bytes, strides: Extents) -> bool:
        if self.dimensions is None:
            return False
        return _dimensions(sizes, item, strides) > self.dimensions

    def _axis_to_single_out(
        self, extent: Extents, counts: list[int], item: Bytes, strides: Extents
    ) -> int:
        """Return the axis to cut: one that suffices and is shortest, else the outermost one."""
        sizes = _sizes(extent, counts)
        long_axes = [axis for axis, size in enumerate(sizes) if size > 1]
        enough = []
        for axis in long_axes:
            trial = (*sizes[:axis], 1, *sizes[axis + 1 :])
            if not self._dimensions_are_exceeded(trial, item, strides):
                enough.append(axis)
        return min(enough, key=lambda axis: (extent[axis], axis), default=long_axes[0])


def dma_limits(machine: Machine) -> DmaLimits:
    """Return the least limits over a machine's engines."""
    longest = [engine.longest for engine in machine.engines if engine.longest is not None]
    dimensions = [e.dimensions for e in machine.engines if e.dimensions is not None]
    return DmaLimits(longest=min(longest, default=None), dimensions=min(dimensions, default=None))


def _dimensions(sizes: Extents, item: Bytes, strides: Extents) -> int:
    packed = Layout(0, row_major_strides(sizes, item))
    return strided_copy(sizes, item, Layout(0, strides), packed).dimensions


def _sizes(extent: Extents, counts: list[int]) -> Extents:
    """Return the extents of the largest piece."""
    return tuple(-(-length // count) for length, count in zip(extent, counts, strict=True))
