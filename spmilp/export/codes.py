"""Numbers that stand for names in C. New names go to the end; none changes its number."""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np

from spmilp.commands.commands import EventScheme
from spmilp.export.errors import ExportError

SCHEMES: Mapping[EventScheme, int] = {EventScheme.COUNTERS: 0, EventScheme.SEMAPHORES: 1}


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
    """Types of elements; numbers of ONNX (TensorProto.DataType)."""

    FLOAT32 = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    BOOL = 9
    FLOAT16 = 10
    FLOAT64 = 11
    UINT32 = 12
    UINT64 = 13
    BFLOAT16 = 16


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
    "TopK",
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
)
"""Attributes that say what an operator computes; the number is the position.

Other attributes of ONNX (``auto_pad``) have no meaning once the front end has normalised an
operator.
"""


def type_code(dtype: np.dtype[np.generic]) -> int:
    """Return the number of a type of elements.

    Raises
    ------
    ExportError
        If C has none for it.
    """
    name = dtype.name.upper()
    if name not in Elements.__members__:
        raise ExportError(f"export: C has no number for elements of type {dtype}")
    return Elements[name]
