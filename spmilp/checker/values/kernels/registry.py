"""Computes any operator on a box of its output from the boxes that its family reads.

float16 is computed in float32 and rounded once, at the operator's output.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from spmilp.checker.values.kernels import elementwise, moves, pool, reductions
from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.elementwise import dequantise, is_qlinear, qlinear, quantise
from spmilp.checker.values.kernels.moves import resize
from spmilp.checker.values.kernels.products import (
    SUMS,
    accumulate,
    accumulator_dtype,
    finish,
    integer_scales,
)
from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.elementwise import BINARY, UNARY, VARIADIC
from spmilp.frontend.operators.reductions import EACH, POSITIONS
from spmilp.units import Box

KERNELS: Mapping[str, Callable[[Call], Array]] = {
    **dict.fromkeys(UNARY, elementwise.unary),
    **dict.fromkeys(BINARY, elementwise.binary),
    **dict.fromkeys(VARIADIC, elementwise.variadic),
    **dict.fromkeys(EACH, reductions.reduce),
    **dict.fromkeys(POSITIONS, reductions.position_of_extreme),
    "AveragePool": pool.average_pool,
    "BatchNormalization": reductions.batch_normalization,
    "Concat": moves.concat,
    "CumSum": reductions.cumulative_sum,
    "DepthToSpace": moves.depth_to_space,
    "DequantizeLinear": lambda call: call.array(0),
    "Expand": moves.expand,
    "Flatten": moves.reshape,
    "Gather": moves.gather,
    "GatherND": moves.gather_nd,
    "GlobalAveragePool": pool.global_average_pool,
    "GlobalMaxPool": pool.global_max_pool,
    "GroupNormalization": reductions.group_normalization,
    "InstanceNormalization": reductions.group_normalization,
    "LRN": reductions.lrn,
    "LayerNormalization": reductions.layer_normalization,
    "LogSoftmax": reductions.log_softmax,
    "LpPool": pool.lp_pool,
    "MaxPool": pool.max_pool,
    "Mod": elementwise.modulo,
    "Pad": moves.pad,
    "QuantizeLinear": lambda call: call.array(0),
    "RMSNormalization": reductions.rms_normalization,
    "RequantShift": elementwise.requantise_and_shift,
    "Reshape": moves.reshape,
    "Resize": resize,
    "ScatterND": moves.scatter_nd,
    "Slice": moves.slice_,
    "Softmax": reductions.softmax,
    "SpaceToDepth": moves.space_to_depth,
    "Squeeze": moves.reshape,
    "Tile": moves.tile,
    "TopK": reductions.top,
    "Transpose": moves.transpose,
    "Trilu": moves.trilu,
    "Unsqueeze": moves.reshape,
    "Where": elementwise.where,
}
"""Operators without sums of products."""


def computed_kinds() -> frozenset[str]:
    """Return every ONNX operator type that has a kernel."""
    return frozenset({*KERNELS, *SUMS})


def compute(
    operator: Operator,
    tensors: Mapping[str, Tensor],
    inputs: Sequence[Array | None],
    boxes: Sequence[Box | None],
    box: Box,
) -> Array:
    """Return ``box`` of an operator's output.

    Parameters
    ----------
    inputs, boxes
        The values that are read and the boxes that they are of, as the operator's family says;
        ``None`` for an input of which nothing is read.
    """
    call = _widened(operator, tensors, inputs, boxes, box)
    on_reals = operator.quantisation is not None and integer_scales(operator) is None
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        result = _on_reals(call) if on_reals else _plain(call)
        return result.astype(call.dtype, copy=False)


def partial(
    operator: Operator,
    tensors: Mapping[str, Tensor],
    inputs: Sequence[Array | None],
    boxes: Sequence[Box | None],
    box: Box,
    previous: Array | None = None,
) -> Array:
    """Return the sum over a part of the reduction, added to the sum of the parts before.

    Parameters
    ----------
    inputs, boxes
        As for :func:`compute`, limited to the part of the reduction.
    previous
        What the parts before have summed up to; ``None`` for the first.

    Returns
    -------
    numpy.ndarray
        int32 when the operator is quantised, else float32.
    """
    total = accumulate(_widened(operator, tensors, inputs, boxes, box))
    total = total.astype(accumulator_dtype(operator), copy=False)
    return total if previous is None else np.asarray(previous + total)


def complete(
    operator: Operator,
    tensors: Mapping[str, Tensor],
    inputs: Sequence[Array | None],
    boxes: Sequence[Box | None],
    box: Box,
    total: Array,
) -> Array:
    """Return ``box`` of the output from the sum over the whole reduction.

    Parameters
    ----------
    inputs, boxes
        As for :func:`compute`; only the bias is used.
    """
    call = _widened(operator, tensors, inputs, boxes, box)
    with np.errstate(over="ignore", invalid="ignore"):
        return finish(call, total).astype(call.dtype, copy=False)


def _widened(
    operator: Operator,
    tensors: Mapping[str, Tensor],
    inputs: Sequence[Array | None],
    boxes: Sequence[Box | None],
    box: Box,
) -> Call:
    """Return the call with half-precision inputs in float32."""
    wide = [
        values if values is None or not _is_half(values) else values.astype(np.float32)
        for values in inputs
    ]
    return Call(operator=operator, tensors=tensors, inputs=wide, boxes=boxes, box=box)


def _is_half(values: Array) -> bool:
    return values.dtype.itemsize == 2 and not np.issubdtype(values.dtype, np.integer)


def _plain(call: Call) -> Array:
    if call.operator.kind in SUMS:
        return finish(call, accumulate(call))
    return KERNELS[call.operator.kind](call)


def _on_reals(call: Call) -> Array:
    """Compute on the reals that the integers stand for, and round the result."""
    quantisation = call.operator.quantisation
    if quantisation is None:
        return _plain(call)
    if is_qlinear(call.operator):
        return qlinear(call)
    reals = list(call.inputs)
    for position, scale in enumerate(quantisation.inputs):
        values, box = call.inputs[position], call.boxes[position]
        if scale is not None and values is not None and box is not None:
            reals[position] = dequantise(values, scale, box)
    plain = replace(call.operator, quantisation=None)
    result = _plain(replace(call, operator=plain, inputs=reals))
    if quantisation.low is not None:
        result = np.maximum(result, np.float32(quantisation.low))
    if quantisation.high is not None:
        result = np.minimum(result, np.float32(quantisation.high))
    return (
        result if quantisation.output is None else quantise(result, quantisation.output, call.box)
    )
