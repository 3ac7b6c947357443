"""Reductions over whole axes, and sums along an axis."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.attributes import integer, integers, number


def reduce(call: Call) -> Array:
    """Return the reduced values; axes that are reduced stay with length 1 or go."""
    values, axes = call.array(0), integers(call.operator, "axes")
    keep = bool(integer(call.operator, "keepdims"))
    return np.asarray(_REDUCTIONS[call.operator.kind](values, axis=axes, keepdims=keep))


def cumulative_sum(call: Call) -> Array:
    """Return the running sum along one axis."""
    values, axis = call.array(0), integer(call.operator, "axis")
    reverse = bool(integer(call.operator, "reverse"))
    ordered = np.flip(values, axis) if reverse else values
    total = np.cumsum(ordered, axis=axis, dtype=values.dtype)
    total = total - ordered if integer(call.operator, "exclusive") else total
    total = np.flip(total, axis) if reverse else total
    start, stop = call.box[axis]
    return np.asarray(np.take(total, range(start, stop), axis=axis))


def lrn(call: Call) -> Array:
    """Return each value divided by a power of the sum of squares around its channel."""
    operator, values, read = call.operator, call.array(0), call.read(0)
    size = integer(operator, "size")
    squares = values * values
    start, stop = call.box[1]
    first = read[1][0]
    total = np.zeros(call.extent, dtype=squares.dtype)
    for channel in range(start, stop):
        low, high = channel - (size - 1) // 2, channel + size // 2 + 1
        near = squares[:, max(low - first, 0) : high - first]
        total[:, channel - start] = near.sum(axis=1)
    alpha, beta, bias = (np.float32(number(operator, name)) for name in ("alpha", "beta", "bias"))
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
