"""Normalisations and Softmax; statistics in float32."""

from collections.abc import Sequence

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.attributes import integer, number
from spmilp.units import Box


def batch_normalization(call: Call) -> Array:
    """Return ``(x - mean) / sqrt(var + epsilon) * scale + bias``."""
    trailing = (1,) * (len(call.box) - 2)
    scale, bias, mean, variance = (
        call.array(position).reshape(-1, *trailing) for position in range(1, 5)
    )
    deviation = np.sqrt(variance + np.float32(number(call.operator, "epsilon")))
    return np.asarray((call.array(0) - mean) / deviation * scale + bias)


def layer_normalization(call: Call) -> Array:
    """Return rows with mean 0 and variance 1, scaled and shifted."""
    values = call.array(0)
    axes = tuple(range(integer(call.operator, "axis"), values.ndim))
    return _scaled(call, _normalised(values, axes, number(call.operator, "epsilon")))


def rms_normalization(call: Call) -> Array:
    """Return rows divided by their root mean square, scaled."""
    values = call.array(0)
    axes = tuple(range(integer(call.operator, "axis"), values.ndim))
    square = np.mean(values * values, axis=axes, keepdims=True, dtype=np.float32)
    return _scaled(call, values / np.sqrt(square + np.float32(number(call.operator, "epsilon"))))


def group_normalization(call: Call) -> Array:
    """Return groups of channels with mean 0 and variance 1, scaled and shifted per channel."""
    values, read = call.array(0), call.read(0)
    size = 1
    if call.operator.kind == "GroupNormalization":
        size = call.shape(0)[1] // integer(call.operator, "num_groups")
    grouped = values.reshape(values.shape[0], values.shape[1] // size, -1)
    flat = _normalised(grouped, (2,), number(call.operator, "epsilon"))
    inside = _inside(flat.reshape(values.shape), read, call.box)
    trailing = (1,) * (values.ndim - 2)
    scale, bias = (call.array(position).reshape(-1, *trailing) for position in (1, 2))
    return np.asarray(inside * scale + bias)


def softmax(call: Call) -> Array:
    """Return exponentials divided by their sum."""
    exponentials = _exp(_below_the_maximum(call))
    total = exponentials.sum(axis=integer(call.operator, "axis"), keepdims=True)
    return _inside(exponentials / total, call.read(0), call.box)


def log_softmax(call: Call) -> Array:
    """Return the logarithm of the Softmax."""
    values = _below_the_maximum(call)
    total = _exp(values).sum(axis=integer(call.operator, "axis"), keepdims=True)
    return _inside(values - np.log(total), call.read(0), call.box)


def _exp(values: Array) -> Array:
    """Return exponentials rounded once.

    NumPy's own for float32 are off by up to 2.5 units in the last place, by how much depends on the
    processor: integer networks shall give the same bits everywhere.
    """
    return np.asarray(np.exp(values, dtype=np.float64).astype(values.dtype))


def _below_the_maximum(call: Call) -> Array:
    """Return the values minus their greatest, so that no exponential overflows."""
    values = call.array(0)
    return np.asarray(values - values.max(axis=integer(call.operator, "axis"), keepdims=True))


def _normalised(values: Array, axes: Sequence[int], epsilon: float) -> Array:
    centred = values - values.mean(axis=tuple(axes), keepdims=True, dtype=np.float32)
    variance = np.mean(centred * centred, axis=tuple(axes), keepdims=True, dtype=np.float32)
    return np.asarray(centred / np.sqrt(variance + np.float32(epsilon)))


def _scaled(call: Call, values: Array) -> Array:
    inside = _inside(values, call.read(0), call.box) * call.array(1)
    return np.asarray(inside + call.array(2) if call.there(2) else inside)


def _inside(values: Array, read: Box, box: Box) -> Array:
    """Return the part of what was computed for ``read`` that is asked for."""
    place = tuple(
        slice(start - first, stop - first)
        for (start, stop), (first, _) in zip(box, read, strict=True)
    )
    return values[place]
