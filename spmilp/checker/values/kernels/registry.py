"""Computes any operator on a box of its output from the boxes that its family reads.

float16 is computed in float32 and rounded once, at the operator's output.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.fixed import fixed, requantised
from spmilp.checker.values.kernels.products import (
    POOLING,
    SUMS,
    accumulate,
    accumulator_dtype,
    add_integers,
    finish,
    integer_scales,
)
from spmilp.checker.values.kernels.quantisation import (
    dequantise,
    is_qlinear,
    qlinear,
    quantise,
    within,
)
from spmilp.checker.values.kernels.reference import reference
from spmilp.checker.values.kernels.special import (
    gather_elements,
    gelu,
    global_max_pool,
    group_normalization,
    log_softmax,
    log_sum_exp,
    lrn,
    pad,
    resize,
    scatter_elements,
    softmax,
)
from spmilp.frontend.fixed_point import is_fixed
from spmilp.frontend.graph import Quantisation


def as_it_is(call: Call) -> Array:
    """Return the input; what it becomes is the output's type or scale."""
    return call.array(0)


KERNELS: Mapping[str, Callable[[Call], Array]] = {
    **POOLING,
    "Cast": as_it_is,
    "DequantizeLinear": as_it_is,
    "GatherElements": gather_elements,
    "Gelu": gelu,
    "GlobalMaxPool": global_max_pool,
    "GroupNormalization": group_normalization,
    "LRN": lrn,
    "LogSoftmax": log_softmax,
    "Pad": pad,
    "QuantizeLinear": as_it_is,
    "ReduceLogSumExp": log_sum_exp,
    "Resize": resize,
    "ScatterElements": scatter_elements,
    "Softmax": softmax,
}
"""Operators that neither add products nor are computed by ONNX's reference."""


def compute(call: Call) -> Array:
    """Return the box of the operator's output."""
    call = _widened(call)
    quantisation = call.operator.quantisation
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if is_fixed(call.operator) and call.operator.kind not in SUMS:
            return fixed(call).astype(call.dtype, copy=False)
        if quantisation is None or integer_scales(call.operator) is not None:
            return _plain(call).astype(call.dtype, copy=False)
        return _on_reals(call, quantisation).astype(call.dtype, copy=False)


def partial(call: Call, previous: Array | None = None) -> Array:
    """Return the sum over a part of the reduction, added to the sum of the parts before.

    Inputs are limited to that part; before the first nothing is ``previous``. The sum is of int32
    when the operator is quantised, else of float32.
    """
    total = accumulate(_widened(call)).astype(accumulator_dtype(call.operator), copy=False)
    return total if previous is None else np.asarray(previous + total)


def complete(call: Call, total: Array) -> Array:
    """Return the box of the output from the sum over the whole reduction, and the bias."""
    call = _widened(call)
    with np.errstate(over="ignore", invalid="ignore"):
        return _finished(call, total).astype(call.dtype, copy=False)


def _finished(call: Call, total: Array) -> Array:
    """Return the result of a sum of products, in fixed point or in float32."""
    if not is_fixed(call.operator):
        return finish(call, total)
    return requantised(call, add_integers(call, total))


def _widened(call: Call) -> Call:
    """Return the call with half-precision inputs in float32."""
    halves = ("float16", "bfloat16")
    wide = [
        values.astype(np.float32) if values is not None and values.dtype.name in halves else values
        for values in call.inputs
    ]
    return replace(call, inputs=wide)


def _plain(call: Call) -> Array:
    if call.operator.kind in SUMS:
        return _finished(call, accumulate(call))
    return KERNELS.get(call.operator.kind, reference)(call)


def _on_reals(call: Call, quantisation: Quantisation) -> Array:
    """Compute on the reals that the integers stand for, and round the result."""
    if is_qlinear(call.operator):
        return qlinear(call)
    reals = list(call.inputs)
    for position, scale in enumerate(quantisation.inputs):
        values, box = call.inputs[position], call.boxes[position]
        if scale is not None and values is not None and box is not None:
            reals[position] = dequantise(values, scale, box)
    plain = replace(call.operator, quantisation=None)
    result = within(_plain(replace(call, operator=plain, inputs=reals)), quantisation)
    scale = quantisation.output
    return result if scale is None else quantise(result, scale, call.box)
