"""Reductions and sums along axes, normalisations and Softmax; statistics in float32."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.units import Box


def batch_normalization(call: Call) -> Array:
    """Return ``(x - mean) / sqrt(var + epsilon) * scale + bias``."""
    trailing = (1,) * (len(call.box) - 2)
    scale, bias, mean, variance = (
        call.array(position).reshape(-1, *trailing) for position in range(1, 5)
    )
    deviation = np.sqrt(variance + np.float32(call.operator.number("epsilon")))
    return np.asarray((call.array(0) - mean) / deviation * scale + bias)


def layer_normalization(call: Call) -> Array:
    """Return rows with mean 0 and variance 1, scaled and shifted."""
    values = call.array(0)
    axes = tuple(range(call.operator.integer("axis"), values.ndim))
    return _scaled(call, _normalised(values, axes, call.operator.number("epsilon")))


def rms_normalization(call: Call) -> Array:
    """Return rows divided by their root mean square, scaled."""
    values = call.array(0)
    axes = tuple(range(call.operator.integer("axis"), values.ndim))
    square = np.mean(values * values, axis=axes, keepdims=True, dtype=np.float32)
    return _scaled(call, values / np.sqrt(square + np.float32(call.operator.number("epsilon"))))


def group_normalization(call: Call) -> Array:
    """Return groups of channels with mean 0 and variance 1, scaled and shifted per channel."""
    values, read = call.array(0), call.read(0)
    size = 1
    if call.operator.kind == "GroupNormalization":
        size = call.shape(0)[1] // call.operator.integer("num_groups")
    grouped = values.reshape(values.shape[0], values.shape[1] // size, -1)
    flat = _normalised(grouped, (2,), call.operator.number("epsilon"))
    inside = _inside(flat.reshape(values.shape), read, call.box)
    trailing = (1,) * (values.ndim - 2)
    scale, bias = (call.array(position).reshape(-1, *trailing) for position in (1, 2))
    return np.asarray(inside * scale + bias)


def softmax(call: Call) -> Array:
    """Return exponentials divided by their sum."""
    exponentials = _exp(_below_the_maximum(call))
    total = exponentials.sum(axis=call.operator.integer("axis"), keepdims=True)
    return _inside(exponentials / total, call.read(0), call.box)


def log_softmax(call: Call) -> Array:
    """Return the logarithm of the Softmax."""
    values = _below_the_maximum(call)
    total = _exp(values).sum(axis=call.operator.integer("axis"), keepdims=True)
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
    return np.asarray(values - values.max(axis=call.operator.integer("axis"), keepdims=True))


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


def reduce(call: Call) -> Array:
    """Return the reduced values; axes that are reduced stay with length 1 or go."""
    values, axes = call.array(0), call.operator.integers("axes")
    keep = bool(call.operator.integer("keepdims"))
    return np.asarray(_REDUCTIONS[call.operator.kind](values, axis=axes, keepdims=keep))


def position_of_extreme(call: Call) -> Array:
    """Return where along an axis the greatest or least element is, the first or last of equals."""
    values, (axis,) = call.array(0), call.operator.integers("axes", 1)
    keep = bool(call.operator.integer("keepdims"))
    find = np.argmax if call.operator.kind == "ArgMax" else np.argmin
    if not call.operator.integer("select_last_index"):
        return np.asarray(find(values, axis=axis, keepdims=keep))
    last = values.shape[axis] - 1
    return np.asarray(last - find(np.flip(values, axis), axis=axis, keepdims=keep))


def top(call: Call) -> Array:
    """Return the greatest or least elements in order, or their positions."""
    values, axis, k = call.array(0), *(call.operator.integer(name) for name in ("axis", "k"))
    if call.operator.integer("largest"):
        # From the last to the first, so that the first of equal ones ends in front.
        backwards = np.argsort(np.flip(values, axis), axis=axis, kind="stable")
        order = values.shape[axis] - 1 - np.flip(backwards, axis)
    else:
        order = np.argsort(values, axis=axis, kind="stable")
    order = np.take(order, range(k), axis=axis)
    found = order if call.operator.integer("positions") else np.take_along_axis(values, order, axis)
    return np.take(found, range(*call.box[axis]), axis=axis)


def cumulative_sum(call: Call) -> Array:
    """Return the running sum along one axis."""
    values, axis = call.array(0), call.operator.integer("axis")
    reverse = bool(call.operator.integer("reverse"))
    ordered = np.flip(values, axis) if reverse else values
    total = np.cumsum(ordered, axis=axis, dtype=values.dtype)
    total = total - ordered if call.operator.integer("exclusive") else total
    total = np.flip(total, axis) if reverse else total
    start, stop = call.box[axis]
    return np.asarray(np.take(total, range(start, stop), axis=axis))


def lrn(call: Call) -> Array:
    """Return each value divided by a power of the sum of squares around its channel."""
    operator, values, read = call.operator, call.array(0), call.read(0)
    size = operator.integer("size")
    squares = values * values
    start, stop = call.box[1]
    first = read[1][0]
    total = np.zeros(call.extent, dtype=squares.dtype)
    for channel in range(start, stop):
        low, high = channel - (size - 1) // 2, channel + size // 2 + 1
        near = squares[:, max(low - first, 0) : high - first]
        total[:, channel - start] = near.sum(axis=1)
    alpha, beta, bias = (np.float32(operator.number(name)) for name in ("alpha", "beta", "bias"))
    inside = values[:, start - first : stop - first]
    return np.asarray(inside / (bias + alpha / np.float32(size) * total) ** beta)


def _mean(values: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    if np.issubdtype(values.dtype, np.integer):
        total = values.sum(axis=axis, keepdims=keepdims, dtype=np.int64)
        count = int(np.prod([values.shape[one] for one in axis]))
        return np.sign(total) * (np.abs(total) // count)
    return values.mean(axis=axis, keepdims=keepdims)


def _log_sum_exp(values: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    greatest = values.max(axis=axis, keepdims=True)
    total = np.exp(values - greatest).sum(axis=axis, keepdims=True)
    result = np.log(total) + greatest
    return result if keepdims else result.squeeze(axis)


_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "ReduceL1": lambda values, **how: np.abs(values).sum(**how),
    "ReduceL2": lambda values, **how: np.sqrt((values * values).sum(**how)),
    "ReduceLogSum": lambda values, **how: np.log(values.sum(**how)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": np.max,
    "ReduceMean": _mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda values, **how: (values * values).sum(**how),
}

REDUCTIONS: Mapping[str, Callable[[Call], Array]] = {
    **dict.fromkeys(_REDUCTIONS, reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), position_of_extreme),
    "BatchNormalization": batch_normalization,
    "CumSum": cumulative_sum,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": group_normalization,
    "LRN": lrn,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": log_softmax,
    "RMSNormalization": rms_normalization,
    "Softmax": softmax,
    "TopK": top,
}
