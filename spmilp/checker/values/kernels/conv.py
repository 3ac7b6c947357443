"""Convolutions as matrix products over gathered windows (im2col)."""

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.pool import padded, positions
from spmilp.frontend.operators.attributes import integer
from spmilp.frontend.operators.windows import Window, windows_of


def conv(call: Call) -> Array:
    """Return the sum of products of a Conv, for the channels that are given."""
    weight = call.array(1)
    if not call.there(0):
        return np.zeros(call.extent, dtype=weight.dtype)
    windows = windows_of(call.operator, len(call.box) - 2)
    canvas = padded(call, windows, 0)
    outputs, first = call.shape(1)[0], call.box[1][0]
    size = outputs // integer(call.operator, "group")
    groups = (call.box[1][1] - 1) // size - first // size + 1
    if groups == 1:
        return _dense(canvas, weight, windows, call.extent[2:])
    if size == 1 and weight.shape[1] == 1:
        return _depthwise(canvas, weight, windows, call.extent[2:])
    depth = weight.shape[1]
    parts = []
    for group in range(groups):
        own = slice(
            max(0, (first // size + group) * size - first),
            (first // size + group + 1) * size - first,
        )
        channels = canvas[:, group * depth : (group + 1) * depth]
        parts.append(_dense(channels, weight[own], windows, call.extent[2:]))
    return np.concatenate(parts, axis=1)


def _dense(
    canvas: Array, weight: Array, windows: tuple[Window, ...], counts: tuple[int, ...]
) -> Array:
    strides = [
        stride * window.stride for stride, window in zip(canvas.strides[2:], windows, strict=True)
    ]
    inner = [
        stride * window.dilation for stride, window in zip(canvas.strides[2:], windows, strict=True)
    ]
    kernel = [window.kernel for window in windows]
    gathered = as_strided(
        canvas,
        shape=(*canvas.shape[:2], *kernel, *counts),
        strides=(*canvas.strides[:2], *inner, *strides),
        writeable=False,
    )
    columns = gathered.reshape(canvas.shape[0], canvas.shape[1] * prod(kernel), prod(counts))
    result: Array = weight.reshape(weight.shape[0], -1) @ columns
    return result.reshape(canvas.shape[0], weight.shape[0], *counts)


def _depthwise(
    canvas: Array, weight: Array, windows: tuple[Window, ...], counts: tuple[int, ...]
) -> Array:
    result = np.zeros((*canvas.shape[:2], *counts), dtype=np.result_type(canvas, weight))
    ones = (1,) * len(windows)
    by_position = np.moveaxis(weight[:, 0], 0, -1)
    for position, values in positions(canvas, windows, counts):
        result += values * by_position[position].reshape(1, -1, *ones)
    return result


def conv_transpose(call: Call) -> Array:
    """Return the sum of products of a ConvTranspose."""
    weight = call.array(1)
    result = np.zeros(call.extent, dtype=weight.dtype)
    if not call.there(0):
        return result
    values, read = call.array(0), call.read(0)
    windows = windows_of(call.operator, len(call.box) - 2)
    size = call.shape(1)[1]
    depth = call.shape(1)[0] // integer(call.operator, "group")
    first = call.box[1][0] // size
    groups = values.shape[1] // depth
    offset = 0 if groups == 1 else call.box[1][0] - first * size
    scattered = [
        _scatter(
            values[:, group * depth : (group + 1) * depth],
            weight[group * depth : (group + 1) * depth],
            windows,
        )
        for group in range(groups)
    ]
    canvas = np.concatenate(scattered, axis=1)[:, offset : offset + call.extent[1]]
    source, target = [slice(None), slice(None)], [slice(None), slice(None)]
    for axis, window in enumerate(windows, start=2):
        origin = read[axis][0] * window.stride - window.pad
        start, stop = call.box[axis]
        low, high = max(start, origin), min(stop, origin + canvas.shape[axis])
        source.append(slice(low - origin, high - origin))
        target.append(slice(low - start, high - start))
    result[tuple(target)] = canvas[tuple(source)]
    return result


def _scatter(values: Array, weight: Array, windows: tuple[Window, ...]) -> Array:
    """Return all outputs to which the values of one group add."""
    counts = values.shape[2:]
    spans = [
        (count - 1) * window.stride + window.span
        for count, window in zip(counts, windows, strict=True)
    ]
    canvas = np.zeros((values.shape[0], weight.shape[1], *spans), dtype=values.dtype)
    columns = values.reshape(*values.shape[:2], prod(counts))
    by_position = np.moveaxis(weight, (0, 1), (-1, -2))
    for position, view in positions(canvas, windows, counts):
        view += (by_position[position] @ columns).reshape(view.shape)
    return canvas
