"""The kernel of each kind of operator."""

from collections.abc import Callable, Mapping

from spmilp.checker.values.kernels import elementwise, moves, normalisation, pool, reduce
from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.moves import resize
from spmilp.frontend.operators.elementwise import BINARY, UNARY, VARIADIC
from spmilp.frontend.operators.reduce import EACH

KERNELS: Mapping[str, Callable[[Call], Array]] = {
    **dict.fromkeys(UNARY, elementwise.unary),
    **dict.fromkeys(BINARY, elementwise.binary),
    **dict.fromkeys(VARIADIC, elementwise.variadic),
    **dict.fromkeys(EACH, reduce.reduce),
    "AveragePool": pool.average_pool,
    "BatchNormalization": normalisation.batch_normalization,
    "Concat": moves.concat,
    "CumSum": reduce.cumulative_sum,
    "DepthToSpace": moves.depth_to_space,
    "DequantizeLinear": lambda call: call.array(0),
    "Expand": moves.expand,
    "Flatten": moves.reshape,
    "Gather": moves.gather,
    "GlobalAveragePool": pool.global_average_pool,
    "GlobalMaxPool": pool.global_max_pool,
    "GroupNormalization": normalisation.group_normalization,
    "InstanceNormalization": normalisation.group_normalization,
    "LRN": reduce.lrn,
    "LayerNormalization": normalisation.layer_normalization,
    "LogSoftmax": normalisation.log_softmax,
    "LpPool": pool.lp_pool,
    "MaxPool": pool.max_pool,
    "Mod": elementwise.modulo,
    "Pad": moves.pad,
    "QuantizeLinear": lambda call: call.array(0),
    "RMSNormalization": normalisation.rms_normalization,
    "Reshape": moves.reshape,
    "Resize": resize,
    "Slice": moves.slice_,
    "Softmax": normalisation.softmax,
    "SpaceToDepth": moves.space_to_depth,
    "Squeeze": moves.reshape,
    "Tile": moves.tile,
    "Transpose": moves.transpose,
    "Trilu": moves.trilu,
    "Unsqueeze": moves.reshape,
    "Where": elementwise.where,
}
"""Operators without sums of products."""
