"""Matrix products."""

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.attributes import integer
from spmilp.frontend.operators.einsum import letters


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
