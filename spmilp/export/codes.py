"""What Python and C agree on: numbers that stand for names, and the rows of tables.

``spmilp_types.h`` is made from it, the same for every plan of a version. New names go to the end;
none changes its number.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from spmilp.commands.commands import EventScheme
from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import TOOL, Title
from spmilp.frontend.graph import Operator
from spmilp.units import Bytes

TITLE: Title = ("spmilp-c", "2.0")

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
    *("ConvInteger", "MatMulInteger", "RequantShift", "ArgMax", "ArgMin", "GatherND", "ScatterND"),
    "TopK",
)
"""ONNX operator types; the number is the position."""

_OPERATOR: Mapping[str, int] = {name: number for number, name in enumerate(OPERATORS)}

ATTRIBUTES = (
    *("alpha", "antialias", "approximate", "axes", "axis", "beta", "bias", "blocksize"),
    *("ceil_mode", "coordinate_transformation_mode", "count_include_pad", "cubic_coeff_a"),
    *("dilations", "ends", "epsilon", "equation", "exclude_outside", "exclusive"),
    *("extrapolation_value", "fmod", "gamma", "group", "indices", "indices_shape", "k"),
    *("keepdims", "kernel_shape", "max", "min", "mode", "nearest_mode", "num_groups"),
    *("output_padding", "p", "pads", "perm", "repeats", "reverse", "roi", "scales", "shape"),
    *("size", "sizes", "starts", "steps", "strides", "transA", "transB", "upper", "value"),
    *("div", "high", "low", "batch_dims", "largest", "positions", "reduction", "select_last_index"),
)
"""Attributes that say what an operator computes; the number is the position.

Other attributes of ONNX (``auto_pad``) have no meaning once the front end has normalised an
operator.
"""


def operator_code(operator: Operator) -> int:
    """Return the number of an operator's ONNX type.

    Raises
    ------
    ExportError
        If C has none for it.
    """
    if operator.kind not in _OPERATOR:
        raise ExportError(
            f"export: operator {comment(operator.name)}: C has no number for "
            f"{comment(operator.kind)}"
        )
    return _OPERATOR[operator.kind]


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


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table of unsigned numbers, as C names them: bits, name and meaning.

    Wide columns come first, and rows are multiples of them: no compiler puts padding into a row.
    """

    table: str
    struct: str
    says: str
    columns: tuple[tuple[int, str, str], ...]

    @property
    def stride(self) -> Bytes:
        """Bytes of a row."""
        return sum(bits // 8 for bits, _, _ in self.columns)

    def definition(self) -> Iterator[str]:
        """Yield the definition of the struct of a row."""
        yield f"/* {self.says}. */"
        yield f"struct spmilp_{self.struct} {{"
        for bits, name, says in self.columns:
            yield f"    uint{bits}_t {name}; /* {says} */"
        yield "};"

    def require_fit(self, rows: Sequence[Sequence[int]]) -> None:
        """Make sure that all values fit their columns.

        Raises
        ------
        ExportError
            If one does not.
        """
        for number, row in enumerate(rows):
            for value, (bits, name, _) in zip(row, self.columns, strict=True):
                if not 0 <= value < 1 << bits:
                    raise ExportError(
                        f"export: row {number} of {self.table}: {name} is {value}, outside "
                        f"[0, {(1 << bits) - 1}] of its {bits // 8} bytes"
                    )


SUMMARY = Layout(
    "summary",
    "summary",
    "One row: the plan as a whole",
    (
        (64, "makespan", "cycles of the plan; waits, not cycles, order the commands"),
        (64, "workspace", "bytes of packed operands that the largest task needs"),
        (64, "frequency", "cycles per second; 0 where unknown"),
        (32, "events", "events of the command lists, all 0 at the start"),
        (32, "scheme", "what a wait does: SCHEME_COUNTERS or SCHEME_SEMAPHORES"),
    ),
)
PORTS = Layout(
    "ports",
    "port",
    "Inputs and outputs of the network, in the model's order",
    (
        (64, "address", "of the first byte in its memory"),
        (64, "bytes", "size"),
        (32, "memory", "a DRAM"),
        (32, "direction", "PORT_INPUT or PORT_OUTPUT"),
        (32, "type", "of its elements, TYPE_..."),
        (32, "rank", "axes of the model's tensor"),
        (32, "shape", "position of the model's lengths in words"),
        (32, "strides", "position of the bytes between neighbours of each of its axes in words"),
        (32, "reserved0", "0"),
        (32, "reserved1", "0"),
    ),
)
SEGMENTS = Layout(
    "segments",
    "segment",
    "Constants: what to write into the memories before the start",
    (
        (64, "address", "of the first byte in its memory"),
        (64, "bytes", "size"),
        (64, "image", "position of the first byte in the image"),
        (32, "memory", "where it lies"),
        (32, "reserved", "0"),
    ),
)
LAYOUTS = (SUMMARY, PORTS, SEGMENTS)

_NUMBERED: Sequence[tuple[str, str, Mapping[str, int]]] = (
    ("SCHEME", "What a wait does", {scheme.name: number for scheme, number in SCHEMES.items()}),
    ("PORT", "Sides of the network", Direction.__members__),
    ("TYPE", "Types of elements (ONNX TensorProto.DataType)", Elements.__members__),
    ("PART", "Parts of a reduction", Part.__members__),
    ("LIMIT", "Limits of results: bits", Bound.__members__),
    ("VALUE", "What the words of an attribute are", AttributeType.__members__),
    ("OPERATOR", "ONNX operator types", _OPERATOR),
    ("ATTRIBUTE", "Attributes", {name: number for number, name in enumerate(ATTRIBUTES)}),
)
"""Beginning and meaning of the names that C has for numbers."""


def types_header() -> str:
    """Return ``spmilp_types.h``: codes, rows of tables, and the struct that has all tables."""
    lines = ["/*", " * Types of what a plan keeps. Offsets and indices only, no pointers.", " *"]
    lines += [f" * format: {' '.join(TITLE)}", f" * tool: {TOOL}", " */"]
    lines += ["#ifndef SPMILP_TYPES_H", "#define SPMILP_TYPES_H", "", "#include <stdint.h>", ""]
    for start, what, numbers in _NUMBERED:
        lines.append(f"/* {what}. */")
        lines += [f"#define SPMILP_{start}_{name.upper()} {int(n)}U" for name, n in numbers.items()]
        lines.append("")
    for layout in LAYOUTS:
        lines += [*layout.definition(), ""]
    lines += ["/* What a plan keeps besides what runs. Counts are rows. */"]
    lines += ["struct spmilp_tables {"]
    for layout in LAYOUTS:
        lines.append(f"    const struct spmilp_{layout.struct} *{layout.table};")
        lines.append(f"    uint32_t {layout.table}_count;")
    return "\n".join([*lines, _REST_OF_TABLES])


_REST_OF_TABLES = """\
    uint32_t lists_count; /* those of cores, then those of channels */
    const int32_t *words; /* signed integers, and reals as the bits of float32 */
    uint32_t words_count;
    const uint8_t *texts; /* UTF-8, each text with a zero behind it */
    uint32_t texts_count;
    const uint8_t *image; /* bytes of constants; null where it is not in the program */
    uint64_t image_count;
};

#endif
"""
