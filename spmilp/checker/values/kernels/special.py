"""Operators that need other bits than ``onnx.reference`` gives, or that it does not compute."""

from math import erf, pi, sqrt
from typing import Any

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.boxes import slices, starts
from spmilp.frontend.operators.resize import taps


def gelu(call: Call) -> Array:
    """Return ``x`` times the share of a normal distribution that lies below it."""
    x = call.array(0)
    if call.operator.text("approximate") == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))))
    below = np.vectorize(erf, otypes=[np.float64])(x / np.float32(sqrt(2))).astype(x.dtype)
    return np.asarray(0.5 * x * (1 + below))


def softmax(call: Call) -> Array:
    """Return exponentials divided by their sum."""
    exponentials = _exp(_below_the_maximum(call))
    total = exponentials.sum(axis=call.operator.integer("axis"), keepdims=True)
    return inside(call, exponentials / total)


def log_softmax(call: Call) -> Array:
    """Return the logarithm of the Softmax."""
    values = _below_the_maximum(call)
    total = _exp(values).sum(axis=call.operator.integer("axis"), keepdims=True)
    return inside(call, values - np.log(total))


def log_sum_exp(call: Call) -> Array:
    """Return the logarithm of a sum of exponentials, as onnxruntime: where all are 0, -infinity."""
    values = call.array(0)
    values = values.astype(np.result_type(values, np.float32), copy=False)
    axes = call.operator.integers("axes")
    greatest = values.max(axis=axes, keepdims=True)
    greatest = np.where(np.isfinite(greatest), greatest, values.dtype.type(0))
    total = _exp(values - greatest).sum(axis=axes, keepdims=True)
    result = np.log(total, dtype=np.float64).astype(values.dtype) + greatest
    return np.asarray(result if call.operator.integer("keepdims") else result.squeeze(axes))


def _exp(values: Array) -> Array:
    """Return exponentials rounded once.

    NumPy's own for float32 are off by up to 2.5 units in the last place, by how much depends on the
    processor: integer networks shall give the same bits everywhere.
    """
    return np.asarray(np.exp(values, dtype=np.float64).astype(values.dtype))


def _below_the_maximum(call: Call) -> Array:
    """Return the values minus their greatest, so that no exponential overflows."""
    values = call.array(0)
    return np.asarray(values - values.max(axis=call.operator.integer("axis"), keepdims=True))


def inside(call: Call, values: Array) -> Array:
    """Return the part of what was computed for all that is read that is asked for."""
    return values[slices(call.box, starts(call.read(0)))]


def global_max_pool(call: Call) -> Array:
    """Compute GlobalMaxPool over any number of axes; ONNX's reference takes two."""
    values = call.array(0)
    return np.asarray(values.max(axis=tuple(range(2, values.ndim)), keepdims=True))


def group_normalization(call: Call) -> Array:
    """Return groups of channels with mean 0 and variance 1, scaled and shifted per channel."""
    values = call.array(0)
    size = call.shape(0)[1] // call.operator.integer("num_groups")
    groups = values.reshape(values.shape[0], values.shape[1] // size, -1)
    centred = groups - groups.mean(axis=2, keepdims=True, dtype=np.float32)
    variance = np.mean(centred * centred, axis=2, keepdims=True, dtype=np.float32)
    normalised = centred / np.sqrt(variance + np.float32(call.operator.number("epsilon")))
    own = inside(call, normalised.reshape(values.shape))
    scale, bias = (call.array(at).reshape(-1, *(1,) * (values.ndim - 2)) for at in (1, 2))
    return np.asarray(own * scale + bias)


def gather_elements(call: Call) -> Array:
    """Return for each index the element at it along the axis."""
    axis = call.operator.integer("axis")
    return np.take_along_axis(call.array(0), call.array(1), axis=axis)


def scatter_elements(call: Call) -> Array:
    """Change the elements that the indices name, in the order of the updates."""
    result, axis = call.array(0).copy(), call.operator.integer("axis")
    if call.there(1):
        along = call.array(1) % call.shape(0)[axis] - call.box[axis][0]
        places = [*np.indices(along.shape)]
        places[axis] = along
        chosen = (along >= 0) & (along < result.shape[axis])
        at, updates = tuple(each[chosen] for each in places), call.array(2)[chosen]
        how = REDUCTIONS.get(call.operator.text("reduction"))
        if how is None:
            result[at] = updates
        else:
            how.at(result, at, updates)
    return result


REDUCTIONS = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}


def lrn(call: Call) -> Array:
    """Divide by a power of the squares of the channels around each element."""
    operator, values = call.operator, call.whole(0)
    size = operator.integer("size")
    sides = ((size - 1) // 2, size // 2)
    squares = np.pad(values * values, [(0, 0), sides, *[(0, 0)] * (values.ndim - 2)])
    sums = np.lib.stride_tricks.sliding_window_view(squares, size, axis=1).sum(axis=-1)
    alpha, beta, bias = map(operator.number, ("alpha", "beta", "bias"))
    result = values / (bias + alpha / size * sums) ** beta
    return np.asarray(result[slices(call.box, (0,) * len(call.box))], dtype=values.dtype)


def pad(call: Call) -> Array:
    """Put elements around the input; negative pads cut some off."""
    operator, rank = call.operator, len(call.box)
    pads, mode = operator.integers("pads", 2 * rank), operator.text("mode")
    sides = [
        (max(low, 0), max(high, 0)) for low, high in zip(pads[:rank], pads[rank:], strict=True)
    ]
    how: dict[str, Any] = {"mode": mode}
    if mode == "constant":
        how["constant_values"] = operator.number("value")
    padded = np.pad(call.whole(0), sides, **how)
    return np.asarray(padded[slices(call.box, [min(low, 0) for low in pads[:rank]])])


def resize(call: Call) -> Array:
    """Interpolate the box."""
    outside_value = np.float32(call.operator.number("extrapolation_value"))
    if not call.there(0):
        return np.full(call.extent, outside_value)
    result, read = call.array(0), call.read(0)
    copies = call.operator.text("mode") == "nearest"
    outside = np.zeros((1,) * len(call.box), dtype=np.bool_)
    for axis, interval in enumerate(call.box):
        used = taps(call.operator, call.shape(0)[axis], axis, interval)
        first, last = read[axis][0], read[axis][1] - 1
        places = np.clip(used.positions, first, last) - first
        trailing = (1,) * (len(call.box) - axis - 1)
        if copies or len(places) == 1:
            result = np.take(result, places[0], axis=axis)
        else:
            weighted = [
                np.take(result, place, axis=axis) * weight.reshape(-1, *trailing)
                for place, weight in zip(places, used.weights, strict=True)
            ]
            result = np.sum(weighted, axis=0)
        outside = outside | used.outside.reshape(-1, *trailing)
    return np.where(outside, outside_value, result) if outside.any() else result
