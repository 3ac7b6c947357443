"""Quantised operators of TensorFlow Lite in fixed point (:mod:`spmilp.frontend.fixed_point`)."""

from dataclasses import replace

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.products import counts_of, windows_over
from spmilp.checker.values.kernels.special import inside, resize
from spmilp.frontend.fixed_point import (
    ADDEND_BITS,
    TABLES,
    divided,
    factors_of,
    high_product,
    reciprocal,
    scaled,
    words_of,
)
from spmilp.frontend.operators.windows import windows_of


def fixed(call: Call) -> Array:
    """Return the box of the output of an operator that adds up no products."""
    words = words_of(call.operator, call.shape(0))
    kind = call.operator.kind
    if kind in TABLES:
        lowest = int(np.iinfo(call.array(0).dtype).min)
        return np.array(words)[call.array(0).astype(np.int64) - lowest]
    if kind == "Resize":
        # Exact: eight bits, and ten behind the point along each of four axes.
        result = resize(replace(call, inputs=[call.array(0).astype(np.float64)]))
        return np.asarray(np.sign(result) * np.floor(np.abs(result) + 0.5))
    kernels = {"AveragePool": _average_pool, "ReduceMean": _mean, "Softmax": _softmax}
    return kernels.get(kind, _of_two)(call, words)


def requantised(call: Call, total: Array) -> Array:
    """Return the integers of sums of products."""
    low, high, *rest = words_of(call.operator, call.shape(0))
    if call.operator.kind == "Gemm":
        # LiteRT multiplies the sums of FULLY_CONNECTED in float64, a half rounded away from zero.
        reals = total * _of_channels(call, factors_of(call.operator))
        result = np.sign(reals) * np.floor(np.abs(reals) + 0.5)
    else:
        factors, shifts = np.array(rest).reshape(-1, 2).T
        result = scaled(total, _of_channels(call, factors), _of_channels(call, shifts))
    return np.asarray(np.clip(result + _zero(call), low, high))


def _of_channels(call: Call, values: Array) -> Array:
    """Return values of each channel, or one of all, shaped to broadcast to the box."""
    if len(values) == 1:
        return values
    axis = 1 if call.operator.kind in ("Conv", "ConvTranspose") else len(call.box) - 1
    own = np.asarray(values[np.arange(*call.box[axis]) % len(values)])
    return np.asarray(own.reshape(-1, *(1,) * (len(call.box) - axis - 1)))


def _zero(call: Call, position: int | None = None) -> int:
    """Return the zero point of the result, or of an operand."""
    given = call.operator.quantisation
    scale = given and (given.output if position is None else given.inputs[position])
    return int(scale.zero_point.reshape(())) if scale else 0


def _less_zero(call: Call, position: int) -> Array:
    return call.array(position).astype(np.int64) - _zero(call, position)


def _of_two(call: Call, words: tuple[int, ...]) -> Array:
    """Return sums, differences or products; what is added has the larger scale first."""
    low, high, *rest = words
    one, other = _less_zero(call, 0), _less_zero(call, 1)
    if call.operator.kind == "Mul":
        result = scaled(one * other, *rest)
    else:
        one = scaled(one << ADDEND_BITS, *rest[:2])
        other = scaled(other << ADDEND_BITS, *rest[2:4])
        result = scaled(one - other if call.operator.kind == "Sub" else one + other, *rest[4:])
    return np.asarray(np.clip(result + _zero(call), low, high))


def _average_pool(call: Call, words: tuple[int, ...]) -> Array:
    """Return averages, a half rounded away from zero, of the integers as they are."""
    windows = windows_over(replace(call, inputs=[call.array(0).astype(np.int64)]), 0)
    total = windows.reshape(*call.extent, -1).sum(axis=-1)
    count = np.ones((), np.int64)
    for axis, window in enumerate(windows_of(call.operator, len(call.box) - 2), start=2):
        counts = counts_of(window, call.box[axis], call.shape(0)[axis], include=False)
        count = count * counts.astype(np.int64).reshape(-1, *(1,) * (len(call.box) - axis - 1))
    result = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return np.asarray(np.clip(result, words[0], words[1]))


def _mean(call: Call, words: tuple[int, ...]) -> Array:
    low, high, factor, shift = words
    axes = call.operator.integers("axes")
    total = _less_zero(call, 0).sum(axis=axes, keepdims=bool(call.operator.integer("keepdims")))
    return np.clip(scaled(total, factor, shift) + _zero(call), low, high)


def _softmax(call: Call, words: tuple[int, ...]) -> Array:
    """Return exponentials divided by their sum, which has 12 bits before the point."""
    values, axis = call.array(0).astype(np.int64), call.operator.integer("axis")
    exponentials = np.array(words)[values.max(axis=axis, keepdims=True) - values]
    total = divided(exponentials, 12).sum(axis=axis, keepdims=True)
    # As many bits as lie above the highest one that is set, of 32.
    above = 32 - np.frexp(total)[1]
    inverse = reciprocal((total << above) - (1 << 31))
    limits = np.iinfo(call.dtype.name)
    result = divided(high_product(inverse, exponentials), 12 - above + 31 - 8) + limits.min
    return inside(call, np.clip(result, limits.min, limits.max))
