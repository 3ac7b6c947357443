"""Windows over padded values, pooling, and sums of products: whole or a part of their reduction.

Floats are added in float32 (float64 for double operands). Quantised operands are added exactly and
the sum wraps around in int32, so that the order of the parts of a split reduction does not matter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.quantisation import along, saturate, scale_of_products, within
from spmilp.frontend.graph import Operator, Scale
from spmilp.frontend.operators.products import letters
from spmilp.frontend.operators.windows import Window, windows_of


def windows_over(call: Call, fill: Any) -> Array:
    """Return the window of each output of the box, padding filled in.

    Axes are batch, channels, those of the outputs, and those of the positions in a window.
    """
    windows, around = windows_of(call.operator, len(call.box) - 2), [(0, 0), (0, 0)]
    for (start, stop), (low, high), window in zip(
        call.box[2:], call.read(0)[2:], windows, strict=True
    ):
        first = start * window.stride - window.pad
        last = (stop - 1) * window.stride - window.pad + window.span
        around.append((low - first, last - high))
    return _views(np.pad(call.array(0), around, constant_values=fill), windows)


def _views(canvas: Array, windows: Sequence[Window], every: Sequence[int] | None = None) -> Array:
    """Return the windows over padded values; one in ``every`` so many, by default their strides."""
    strides = [window.stride for window in windows] if every is None else every
    views = sliding_window_view(
        canvas, [window.span for window in windows], axis=tuple(range(2, canvas.ndim))
    )
    outputs = (slice(None, None, stride) for stride in strides)
    inner = (slice(None, None, window.dilation) for window in windows)
    return views[(slice(None), slice(None), *outputs, *inner)]


def _total(call: Call, values: Array) -> Array:
    """Return the sum of each window, one position after the other, as exported C adds them.

    The order in which NumPy adds depends on how many outputs there are.
    """
    by_position = np.moveaxis(values.reshape(*call.extent, -1), -1, 0)
    return reduce(np.add, by_position, np.zeros(call.extent, dtype=np.float32))


def max_pool(call: Call) -> Array:
    """Return the maximum of each window; padding never wins."""
    dtype = call.array(0).dtype
    lowest = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -np.inf
    positions = tuple(range(len(call.box), 2 * len(call.box) - 2))
    return np.asarray(windows_over(call, lowest).max(axis=positions))


def average_pool(call: Call) -> Array:
    """Return the average of each window, over the padding too where the operator says so."""
    total = _total(call, windows_over(call, 0))
    include = bool(call.operator.integer("count_include_pad"))
    for axis, window in enumerate(windows_of(call.operator, len(call.box) - 2), start=2):
        counts = counts_of(window, call.box[axis], call.shape(0)[axis], include)
        total /= counts.reshape(-1, *(1,) * (len(call.box) - axis - 1))
    return total


def lp_pool(call: Call) -> Array:
    """Return the p-norm of each window."""
    p = call.operator.integer("p")
    powers = np.abs(windows_over(call, 0)) ** p
    return np.asarray(_total(call, powers) ** np.float32(1 / p))


def counts_of(window: Window, outputs: tuple[int, int], length: int, include: bool) -> Array:
    """Return how many positions of each window count along one axis."""
    low, high = (-window.pad, length + window.pad_end) if include else (0, length)
    first = np.arange(*outputs)[:, None] * window.stride - window.pad
    places = first + np.arange(window.kernel) * window.dilation
    inside = (places >= low) & (places < high)
    return np.asarray(inside.sum(axis=1), dtype=np.float32)


POOLING: Mapping[str, Callable[[Call], Array]] = {
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "MaxPool": max_pool,
}


def gemm(call: Call) -> Array:
    """Return the product of the (transposed) operands of a Gemm, without alpha, beta and C."""
    left, right = call.array(0), call.array(1)
    left = left.T if call.operator.integer("transA") else left
    right = right.T if call.operator.integer("transB") else right
    product: Array = left @ right
    return product


def matmul(call: Call) -> Array:
    """Return the product of the operands of a MatMul."""
    return np.asarray(np.matmul(call.array(0), call.array(1)))


def einsum(call: Call) -> Array:
    """Return the sum of products of an Einsum."""
    operands, result = letters(call.operator)
    arrays = [call.array(position) for position in range(len(operands))]
    equation = f"{','.join(operands)}->{result}"
    return np.asarray(np.einsum(equation, *arrays, optimize=len(arrays) > 1))


def conv(call: Call) -> Array:
    """Return the sum of products of a Conv, for the channels that are given."""
    weight = call.array(1)
    if not call.there(0):
        return np.zeros(call.extent, dtype=weight.dtype)
    (first, stop), size = call.box[1], call.shape(1)[0] // call.operator.integer("group")
    before, after = first % size, -stop % size
    channels = [(before, after), *[(0, 0)] * (weight.ndim - 1)]
    groups = np.pad(weight, channels).reshape(-1, size, *weight.shape[1:])
    return _products(windows_over(call, 0), groups)[:, before : before + stop - first]


def conv_transpose(call: Call) -> Array:
    """Return the sum of products of a ConvTranspose.

    That is a Conv, with the kernel turned round, over the inputs set apart by the strides.
    """
    weight, size = call.array(1), call.shape(1)[1]
    if not call.there(0):
        return np.zeros(call.extent, dtype=weight.dtype)
    values, windows = call.array(0), windows_of(call.operator, len(call.box) - 2)
    depth = call.shape(1)[0] // call.operator.integer("group")
    lengths, places = [*values.shape[:2]], [slice(None), slice(None)]
    for (start, stop), (low, high), window in zip(
        call.box[2:], call.read(0)[2:], windows, strict=True
    ):
        origin = start + window.pad - window.span + 1
        lengths.append(stop - start + window.span - 1)
        first, last = low * window.stride - origin, (high - 1) * window.stride - origin
        places.append(slice(first, last + 1, window.stride))
    canvas = np.zeros(lengths, dtype=values.dtype)
    canvas[tuple(places)] = values
    groups = weight.reshape(-1, depth, *weight.shape[1:]).swapaxes(1, 2)
    turned = np.flip(groups, axis=tuple(range(3, groups.ndim)))
    offset = 0 if len(groups) == 1 else call.box[1][0] % size
    result = _products(_views(canvas, windows, [1] * len(windows)), turned)
    return result[:, offset : offset + call.extent[1]]


def _products(views: Array, weight: Array) -> Array:
    """Return the sums of products of windows and weights.

    The weight's axes are group, output channel, input channel of the group, and position.
    """
    batch, outputs = views.shape[0], views.shape[2 : views.ndim // 2 + 1]
    spatial = len(outputs)
    inner = np.moveaxis(views, range(2 + spatial, 2 + 2 * spatial), range(2, 2 + spatial))
    columns = inner.reshape(batch, len(weight), -1, prod(outputs))
    result: Array = weight.reshape(*weight.shape[:2], -1) @ columns
    return result.reshape(batch, -1, *outputs)


SUMS: Mapping[str, Callable[[Call], Array]] = {
    "Conv": conv,
    "ConvInteger": conv,
    "ConvTranspose": conv_transpose,
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": matmul,
    "MatMulInteger": matmul,
}

INTEGER_SUMS = frozenset({"ConvInteger", "MatMulInteger"})
"""Operators whose result is the int32 sum itself."""


def integer_scales(operator: Operator) -> tuple[Scale, Scale] | None:
    """Return the scales of the two factors when they are multiplied as integers."""
    if operator.quantisation is None or operator.kind not in SUMS or operator.kind == "Einsum":
        return None
    data, weight = operator.quantisation.inputs[:2]
    return (data, weight) if data is not None and weight is not None else None


def accumulator_dtype(operator: Operator) -> np.dtype[Any]:
    """Return the type of the partial sums of an operator."""
    is_integer = operator.kind in INTEGER_SUMS or integer_scales(operator) is not None
    return np.dtype(np.int32 if is_integer else np.float32)


def accumulate(call: Call) -> Array:
    """Return the sum of the products that are given, before bias and scale."""
    scales = integer_scales(call.operator)
    if scales is None and call.operator.kind not in INTEGER_SUMS:
        return SUMS[call.operator.kind](call)
    factors = [_less_zero(call, position, scales and scales[position]) for position in range(2)]
    exact = SUMS[call.operator.kind](replace(call, inputs=(*factors, *call.inputs[2:])))
    return np.rint(exact).astype(np.int64).astype(np.int32)


def _less_zero(call: Call, position: int, scale: Scale | None) -> Array | None:
    """Return a factor less its zero points, in float64: products of bytes stay exact.

    ``None`` if nothing of it is read.
    """
    if not call.there(position):
        return None
    values = call.array(position).astype(np.float64)
    if scale is not None:
        return np.asarray(values - along(scale, call.read(position))[1])
    if not call.there(position + 2):
        return values
    zero = call.array(position + 2).reshape(-1)
    # One, or one per row of the first factor, output channel of a weight, column of the second.
    channels = call.operator.kind == "ConvInteger"
    trailing = values.ndim - 1 if channels else 1 - position
    return np.asarray(values - zero.reshape(-1, *(1,) * trailing * (zero.size > 1)))


def finish(call: Call, total: Array) -> Array:
    """Return the result from the sum of all products: bias, scale, limits, rounding."""
    if call.operator.kind in INTEGER_SUMS:
        return total
    scales, quantisation = integer_scales(call.operator), call.operator.quantisation
    if scales is None or quantisation is None:
        return _add_bias(call, total)
    step, output = scale_of_products(call, *scales), quantisation.output
    unit, zero = (1, np.int32(0)) if output is None else along(output, call.box)
    bias = _bias(call) if call.there(2) else np.zeros((), dtype=np.int32)
    of_integers = np.issubdtype(bias.dtype, np.integer)
    if of_integers:
        total = add_integers(call, total)
    values: Array = total.astype(np.float32) * (step / unit).astype(np.float32)
    if not of_integers:
        values = values + bias / unit
    values = within(values, quantisation, unit)
    return values if output is None else saturate(np.rint(values), zero, output.dtype)


def add_integers(call: Call, total: Array) -> Array:
    """Return sums and the bias, if there is one, which counts their steps."""
    return (total + _bias(call).astype(np.int32)).astype(np.int32) if call.there(2) else total


def _bias(call: Call) -> Array:
    """Return the bias, shaped to broadcast to the output."""
    spatial = len(call.box) - 2 if call.operator.kind in ("Conv", "ConvTranspose") else 0
    return call.array(2).reshape(-1, *(1,) * spatial) if spatial else call.array(2)


def _add_bias(call: Call, total: Array) -> Array:
    if call.operator.kind == "Gemm":
        alpha, beta = call.operator.number("alpha"), call.operator.number("beta")
        total = total if alpha == 1 else total * np.float32(alpha)
        if call.there(2):
            return np.asarray(
                total + (_bias(call) if beta == 1 else _bias(call) * np.float32(beta))
            )
        return total
    has_bias = call.operator.kind != "Einsum" and call.there(2)
    return np.asarray(total + _bias(call)) if has_bias else total
