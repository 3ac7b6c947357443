"""Sums of products: convolutions and matrix products, whole or a part of their reduction.

Floats are added in float32 (float64 for double operands). Quantised operands are added exactly and
the sum wraps around in int32, so that the order of the parts of a split reduction does not matter.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.conv import conv, conv_transpose
from spmilp.checker.values.kernels.quantise import along, saturate, scale_of_products
from spmilp.frontend.graph import Operator, Scale
from spmilp.frontend.operators.attributes import integer, number
from spmilp.frontend.operators.products import letters


def gemm(call: Call) -> Array:
    """Return the product of the (transposed) operands of a Gemm, without alpha, beta and C."""
    left, right = call.array(0), call.array(1)
    left = left.T if integer(call.operator, "transA") else left
    right = right.T if integer(call.operator, "transB") else right
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


SUMS: Mapping[str, Callable[[Call], Array]] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": matmul,
}


def integer_scales(operator: Operator) -> tuple[Scale, Scale] | None:
    """Return the scales of the two factors when they are multiplied as integers."""
    if operator.quantisation is None or operator.kind not in SUMS or operator.kind == "Einsum":
        return None
    data, weight = operator.quantisation.inputs[:2]
    return (data, weight) if data is not None and weight is not None else None


def accumulator_dtype(operator: Operator) -> np.dtype[Any]:
    """Return the type of the partial sums of an operator."""
    return np.dtype(np.float32 if integer_scales(operator) is None else np.int32)


def accumulate(call: Call) -> Array:
    """Return the sum of the products that are given, before bias and scale."""
    sums = SUMS[call.operator.kind]
    scales = integer_scales(call.operator)
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


def _bias(call: Call) -> Array:
    """Return the bias, shaped to broadcast to the output."""
    if call.operator.kind in ("Conv", "ConvTranspose"):
        return call.array(2).reshape(-1, *(1,) * (len(call.box) - 2))
    return call.array(2)


def _add_bias(call: Call, total: Array) -> Array:
    if call.operator.kind == "Gemm":
        alpha, beta = number(call.operator, "alpha"), number(call.operator, "beta")
        total = total if alpha == 1 else total * np.float32(alpha)
        if call.there(2):
            return np.asarray(
                total + (_bias(call) if beta == 1 else _bias(call) * np.float32(beta))
            )
        return total
    return np.asarray(total + _bias(call)) if call.there(2) else total
