"""The cleaned-up model becomes operators and tensors; what cannot be lowered is listed.

Rules make the attributes of nodes explicit; what the families in :mod:`spmilp.frontend.operators`
expect is in their docstrings. Padding that ONNX lets be automatic becomes numbers. QuantizeLinear
and DequantizeLinear keep their scales and zero points beside their attributes.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias, cast

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes
from numpy.typing import NDArray

from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.cleanup.bodies import FIXED_POINT, ROUNDS_WITH_ZERO
from spmilp.frontend.cleanup.constants import MOST_ELEMENTS, elements_of, fill_of, is_shape_only
from spmilp.frontend.cleanup.nodes import (
    MALFORMED,
    first_line,
    is_used,
    name_of,
    origin_of,
    reason_of,
)
from spmilp.frontend.graph import (
    Attribute,
    Attributed,
    Operator,
    Quantisation,
    Rounding,
    Scale,
    Tensor,
)
from spmilp.frontend.operators.reductions import EACH as REDUCTIONS
from spmilp.frontend.operators.registry import family_of, known_kinds
from spmilp.frontend.operators.resize import SIMPLE
from spmilp.frontend.unfused import UnfusedNetwork
from spmilp.units import Extents

NCHWC = "com.microsoft.nchwc"
"""The domain of operators whose channels lie in blocks."""


def convert(model: ir.Model) -> UnfusedNetwork:
    """Return the operators and tensors of a cleaned-up model.

    Raises an ``UnsupportedOperatorError`` that lists all nodes that cannot be lowered, if any.
    """
    passes.AddDefaultAttributesPass()(model)
    conversion = _Conversion(model)
    if conversion.problems:
        nodes = sorted(conversion.problems.items())
        raise UnsupportedOperatorError(tuple((name, kind, why) for (_, name, kind), why in nodes))
    return UnfusedNetwork(
        operators=tuple(conversion.operators),
        tensors=conversion.tensors,
        inputs=tuple(str(v.name) for v in model.graph.inputs if not is_shape_only(v)),
        outputs=tuple(str(value.name) for value in model.graph.outputs),
    )


class _Conversion:
    """Goes through a model once and collects operators, tensors and problems."""

    def __init__(self, model: ir.Model) -> None:
        self.operators: list[Operator] = []
        self.tensors: dict[str, Tensor] = {}
        # By place in the model, name and operator type; inputs come first.
        self.problems: dict[tuple[int, str, str], str] = {}
        self._unknown: set[str] = set()
        for value in (*model.graph.inputs, *model.graph.initializers.values()):
            try:
                self.tensors[str(value.name)] = _tensor(value)
            except ValueError as error:
                self.problems[-1, str(value.name), "input"] = str(error)
                self._unknown.add(str(value.name))
        for node in model.graph:
            self._visit(node)

    def _visit(self, node: ir.Node) -> None:
        # A constant that is an output is still a node; its value is known.
        if all(value.const_value is not None for value in node.outputs):
            self._take_inferred_outputs(node)
            return
        try:
            _is_lowerable(node)
            # What follows from an earlier problem is not reported again.
            if any(value is not None and value.name in self._unknown for value in node.inputs):
                self._take_inferred_outputs(node)
                return
            self._lower(node)
        except MALFORMED as error:
            # The nodes that stand for one of the model's are reported as that one, once.
            self.problems.setdefault(origin_of(node), first_line(error))
            self._take_inferred_outputs(node)

    def _lower(self, node: ir.Node) -> None:
        results = {str(value.name): value for value in node.outputs}
        for value in node.outputs:
            if is_used(value) and value.shape and value.shape.is_static():
                static_shape(value)
        for operator in normalise(Node(node)):
            inputs = [self.tensors[name] if name else None for name in operator.inputs]
            for given in node.inputs[: len(inputs)]:
                if given is not None:
                    static_shape(given)
            shape = family_of(operator.kind)(operator, inputs).shape
            value = results[operator.output]
            if value.shape is not None and value.shape.is_static() and static_shape(value) != shape:
                raise ValueError(
                    f"its output is {list(shape)}, but shape inference says {list(value.shape)}"
                )
            self.tensors[operator.output] = Tensor(
                name=operator.output, shape=shape, dtype=numpy_dtype(value)
            )
            self.operators.append(operator)

    def _take_inferred_outputs(self, node: ir.Node) -> None:
        """Go on with what shape inference knows of the outputs of a node with a problem."""
        for value in node.outputs:
            try:
                self.tensors[str(value.name)] = _tensor(value)
            except ValueError:
                self._unknown.add(str(value.name))


def _is_lowerable(node: ir.Node) -> None:
    """Raise a ``ValueError`` with the reason for nodes of which no rule has to be asked."""
    reason = reason_of(node)
    if reason is not None:
        raise ValueError(reason)
    if node.domain == NCHWC:
        raise ValueError(
            "its layout is that of one processor; let onnxruntime save the model with "
            "ORT_ENABLE_BASIC instead of all optimisations"
        )
    if node.domain not in ("", "ai.onnx"):
        raise ValueError(
            f"operator {node.op_type} of domain {node.domain} is not supported; give the model its "
            f"definition as an ONNX function, or export it with operators of ONNX"
        )
    if node.op_type != "Split" and node.op_type not in known_kinds():
        if (count := elements_of(node.outputs[0])) > MOST_ELEMENTS:
            raise ValueError(
                f"it gives {count} elements, expected at most {MOST_ELEMENTS} of what is computed "
                "ahead; make it smaller"
            )
        if node.op_type in ("ConstantOfShape", "Range"):  # Of constants they are computed once.
            for position in range(len(node.inputs)):
                Node(node).constant(position)
        if node.op_type in ("GRU", "LSTM"):
            static_shape(Node(node).input(0))
        raise ValueError(
            "the operator is not supported; export the model with others, or cut this one off"
        )


def _tensor(value: ir.Value) -> Tensor:
    if value.const_value is not None:
        if value.dtype is None:
            value.type = ir.TensorType(value.const_value.dtype)
        dtype = numpy_dtype(value)
        data = value.const_value.numpy()
        # What repeats one number stays as small as it is.
        data = data if 0 in data.strides else np.asarray(data, order="C")
        return Tensor(name=str(value.name), shape=data.shape, dtype=dtype, data=data)
    return Tensor(
        name=str(value.name),
        shape=static_shape(value),
        dtype=numpy_dtype(value),
        shape_only=is_shape_only(value),
        fill=fill_of(value) if is_shape_only(value) else None,
    )


_PLAIN = {ir.AttributeType.INT: int, ir.AttributeType.FLOAT: float, ir.AttributeType.STRING: str}
_TUPLES = {ir.AttributeType.INTS: int, ir.AttributeType.FLOATS: float}


class Node(Attributed):
    """Typed access to a node; a ``ValueError`` says what is missing or not constant.

    Its attributes are those that are numbers, texts or lists of numbers.
    """

    def __init__(self, node: ir.Node) -> None:
        self.kind = node.op_type
        self.name = name_of(node)
        self.outputs = node.outputs
        marks = {ROUNDS_WITH_ZERO: Rounding.WITH_ZERO, FIXED_POINT: Rounding.FIXED_POINT}
        found = [marks[mark] for mark in marks if mark in node.metadata_props]
        self.rounding = found[0] if found else Rounding.HALF_EVEN
        self._inputs = node.inputs
        self.attributes = {}
        for name, given in node.attributes.items():
            if given.type in _PLAIN:
                self.attributes[name] = _PLAIN[given.type](given.value)
            elif given.type in _TUPLES:
                self.attributes[name] = tuple(map(_TUPLES[given.type], given.value))

    def has(self, position: int) -> bool:
        """Return whether an input is there."""
        return position < len(self._inputs) and self._inputs[position] is not None

    def input(self, position: int) -> ir.Value:
        """Return an input that must be there."""
        value = self._inputs[position] if position < len(self._inputs) else None
        if value is None:
            raise ValueError(f"input {position} is left out")
        return value

    def input_names(self, count: int | None = None) -> tuple[str, ...]:
        """Return the names of the first ``count`` inputs, ``""`` for those left out at the end."""
        names = ["" if value is None else str(value.name) for value in self._inputs[:count]]
        while names and not names[-1]:
            names.pop()
        return tuple(names)

    @property
    def rank(self) -> int:
        """The number of axes of the first input."""
        return len(self.shape(0))

    def shape(self, position: int) -> Extents:
        """Return the shape of an input."""
        return static_shape(self.input(position))

    def constant(self, position: int) -> NDArray[np.generic]:
        """Return the values of an input that must be constant."""
        value = self.input(position)
        if value.const_value is None:
            raise ValueError(
                f"input {position} ({value.name}) is not constant; export the model with its values"
            )
        return cast(NDArray[np.generic], value.const_value.numpy())

    def constants(self, position: int) -> tuple[int, ...]:
        """Return the values of an integer input that must be constant, flat."""
        return tuple(map(int, self.constant(position).reshape(-1)))

    def reals(self, position: int) -> tuple[float, ...]:
        """Return the values of an input that must be constant, flat."""
        return tuple(map(float, self.constant(position).reshape(-1)))

    def listed(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return an attribute that is a list of integers, or its default."""
        return self.integers(name) if name in self.attributes else default


TYPES = frozenset(
    {
        *("bfloat16", "bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    }
)
"""NumPy types that tensors may have."""


def static_shape(value: ir.Value, *, may_be_empty: bool = False) -> Extents:
    """Return the shape of a value; a ``ValueError`` says that it is unknown or has no elements."""
    if value.shape is None or not value.shape.is_static():
        raise ValueError(
            f"the shape of {value.name} depends on data; export the model with fixed shapes"
        )
    shape = tuple(int(length) for length in value.shape.numpy())
    if 0 in shape and not may_be_empty:
        raise ValueError(
            f"{value.name} of shape {list(shape)} has no elements, so there is nothing to compute; "
            f"give its dimension of length 0 another length, or leave out what reads it"
        )
    return shape


def numpy_dtype(value: ir.Value) -> np.dtype[np.generic]:
    """Return the type of a value; a ``ValueError`` says that it is unknown, or no tensor's."""
    if value.dtype in (None, ir.DataType.UNDEFINED):
        raise ValueError(f"the data type of {value.name} is not known")
    dtype = None if value.dtype is ir.DataType.STRING else np.dtype(value.dtype.numpy())
    if dtype is None or dtype.name not in TYPES:
        name = value.dtype.name.lower()
        raise ValueError(f"{value.name} has data type {name}, which is not supported")
    return dtype


def positive_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor of {rank} axes")
    return axis % rank


def explicit_equation(equation: str) -> str:
    """Return an equation without blanks and with ``->``; what is summed stands there twice."""
    equation = "".join(equation.split())
    if "->" in equation:
        return equation
    letters = equation.replace(",", "")
    once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
    return f"{equation}->{''.join(once)}"


Changes: TypeAlias = Mapping[str, Attribute | None]
"""Attributes that replace those of a node; ``None`` for one that goes."""


def _own_axis(node: Node) -> Changes:
    return {"axis": positive_axis(node.integer("axis"), node.rank)}


def _axes(axes: tuple[int, ...], rank: int) -> Changes:
    return {"axes": tuple(sorted(positive_axis(axis, rank) for axis in axes))}


def _window(node: Node) -> Changes:
    """Resolve ``auto_pad`` and ``output_shape``; an odd element of padding goes to one side."""
    lengths = node.shape(0)[2:]
    none, ones = (0,) * len(lengths), (1,) * len(lengths)
    kernel = node.listed("kernel_shape", () if "Pool" in node.kind else node.shape(1)[2:])
    strides, dilations = node.listed("strides", ones), node.listed("dilations", ones)
    found = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    changes: dict[str, Attribute | None] = {**found, "auto_pad": None, "output_shape": None}
    # So many windows begin in so many elements: in the input, or if transposed in the output.
    windows = tuple(-(-length // stride) for length, stride in zip(lengths, strides, strict=True))
    elements, extra = lengths, none
    sizes: Extents = ()
    if node.kind == "ConvTranspose":
        changes["output_padding"] = extra = node.listed("output_padding", none)
        sizes = node.listed("output_shape", ())[-len(lengths) :]
        strided = tuple(length * stride for length, stride in zip(lengths, strides, strict=True))
        windows, elements = lengths, sizes or strided
    mode = node.text("auto_pad")
    if not sizes and mode in ("NOTSET", "VALID"):
        changes["pads"] = node.listed("pads", none + none) if mode == "NOTSET" else none + none
        return changes
    totals = [
        max(0, (count - 1) * stride + more + (size - 1) * dilation + 1 - length)
        for count, stride, more, size, dilation, length in zip(
            windows, strides, extra, kernel, dilations, elements, strict=True
        )
    ]
    less = tuple(total // 2 for total in totals)
    more = tuple(total - total // 2 for total in totals)
    changes["pads"] = less + more if mode == "SAME_UPPER" else more + less
    return changes


def _must_be(reason: str, **wanted: Attribute) -> Callable[[Node], Changes]:
    """Return a rule that raises for a node whose attributes are there and others than wanted."""

    def rule(node: Node) -> Changes:
        if any(node.attributes.get(name, value) != value for name, value in wanted.items()):
            raise ValueError(reason)
        return {}

    return rule


def _squeeze(node: Node) -> Changes:
    shape = node.shape(0)
    ones = tuple(axis for axis, length in enumerate(shape) if length == 1)
    return _axes(node.constants(1) if node.has(1) else ones, len(shape))


def _slice(node: Node) -> Changes:
    starts, rank = node.constants(1), node.rank
    axes = node.constants(3) if node.has(3) else tuple(range(len(starts)))
    return {
        "starts": starts,
        "ends": node.constants(2),
        "axes": tuple(positive_axis(axis, rank) for axis in axes),
        "steps": node.constants(4) if node.has(4) else (1,) * len(starts),
    }


def _gather(node: Node) -> Changes:
    shape, axis = node.shape(0), positive_axis(node.integer("axis"), node.rank)
    if not node.has(1) or node.input(1).const_value is None:
        return {"axis": axis}
    indices = tuple(i + shape[axis] if i < 0 else i for i in node.constants(1))
    return {"axis": axis, "indices": indices, "indices_shape": node.shape(1)}


def _pad(node: Node) -> Changes:
    rank, given = node.rank, node.constants(1)
    axes = node.constants(3) if node.has(3) else tuple(range(rank))
    pads = [0] * (2 * rank)
    own = [positive_axis(axis, rank) for axis in axes]
    for place, value in zip([*own, *(axis + rank for axis in own)], given, strict=True):
        pads[place] = value
    return {"pads": tuple(pads), "value": node.reals(2)[0] if node.has(2) else 0.0}


def _resize(node: Node) -> Changes:
    shape, sizes = node.shape(0), static_shape(node.outputs[0])
    rank = len(shape)
    axes = tuple(positive_axis(axis, rank) for axis in node.listed("axes", tuple(range(rank))))
    if node.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise ValueError("only keep_aspect_ratio_policy stretch is supported")
    scales = [size / length for size, length in zip(sizes, shape, strict=True)]
    if node.has(2) and node.reals(2):
        for axis, scale in zip(axes, node.reals(2), strict=True):
            scales[axis] = scale
    changes: dict[str, Attribute | None] = {"sizes": sizes, "scales": tuple(scales)}
    if node.text("nearest_mode") == SIMPLE:
        if node.text("mode") == "nearest" and min(scales) < 1 < max(scales):
            raise ValueError("one axis becomes longer, another shorter; resize them one by one")
        changes["nearest_mode"] = "ceil" if min(scales) < 1 else "floor"
    if node.text("coordinate_transformation_mode") == "tf_crop_and_resize":
        given, roi = node.reals(1), np.array([0.0] * rank + [1.0] * rank)
        roi[[*axes, *(axis + rank for axis in axes)]] = given
        changes["roi"] = tuple(roi.tolist())
    return changes


def _reduce(node: Node) -> Changes:
    axes = node.constants(1) if node.has(1) else ()
    if not axes and not node.attributes.get("noop_with_empty_axes", 0):
        axes = tuple(range(node.rank))
    return _axes(axes, node.rank)


def _position(node: Node) -> Changes:
    return {**_axes((node.integer("axis"),), node.rank), "axis": None}


LIMITS = {1: "min", 2: "max"}
"""Attributes of Clip that are inputs in ONNX."""

RULES: Mapping[str, Callable[[Node], Changes]] = {
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _position),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool", "Conv", "ConvInteger"), _window),
    **dict.fromkeys(("Concat", "GatherElements", "LogSoftmax", "Softmax"), _own_axis),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "ScatterElements"), _own_axis),
    **dict.fromkeys(("Reshape", "Expand"), lambda node: {"shape": static_shape(node.outputs[0])}),
    "BatchNormalization": _must_be("it is in training mode", training_mode=0),
    "Clip": lambda node: {n: node.reals(at)[0] for at, n in LIMITS.items() if node.has(at)},
    "ConvTranspose": _window,
    "CumSum": lambda node: {"axis": positive_axis(node.constants(1)[0], node.rank)},
    "Einsum": lambda node: {"equation": explicit_equation(node.text("equation"))},
    "Flatten": lambda node: {"axis": node.integer("axis") + node.rank * (node.integer("axis") < 0)},
    "Gather": _gather,
    "Pad": _pad,
    "Resize": _resize,
    "Slice": _slice,
    "SpaceToDepth": _must_be("only mode DCR is supported", mode="DCR"),
    "Squeeze": _squeeze,
    "Tile": lambda node: {"repeats": node.constants(1)},
    "Transpose": lambda node: {"perm": node.listed("perm", tuple(reversed(range(node.rank))))},
    "Trilu": lambda node: {"k": node.constants(1)[0] if node.has(1) else 0},
    "Unsqueeze": lambda node: _axes(node.constants(1), node.rank + len(node.constants(1))),
}
"""Kinds whose attributes are computed, or that are refused."""

ONE_INPUT = frozenset(
    {
        *REDUCTIONS,
        *("Clip", "CumSum", "DequantizeLinear", "Expand", "Pad", "QuantizeLinear", "Reshape"),
        *("Resize", "Slice", "Squeeze", "Tile", "Trilu", "Unsqueeze"),
    }
)
"""Kinds of which only the first input is data; the others say how."""


def normalise(node: Node) -> tuple[Operator, ...]:
    """Return the operators that stand for a node; all but Split and TopK are one.

    Raises a ``ValueError`` if the node cannot be lowered; the message is the reason.
    """
    if node.kind == "Split":
        axis = positive_axis(node.integer("axis"), node.rank)
        shapes = (static_shape(value, may_be_empty=True) for value in node.outputs)
        ends = accumulate((shape[axis] for shape in shapes), initial=0)
        along: dict[str, Attribute] = {"axes": (axis,), "steps": (1,)}
        parts = [{"starts": (start,), "ends": (end,), **along} for start, end in pairwise(ends)]
        return _by_output(node, "Slice", parts)
    if node.kind == "TopK":
        given: dict[str, Attribute] = {
            "axis": positive_axis(node.integer("axis"), node.rank),
            "k": node.constants(1)[0],
            "largest": node.integer("largest"),
        }
        return _by_output(node, "TopK", [{**given, "positions": position} for position in (0, 1)])
    for position, value in enumerate(node.outputs):
        if position > 0 and is_used(value):
            raise ValueError(f"its output {position} is used; only the first is supported")
    merged = {**node.attributes, **(RULES[node.kind](node) if node.kind in RULES else {})}
    attributes = {name: value for name, value in merged.items() if value is not None}
    quantisation = None
    alone = node.kind in ONE_INPUT or (node.kind == "Gather" and "indices" in attributes)
    if node.kind in ("QuantizeLinear", "DequantizeLinear"):
        attributes, quantisation = {}, _quantisation(node)
    return (
        Operator(
            name=node.name,
            kind=node.kind,
            inputs=node.input_names(1 if alone else None),
            output=str(node.outputs[0].name),
            attributes=attributes,
            quantisation=quantisation,
        ),
    )


def _by_output(
    node: Node, kind: str, attributes: Sequence[Mapping[str, Attribute]]
) -> tuple[Operator, ...]:
    """Return an operator on the first input for each output that is used."""
    return tuple(
        Operator(
            name=f"{node.name}:{position}" if position or kind == "Slice" else node.name,
            kind=kind,
            inputs=node.input_names(1),
            output=str(output.name),
            attributes=given,
        )
        for position, (output, given) in enumerate(zip(node.outputs, attributes, strict=False))
        if is_used(output)
    )


INTEGERS = {"int8", "uint8", "int16", "uint16", "int32"}
"""Types of quantised values."""


def _quantisation(node: Node) -> Quantisation:
    """Return the scales of an operator that quantises or dequantises; they must be constant."""
    quantises = node.kind == "QuantizeLinear"
    dtype = numpy_dtype(node.outputs[0] if quantises else node.input(0))
    if dtype.name not in INTEGERS:
        raise ValueError(f"quantisation to {dtype.name} is not supported")
    if node.attributes.get("block_size", 0):
        raise ValueError("scales of blocks are not supported")
    scale = node.constant(1).astype(np.float32)
    zero = node.constant(2) if node.has(2) else np.zeros(scale.shape, np.int32)
    if not np.all(np.isfinite(scale) & (scale > 0)):
        raise ValueError("a scale is not a positive number")
    if zero.size not in (1, scale.size) or not np.issubdtype(zero.dtype, np.integer):
        raise ValueError(
            f"zero points of shape {zero.shape} and type {zero.dtype} for scales of shape "
            f"{scale.shape}"
        )
    rank, axis = node.rank, node.integer("axis")
    if scale.size > 1 and (scale.ndim != 1 or not -rank <= axis < rank):
        raise ValueError(f"scales of shape {scale.shape} along axis {axis} are not supported")
    found = Scale(
        scale=scale.reshape(-1),
        zero_point=zero.reshape(-1).astype(np.int32),
        axis=None if scale.size == 1 else axis % rank,
        dtype=dtype,
        rounding=node.rounding,
    )
    return Quantisation(inputs=(None if quantises else found,), output=found if quantises else None)
