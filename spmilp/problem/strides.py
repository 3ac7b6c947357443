"""The shape of a copy: what a DMA descriptor needs to move a slice between two layouts."""

from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

from spmilp.machine.controllers import Loop, StridedCopy
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Extents, SliceIdx

SHAPES_KEPT = 4096
"""A network has many tiles of few shapes."""


class Layout(NamedTuple):
    """Layout of a slice in a memory, in bytes: its first one, and those between neighbours.

    The offset begins at the address of the residency or DRAM tensor; each axis has a stride.
    """

    offset: Bytes
    strides: tuple[Bytes, ...]


@lru_cache(maxsize=SHAPES_KEPT)
def row_major_strides(shape: Extents, item: Bytes) -> tuple[Bytes, ...]:
    """Return the bytes between neighbours along each axis of a packed row-major array."""
    return tuple(accumulate(reversed(shape[1:]), mul, initial=item))[::-1] if shape else ()


def packed_layout(problem: Problem, slice_: SliceIdx) -> Layout:
    """Return the layout of a slice that lies in a residency of its own."""
    box = problem.slices[slice_]
    return Layout(0, row_major_strides(box.extent, problem.buffers[box.buffer].item))


def layout_in_slice(problem: Problem, slice_: SliceIdx, holder: SliceIdx) -> Layout:
    """Return the layout of a slice inside a residency that holds ``holder``.

    Raises a ``ValueError`` if ``holder`` is neither the slice nor the whole of its parent.
    """
    if slice_ == holder:
        return packed_layout(problem, slice_)
    box = problem.slices[slice_]
    if box.buffer != holder:
        raise ValueError(f"slice {slice_} does not lie in slice {holder}")
    parent = problem.buffers[box.buffer]
    strides = row_major_strides(parent.shape, parent.item)
    return Layout(sum(map(mul, box.start, strides)), strides)


def layout_at_place(problem: Problem, slice_: SliceIdx) -> Layout:
    """Return the layout of a slice at its parent's place, from the address of the DRAM tensor.

    Raises a ``ValueError`` if the parent has no place.
    """
    box = problem.slices[slice_]
    place = problem.buffers[box.buffer].place
    if place is None:
        raise ValueError(f"slice {slice_}: its buffer has no place in a DRAM tensor")
    tensor = problem.tensors[place.tensor]
    strides = row_major_strides(tensor.shape, tensor.item)
    start = (a + b for a, b in zip(place.start, box.start, strict=True))
    return Layout(sum(map(mul, start, strides)), strides)


def strided_copy(extent: Extents, item: Bytes, source: Layout, destination: Layout) -> StridedCopy:
    """Return the fewest runs that move a box of ``extent`` elements from one layout to another."""
    run, loops = _shape(extent, item, source.strides, destination.strides)
    return StridedCopy(source=source.offset, destination=destination.offset, run=run, loops=loops)


@lru_cache(maxsize=SHAPES_KEPT)
def _shape(
    extent: Extents, item: Bytes, source: tuple[Bytes, ...], destination: tuple[Bytes, ...]
) -> tuple[Bytes, tuple[Loop, ...]]:
    """Return the bytes of a run, and the loops over runs."""
    run = item
    loops: list[Loop] = []
    sides = zip(extent, source, destination, strict=True)
    for count, from_stride, to_stride in reversed(list(sides)):
        if count == 1:
            continue
        if not loops and from_stride == to_stride == run:
            run *= count
            continue
        inner, inner_from, inner_to = loops[-1] if loops else (1, 0, 0)
        goes_on = (from_stride, to_stride) == (inner * inner_from, inner * inner_to)
        if loops and goes_on:  # where the inner loop has ended, on both sides
            loops[-1] = (inner * count, inner_from, inner_to)
        else:
            loops.append((count, from_stride, to_stride))
    return run, tuple(reversed(loops))


def footprint(extent: Extents, item: Bytes, layout: Layout) -> Bytes:
    """Return the bytes from a box's first byte to the end of its last one in a layout."""
    if prod(extent) == 0:
        return 0
    return sum((n - 1) * s for n, s in zip(extent, layout.strides, strict=True)) + item
