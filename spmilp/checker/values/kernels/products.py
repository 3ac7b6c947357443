"""Windows over padded values, pooling, and sums of products: whole or a part of their reduction.

Floats are added in float32 (float64 for double operands). Quantised operands are added exactly and
the sum wraps around in int32, so that the order of the parts of a split reduction does not matter.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.elementwise import along, saturate, scale_of_products
from spmilp.frontend.graph import Operator, Scale
from spmilp.frontend.operators.products import letters
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
    include = bool(call.operator.integer("count_include_pad"))
    for axis, window in enumerate(windows, start=2):
        counts = _counts(window, call.box[axis], call.shape(0)[axis], include)
        total /= counts.reshape(-1, *(1,) * (len(call.box) - axis - 1))
    return total


def lp_pool(call: Call) -> Array:
    """Return the p-norm of each window."""
    windows = windows_of(call.operator, len(call.box) - 2)
    p = call.operator.integer("p")
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


POOLING: Mapping[str, Callable[[Call], Array]] = {
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "GlobalMaxPool": global_max_pool,
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
    windows = windows_of(call.operator, len(call.box) - 2)
    canvas = padded(call, windows, 0)
    outputs, first = call.shape(1)[0], call.box[1][0]
    size = outputs // call.operator.integer("group")
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
    depth = call.shape(1)[0] // call.operator.integer("group")
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
"""Those whose result is the int32 sum itself."""


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
    sums = SUMS[call.operator.kind]
    scales = integer_scales(call.operator)
    if call.operator.kind in INTEGER_SUMS:
        exact = sums(replace(call, inputs=[_less_zero(call, position) for position in range(2)]))
        return np.rint(exact).astype(np.int64).astype(np.int32)
    if scales is None:
        return sums(call)
    centred = [
        None if values is None or box is None else _minus_zero(values, scale, box)
        for values, box, scale in zip(call.inputs[:2], call.boxes[:2], scales, strict=True)
    ]
    exact = sums(replace(call, inputs=(*centred, *call.inputs[2:])))
    return np.rint(exact).astype(np.int64).astype(np.int32)


def finish(call: Call, total: Array) -> Array:
    """Return the result from the sum of all products: bias, scale, limits, rounding."""
    if call.operator.kind in INTEGER_SUMS:
        return total
    scales = integer_scales(call.operator)
    if scales is None:
        return _add_bias(call, total)
    quantisation = call.operator.quantisation
    step = scale_of_products(call, *scales)
    if call.there(2) and np.issubdtype(call.array(2).dtype, np.integer):
        total = (total + _bias(call).astype(np.int32)).astype(np.int32)
    output = None if quantisation is None else quantisation.output
    zero: Array = np.zeros((), dtype=np.int32)
    unit: Array = np.ones((), dtype=np.float32)
    if output is not None:
        unit, zero = along(output, call.box)
    values: Array = total.astype(np.float32) * (step / unit).astype(np.float32)
    if call.there(2) and not np.issubdtype(call.array(2).dtype, np.integer):
        values = values + _bias(call) / unit
    if quantisation is not None and quantisation.low is not None:
        values = np.maximum(values, np.float32(quantisation.low) / unit)
    if quantisation is not None and quantisation.high is not None:
        values = np.minimum(values, np.float32(quantisation.high) / unit)
    return values if output is None else saturate(np.rint(values), zero, output.dtype)


def _minus_zero(values: Array, scale: Scale, box: Any) -> Array:
    """Return integers relative to their zero point, in float64: products of bytes stay exact."""
    _, zero = along(scale, box)
    return values.astype(np.float64) - zero


def _less_zero(call: Call, position: int) -> Array | None:
    """Return an operand less its zero points, in float64; ``None`` if nothing of it is read."""
    if not call.there(position):
        return None
    values = call.array(position).astype(np.float64)
    if not call.there(position + 2):
        return values
    zero = call.array(position + 2).reshape(-1)
    if zero.size == 1:
        return np.asarray(values - zero[0])
    # One per row of the first operand, output channel of a weight, or column of the second.
    channels = call.operator.kind == "ConvInteger"
    trailing = values.ndim - 1 if channels else 1 - position
    return np.asarray(values - zero.reshape(-1, *(1,) * trailing))


def _bias(call: Call) -> Array:
    """Return the bias, shaped to broadcast to the output."""
    if call.operator.kind in ("Conv", "ConvTranspose"):
        return call.array(2).reshape(-1, *(1,) * (len(call.box) - 2))
    return call.array(2)


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
