"""Quantised operators in fixed point, as TensorFlow Lite's reference kernels compute them.

A real factor becomes an integer of 31 bits and a power of two. What an operator needs is a row of
integers, which the replay and exported C read alike (:func:`words_of`). Formulas are those of
TensorFlow Lite (``tensorflow/lite/kernels/internal/{common,quantization_util}``, ``reference``),
after B. Jacob et al., Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference, CVPR 2018; exponentials are gemmlowp's (``fixedpoint.h``).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor, frexp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.frontend.graph import Operator, Quantisation, Rounding, Scale
from spmilp.units import Extents

Integers = NDArray[np.int64]

ONE = (1 << 31) - 1
"""The greatest number below 1 with 31 bits behind the point, which stands for 1."""

ADDEND_BITS = 20
"""Bits behind the point of what is added."""

SOFTMAX_BITS, LOGISTIC_BITS = 5, 4
"""Bits before the point of the operands of exponentials and of Sigmoid and Tanh."""

PLACES = 1 << 10
"""Where results of Resize lie between elements is rounded to these."""

BYTE = 256
"""How many values a byte has."""


def is_fixed(operator: Operator) -> bool:
    """Say whether an operator is computed in fixed point, if it computes at all."""
    given = operator.quantisation
    return (
        given is not None
        and given.output is not None
        and _is_marked(given.output)
        and operator.kind in WORDS
        and all(_fits(scale) for scale in _of_data(operator, given))
        and (operator.kind != "Resize" or _is_bilinear(operator, given.inputs[0], given.output))
    )


def is_exact(operator: Operator) -> bool:
    """Say whether an operator gives the integers of TensorFlow Lite's reference kernels."""
    return operator.quantisation is None or operator.kind in EXACT or is_fixed(operator)


def _is_marked(scale: Scale) -> bool:
    return scale.rounding is Rounding.FIXED_POINT and scale.dtype.itemsize == 1


def _fits(scale: Scale | None) -> bool:
    return scale is not None and scale.dtype.itemsize == 1


def _is_bilinear(operator: Operator, data: Scale | None, output: Scale) -> bool:
    """Say whether LiteRT interpolates integers: of int8, with one scale."""
    return (
        operator.text("mode") == "linear"
        and data is not None
        and output.dtype == np.int8
        and (_number(data), _zero(data)) == (_number(output), _zero(output))
    )


def _of_data(operator: Operator, given: Quantisation) -> tuple[Scale | None, ...]:
    """Return the scales of the operands but for a bias."""
    return given.inputs[: 2 if operator.kind in SUMS else None]


def words_of(operator: Operator, shape: Extents) -> tuple[int, ...]:
    """Return the integers that the kernel of an operator on data of such a shape needs.

    - Conv, ConvTranspose, MatMul: least and greatest result, then factor and shift of each channel,
      or one of both
    - Gemm: least and greatest result, then the bits of a float64 of each channel, or of all
    - Add, Sub: least and greatest result, factors and shifts of both operands and of the result
    - Mul, ReduceMean: least and greatest result, factor and shift
    - AveragePool: least and greatest result
    - Resize: along each axis the distance of its windows, and where the first begins, in 1024ths
    - Softmax: exponentials of 0, -1, ... -255 steps, with 31 bits behind the point
    - operators of one operand: the result of each byte, the least first
    """
    if operator.kind == "ReduceMean":
        count = prod(shape[axis] for axis in operator.integers("axes"))
        return tuple(_of_mean(count, *_scales(operator)))
    if operator.kind == "Resize":
        sizes = zip(shape, operator.integers("sizes"), strict=True)
        return tuple(word for pair in sizes for word in places_of(operator, *pair))
    return tuple(map(int, WORDS[operator.kind](operator, *_scales(operator))))


def _scales(operator: Operator) -> tuple[Quantisation, Scale, Scale]:
    """Return the quantisation, and the scales of the first operand and of the result."""
    given = operator.quantisation
    if given is None or given.output is None or given.inputs[0] is None:
        raise ValueError(f"{operator.name}: its scales are not given")
    return given, given.inputs[0], given.output


def _number(scale: Scale) -> np.float32:
    return np.float32(scale.scale.reshape(-1)[0])


def _zero(scale: Scale) -> int:
    return int(scale.zero_point.reshape(-1)[0])


def factor_and_shift(real: float) -> tuple[int, int]:
    """Return an integer of 31 bits and an exponent: ``real`` is about ``q * 2 ** (shift - 31)``."""
    fraction, shift = frexp(real)
    q = floor(fraction * (1 << 31) + 0.5)
    if q == 1 << 31:
        q, shift = q // 2, shift + 1
    return (0, 0) if shift < -31 else (q, shift)


def limits_of(given: Quantisation, output: Scale) -> tuple[int, int]:
    """Return the least and the greatest integer of a result, by its type and its limits."""
    known = np.iinfo(output.dtype.name)
    low, high = int(known.min), int(known.max)
    if given.low is not None:
        low = max(low, _zero(output) + _rounded(np.float32(given.low) / _number(output)))
    if given.high is not None:
        high = min(high, _zero(output) + _rounded(np.float32(given.high) / _number(output)))
    return low, high


def _rounded(value: Any) -> int:
    """Round to the nearest integer, a half away from zero."""
    return int(np.sign(value) * np.floor(np.abs(value) + np.float32(0.5)))


def factors_of(operator: Operator) -> NDArray[np.float64]:
    """Return what sums of products of each channel, or of all, are multiplied by."""
    given, data, output = _scales(operator)
    weight = given.inputs[1]
    if weight is None:
        raise ValueError(f"{operator.name}: its weights have no scale")
    products = np.float64(_number(data)) * weight.scale.reshape(-1)
    if operator.kind == "MatMul" or output.dtype == np.uint8:
        products = (_number(data) * weight.scale.reshape(-1)).astype(np.float64)
    return products / np.float64(_number(output))


def _of_sums(
    operator: Operator, given: Quantisation, data: Scale, output: Scale
) -> tuple[int, ...]:
    found = list(limits_of(given, output))
    for factor in map(float, factors_of(operator)):
        found += factor_and_shift(factor)
    return tuple(found)


def _of_gemm(
    operator: Operator, given: Quantisation, data: Scale, output: Scale
) -> tuple[int, ...]:
    bits = factors_of(operator).astype("<f8").view("<i4")
    return (*limits_of(given, output), *map(int, bits))


def _of_addition(
    operator: Operator, given: Quantisation, data: Scale, output: Scale
) -> tuple[int, ...]:
    other = given.inputs[1] or data
    scales = [float(_number(data)), float(_number(other))]
    twice = 2 * max(scales)
    found = list(limits_of(given, output))
    for scale in scales:
        found += factor_and_shift(scale / twice)
    found += factor_and_shift(twice / ((1 << ADDEND_BITS) * float(_number(output))))
    return tuple(found)


def _of_product(
    operator: Operator, given: Quantisation, data: Scale, output: Scale
) -> tuple[int, ...]:
    product = _number(data) * _number(given.inputs[1] or data) / _number(output)
    return (*limits_of(given, output), *factor_and_shift(float(product)))


def _of_mean(count: int, given: Quantisation, data: Scale, output: Scale) -> tuple[int, ...]:
    """The factor of a mean has the number of its elements in it, cut off at 31 bits."""
    factor, shift = factor_and_shift(float(_number(data)) / float(_number(output)))
    more = min(count.bit_length() - 1, 32, 31 + shift)
    return (*limits_of(given, output), (factor << more) // count, shift - more)


def places_of(operator: Operator, length: int, size: int) -> tuple[int, int]:
    """Return how far apart results lie along an axis of the input, and the first, in 1024ths."""
    mode = operator.text("coordinate_transformation_mode")
    if mode == "align_corners" and size > 1:
        return ((length - 1) * PLACES + (size - 1) // 2) // (size - 1), 0
    distance = (length * PLACES + size // 2) // size
    return distance, distance // 2 - PLACES // 2 if mode == "half_pixel" else 0


def _of_pooling(
    operator: Operator, given: Quantisation, data: Scale, output: Scale
) -> tuple[int, ...]:
    return limits_of(given, output)


def high_product(a: Any, b: Any) -> Integers:
    """Return the upper 32 bits of twice a product, a half rounded up."""
    return np.asarray((np.asarray(a, np.int64) * np.asarray(b, np.int64) + (1 << 30)) >> 31)


def divided(values: Any, exponent: Any) -> Integers:
    """Divide by a power of two, a half rounded away from zero."""
    values, exponent = np.asarray(values, np.int64), np.asarray(exponent, np.int64)
    half = np.where(exponent > 0, np.int64(1) << np.maximum(exponent - 1, 0), 0)
    return np.asarray(np.sign(values) * ((np.abs(values) + half) >> exponent))


def scaled(values: Any, factor: Any, shift: Any) -> Integers:
    """Multiply integers by a factor and shift them: each of the two steps rounds."""
    shift = np.asarray(shift, np.int64)
    left = np.asarray(values, np.int64) << np.maximum(shift, 0)
    return divided(high_product(left, factor), np.maximum(-shift, 0))


def _times_power(values: Integers, exponent: int) -> Integers:
    """Multiply by a power of two, and cut off at 32 bits."""
    return np.asarray(np.clip(values << exponent, -1 << 31, ONE))


def exponential(values: Any, bits: int) -> Integers:
    """Return the exponentials of numbers that are not positive.

    These have ``bits`` before the point of 31, the results none.
    """
    values, point = np.asarray(values, np.int64), 31 - bits
    quarter = np.int64(1) << (point - 2)
    inside = (values & (quarter - 1)) - quarter
    x = (inside << bits) + (1 << 28)
    x2 = high_product(x, x)
    x3, x4 = high_product(x2, x), high_product(x2, x2)
    third = 715827883
    rest = divided(high_product(divided(x4, 2) + x3, third) + x2, 1)
    eighth = 1895147668
    result = eighth + high_product(eighth, x + rest)
    left = inside - values
    for exponent, step in zip(range(-2, bits), EXPONENTIALS, strict=False):
        is_set = left >> (point + exponent) & 1
        result = np.where(is_set, high_product(result, step), result)
    return np.asarray(np.where(values == 0, ONE, result))


EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-1/4), exp(-1/2), exp(-1) ... exp(-16), with 31 bits behind the point."""


def reciprocal(values: Any) -> Integers:
    """Return ``1 / (1 + x)`` of numbers from 0 to 1, three steps of Newton and Raphson's method."""
    values = np.asarray(values, np.int64)
    half = (values + ONE + 1) >> 1
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        rest = (1 << 29) - high_product(half, x)
        x = x + _times_power(high_product(x, rest), 2)
    return np.asarray(_times_power(x, 1))


def _every_byte(scale: Scale) -> Integers:
    """Return all bytes of a type less the zero point, the least first."""
    return np.arange(BYTE) + int(np.iinfo(scale.dtype.name).min) - _zero(scale)


def _table(values: Any, given: Quantisation, output: Scale) -> Integers:
    """Return results, moved by the zero point, between their limits."""
    return np.clip(np.asarray(values, np.int64) + _zero(output), *limits_of(given, output))


def _of_function(of: Callable[[Any], Any]) -> "Words":
    """Return the table of a function, whose results are rounded, a half away from zero."""

    def table(operator: Operator, given: Quantisation, data: Scale, output: Scale) -> Integers:
        reals = (_number(data) * _every_byte(data).astype(np.float32)).astype(np.float64)
        results = of(reals).astype(np.float32) * (np.float32(1) / _number(output))
        rounded = np.sign(results) * np.floor(np.abs(results) + np.float32(0.5))
        return _table(rounded, given, output)

    return table


def _of_hard_swish(operator: Operator, given: Quantisation, data: Scale, output: Scale) -> Integers:
    """Multiply by what is 0 below -3 and 1 above 3, with 15 bits behind the point."""
    fine = np.float32(1 / 128) * _number(data)
    (own, shift), (ramp, left) = (
        factor_and_shift(float(fine / to)) for to in (_number(output), np.float32(3 / 32768))
    )
    values = _every_byte(data) << 7
    sloped = _half_saturated(values << max(left - 1, 0))
    sloped = _half_product(sloped, _half(ramp))
    sloped = _half_saturated(sloped << 1) if left > 0 else divided(sloped, -left)
    product = (sloped + (1 << 15) >> 1) * _half_product(values, _half(own))
    # Toward zero.
    result = np.sign(product) * (np.abs(product) >> 15)
    return _table(divided(result, -shift), given, output)


def _half(factor: int) -> int:
    """Return the upper half of a factor, rounded."""
    return min(factor + (1 << 15) >> 16, (1 << 15) - 1)


def _half_product(a: Integers, b: int) -> Integers:
    """Return the upper 16 bits of twice a product of numbers of 16 bits, a half rounded up."""
    return np.asarray(a * b + (1 << 14) >> 15)


def _half_saturated(values: Integers) -> Integers:
    return np.clip(values, -1 << 15, (1 << 15) - 1)


def _of_copy(operator: Operator, given: Quantisation, data: Scale, output: Scale) -> Integers:
    ratio = float(_number(data)) / float(_number(output))
    if operator.kind == "Relu":
        given = replace(given, low=0.0)
    elif operator.kind == "Clip":
        given = replace(given, low=operator.number("min"), high=operator.number("max"))
    if operator.kind != "Identity":
        ratio = float(_number(data) / _number(output))
    values = _every_byte(data)
    if operator.kind == "Abs":
        values = np.abs(values)
    return _table(scaled(values, *factor_and_shift(ratio)), given, output)


def _of_leaky_relu(operator: Operator, given: Quantisation, data: Scale, output: Scale) -> Integers:
    values = _every_byte(data)
    ratio = float(_number(data) / _number(output))
    below = float(_number(data) * np.float32(operator.number("alpha")) / _number(output))
    kept, less = (scaled(values, *factor_and_shift(one)) for one in (ratio, below))
    return _table(np.where(values >= 0, kept, less), given, output)


def _of_softmax(operator: Operator, given: Quantisation, data: Scale, output: Scale) -> Integers:
    steps = -np.arange(BYTE)
    point = 31 - SOFTMAX_BITS
    factor, shift = factor_and_shift(min(float(_number(data)) * (1 << point), float(ONE)))
    radius = floor(((1 << SOFTMAX_BITS) - 1) * (1 << point) / (1 << shift))
    inside = steps >= -radius
    operands = scaled(np.where(inside, steps, 0), factor, shift)
    return np.where(inside, exponential(operands, SOFTMAX_BITS), 0)


EXACT = frozenset(
    {"Max", "MaxPool", "Min", "QuantizeLinear", "ReduceMax", "ReduceMin", "DequantizeLinear"}
)
"""Operators that choose among integers, or round once."""

Words = Callable[[Operator, Quantisation, Scale, Scale], Any]

SUMS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})

TABLES: Mapping[str, Words] = {
    "Abs": _of_copy,
    "Clip": _of_copy,
    "Exp": _of_function(np.exp),
    "HardSwish": _of_hard_swish,
    "Identity": _of_copy,
    "LeakyRelu": _of_leaky_relu,
    "Relu": _of_copy,
    "Sigmoid": _of_function(lambda x: 1 / (1 + np.exp(-x))),
    "Tanh": _of_function(np.tanh),
}
"""Operators of one operand."""

WORDS: Mapping[str, Words] = {
    **dict.fromkeys(SUMS, _of_sums),
    **TABLES,
    "Add": _of_addition,
    "AveragePool": _of_pooling,
    "Gemm": _of_gemm,
    "Mul": _of_product,
    "ReduceMean": _of_pooling,
    "Resize": _of_pooling,
    "Softmax": _of_softmax,
    "Sub": _of_addition,
}
