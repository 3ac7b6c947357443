"""What C knows: numbers that stand for names, and what its kernels compute.

New names go to the end; none changes its number.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum

import numpy as np

from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.frontend.graph import Network, Operator


class Direction(IntEnum):
    """Side of the network that a port is on."""

    INPUT = 0
    OUTPUT = 1


class AttributeType(IntEnum):
    """Type of the value of an attribute."""

    INTEGER = 0
    REAL = 1
    TEXT = 2
    INTEGERS = 3
    REALS = 4


class Part(IntEnum):
    """Part of its reduction that a step computes."""

    WHOLE = 0
    PARTIAL = 1
    LAST = 2


class Bound(IntEnum):
    """Bits of a step's ``limits``: which limits its real results have."""

    LOW = 1
    HIGH = 2


class Elements(IntEnum):
    """Types of elements that kernels compute with; numbers of ONNX (TensorProto.DataType)."""

    FLOAT32 = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    BOOL = 9
    FLOAT16 = 10
    UINT32 = 12


OPERATORS = (
    *("Abs", "Add", "And", "AveragePool", "BatchNormalization", "Cast", "Ceil", "Celu", "Clip"),
    *("Concat", "Conv", "ConvTranspose", "Cos", "CumSum", "DepthToSpace", "DequantizeLinear"),
    *("Div", "Einsum", "Elu", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather"),
    *("Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "Greater", "GreaterOrEqual"),
    *("GroupNormalization", "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization"),
    *("IsInf", "IsNaN", "LRN", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log"),
    *("LogSoftmax", "LpPool", "MatMul", "Max", "MaxPool", "Mean", "Min", "Mish", "Mod", "Mul"),
    *("Neg", "Not", "Or", "PRelu", "Pad", "Pow", "QuantizeLinear", "RMSNormalization"),
    *("Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
    *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape"),
    *("Resize", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Slice", "Softmax", "Softplus"),
    *("Softsign", "SpaceToDepth", "Sqrt", "Squeeze", "Sub", "Sum", "Swish", "Tan", "Tanh"),
    *("ThresholdedRelu", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"),
    *("ConvInteger", "MatMulInteger", "ArgMax", "ArgMin", "GatherND", "ScatterND"),
    *("TopK", "GatherElements", "ScatterElements"),
)
"""ONNX operator types; the number is the position."""

OPERATOR_CODES: Mapping[str, int] = {name: number for number, name in enumerate(OPERATORS)}

ATTRIBUTES = (
    *("alpha", "antialias", "approximate", "axes", "axis", "beta", "bias", "blocksize"),
    *("ceil_mode", "coordinate_transformation_mode", "count_include_pad", "cubic_coeff_a"),
    *("dilations", "ends", "epsilon", "equation", "exclude_outside", "exclusive"),
    *("extrapolation_value", "fmod", "gamma", "group", "indices", "indices_shape", "k"),
    *("keepdims", "kernel_shape", "max", "min", "mode", "nearest_mode", "num_groups"),
    *("output_padding", "p", "pads", "perm", "repeats", "reverse", "roi", "scales", "shape"),
    *("size", "sizes", "starts", "steps", "strides", "transA", "transB", "upper", "value"),
    *("batch_dims", "largest", "positions", "reduction", "select_last_index"),
    "fixed",
)
"""Attributes that say what an operator computes; the number is the position.

Other attributes of ONNX (``auto_pad``) have no meaning once the front end has normalised an
operator.
"""


def type_code(dtype: np.dtype[np.generic]) -> int:
    """Return the number of a type of elements."""
    return Elements[dtype.name.upper()]


RANK, WINDOW_AXES = 8, 3
"""``SPMILP_MAX_RANK`` and ``SPMILP_WINDOW_AXES`` of the sources."""

_WINDOWED = frozenset({"AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool"})
_PER_CHANNEL = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_ROWS = frozenset({"LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax"})
_ON_FLOATS = (
    (_WINDOWED - {"ConvInteger"}) | _ROWS | {"Gemm", "GlobalAveragePool", "GlobalMaxPool", "MatMul"}
)


def require_kernels(network: Network) -> None:
    """Raise an :class:`ExportError` unless there are kernels in C for all of the network."""
    for operator in (each for group in network.groups for each in group.operators):
        for missing in _missing(network, operator):
            raise ExportError(
                f"C: operator {comment(operator.name)} ({comment(operator.kind)}): {missing}"
            )


def _missing(network: Network, operator: Operator) -> Iterator[str]:
    """Yield the reasons why its kernel cannot compute an operator."""
    kind, tensors = operator.kind, network.tensors
    for name in (*filter(None, operator.inputs), operator.output):
        tensor = tensors[name]
        if tensor.dtype.name.upper() not in Elements.__members__:
            yield f"kernels do not compute with elements of type {tensor.dtype}"
        if len(tensor.shape) > RANK:
            yield f"a tensor of {len(tensor.shape)} axes > {RANK}, the most that kernels take"
    axes = len(tensors[operator.output].shape) - 2
    if kind in _WINDOWED and axes > WINDOW_AXES:
        yield f"windows along {axes} axes > {WINDOW_AXES}, the most that kernels take"
    if not operator.inputs or not operator.inputs[0]:
        return
    dtype = tensors[operator.inputs[0]].dtype
    reals_only = kind in _ON_FLOATS or kind.startswith("Reduce")
    reals_only |= kind == "Resize" and operator.attributes["mode"] != "nearest"
    # A float holds every integer of two bytes.
    is_exact = kind in ("MaxPool", "GlobalMaxPool", "Resize") and dtype.itemsize <= 2
    is_plain_integer = operator.quantisation is None and dtype.kind in "iub"
    if is_plain_integer and reals_only and not is_exact:
        yield f"its kernel computes with reals, not with elements of type {dtype}"
    scales = () if operator.quantisation is None else operator.quantisation.inputs
    for position, scale in enumerate(scales):
        takes_one = kind in _ROWS or (kind in _PER_CHANNEL and position == 0)
        if takes_one and scale is not None and scale.axis is not None:
            yield f"input {position} has more than one scale, its kernel takes one"
