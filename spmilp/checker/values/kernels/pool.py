"""Windows over padded values, and pooling."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.family import integer
from spmilp.frontend.operators.windows import Window, windows_of


def padded(call: Call, windows: Sequence[Window], fill: Any) -> Array:
    """Return the input that the windows of the output's box cover, padding filled in.

    The values begin at the first position of the first window along each spatial axis.
    """
    outputs = call.box[2:]
    origin = [
        start * window.stride - window.pad
        for (start, _), window in zip(outputs, windows, strict=True)
    ]
    spans = [
        (stop - start - 1) * window.stride + window.span
        for (start, stop), window in zip(outputs, windows, strict=True)
    ]
    values, read = call.array(0), call.read(0)
    if all(
        interval == (first, first + span)
        for interval, first, span in zip(read[2:], origin, spans, strict=True)
    ):
        return values
    canvas = np.full((*values.shape[:2], *spans), fill, dtype=values.dtype)
    place = tuple(
        slice(start - first, stop - first)
        for (start, stop), first in zip(read[2:], origin, strict=True)
    )
    canvas[(slice(None), slice(None), *place)] = values
    return canvas


def positions(
    canvas: Array, windows: Sequence[Window], counts: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield each position of the window, and the values at it for all outputs."""
    for position in product(*(range(window.kernel) for window in windows)):
        place = []
        for k, window, count in zip(position, windows, counts, strict=True):
            first = k * window.dilation
            place.append(slice(first, first + (count - 1) * window.stride + 1, window.stride))
        yield position, canvas[(slice(None), slice(None), *place)]


def max_pool(call: Call) -> Array:
    """Return the maximum of each window; padding never wins."""
    windows = windows_of(call.operator, len(call.box) - 2)
    lowest = _lowest(call.array(0).dtype)
    result = np.full(call.extent, lowest, dtype=call.array(0).dtype)
    for _, values in positions(padded(call, windows, lowest), windows, call.extent[2:]):
        np.maximum(result, values, out=result)
    return result


def average_pool(call: Call) -> Array:
    """Return the average of each window, over the padding too where the operator says so."""
    windows = windows_of(call.operator, len(call.box) - 2)
    total = np.zeros(call.extent, dtype=np.float32)
    for _, values in positions(padded(call, windows, 0), windows, call.extent[2:]):
        total += values
    include = bool(integer(call.operator, "count_include_pad"))
    for axis, window in enumerate(windows, start=2):
        counts = _counts(window, call.box[axis], call.shape(0)[axis], include)
        total /= counts.reshape(-1, *(1,) * (len(call.box) - axis - 1))
    return total


def lp_pool(call: Call) -> Array:
    """Return the p-norm of each window."""
    windows = windows_of(call.operator, len(call.box) - 2)
    p = integer(call.operator, "p")
    total = np.zeros(call.extent, dtype=np.float32)
    for _, values in positions(padded(call, windows, 0), windows, call.extent[2:]):
        total += np.abs(values) ** p
    return total ** np.float32(1 / p)


def global_average_pool(call: Call) -> Array:
    """Return the average over all spatial axes."""
    axes = tuple(range(2, len(call.box)))
    return np.asarray(call.array(0).mean(axis=axes, keepdims=True, dtype=np.float32))


def global_max_pool(call: Call) -> Array:
    """Return the maximum over all spatial axes."""
    return np.asarray(call.array(0).max(axis=tuple(range(2, len(call.box))), keepdims=True))


def _counts(window: Window, outputs: tuple[int, int], length: int, include: bool) -> Array:
    """Return how many positions of each window count along one axis."""
    low, high = (-window.pad, length + window.pad_end) if include else (0, length)
    first = np.arange(*outputs)[:, None] * window.stride - window.pad
    places = first + np.arange(window.kernel) * window.dilation
    inside = (places >= low) & (places < high)
    return np.asarray(inside.sum(axis=1), dtype=np.float32)


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -np.inf
