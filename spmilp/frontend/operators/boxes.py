"""Arithmetic of boxes: half-open intervals of elements along each axis."""

from collections.abc import Iterable, Sequence
from math import prod

from spmilp.units import Box, Extents


def whole(shape: Extents) -> Box:
    """Return the box of all elements of a tensor."""
    return tuple((0, length) for length in shape)


def extents(box: Box) -> Extents:
    """Return the elements along each axis of a box."""
    return tuple(stop - start for start, stop in box)


def volume(box: Box) -> int:
    """Return the number of elements of a box."""
    return prod(stop - start for start, stop in box)


def intersect(a: Box, b: Box) -> Box | None:
    """Return the elements that two boxes share; ``None`` when they share none."""
    shared = tuple(
        (max(a_start, b_start), min(a_stop, b_stop))
        for (a_start, a_stop), (b_start, b_stop) in zip(a, b, strict=True)
    )
    return shared if all(start < stop for start, stop in shared) else None


def cover(a: Box, b: Box) -> Box:
    """Return the least box that contains both."""
    return tuple(
        (min(a_start, b_start), max(a_stop, b_stop))
        for (a_start, a_stop), (b_start, b_stop) in zip(a, b, strict=True)
    )


def covering_ranges(positions: Iterable[Sequence[int]]) -> Box | None:
    """Return the least box with all positions along each axis; ``None`` if an axis has none."""
    found = [(min(along), max(along) + 1) if len(along) else None for along in positions]
    box = tuple(interval for interval in found if interval is not None)
    return box if len(box) == len(found) else None


def slices(box: Box, origin: Sequence[int]) -> tuple[slice, ...]:
    """Return the NumPy index of ``box`` in an array whose first element is at ``origin``."""
    return tuple(
        slice(start - first, stop - first) for (start, stop), first in zip(box, origin, strict=True)
    )


def starts(box: Box) -> Extents:
    """Return the first element of a box along each axis."""
    return tuple(start for start, _ in box)


def broadcast_box(shape: Extents, box: Box) -> Box:
    """Return the part of a tensor of ``shape`` that broadcasts to ``box`` of the result.

    Axes are aligned at the right, as NumPy and ONNX do; an axis of length 1 is read whole.
    """
    own = box[len(box) - len(shape) :]
    if 1 not in shape and len(own) == len(shape):
        return own
    return tuple(
        [(0, 1) if length == 1 else interval for length, interval in zip(shape, own, strict=True)]
    )
