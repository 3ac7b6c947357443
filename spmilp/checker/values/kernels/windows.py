"""Values under a sliding window."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.windows import Window


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
