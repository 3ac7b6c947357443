"""A node of the model as the front end reads it, and rules that make its attributes explicit.

What the families in :mod:`spmilp.frontend.operators` expect is in their docstrings. Padding that
ONNX lets be automatic becomes numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.frontend.cleanup.nodes import name_of
from spmilp.frontend.graph import Attribute
from spmilp.units import Extents

_PLAIN = {
    ir.AttributeType.INT: int,
    ir.AttributeType.FLOAT: float,
    ir.AttributeType.STRING: str,
}
_TUPLES = {
    ir.AttributeType.INTS: int,
    ir.AttributeType.FLOATS: float,
}


class Node:
    """Typed access to a node; a ``ValueError`` says what is missing or not constant."""

    def __init__(self, node: ir.Node, opset: int) -> None:
        self.kind = node.op_type
        self.name = name_of(node)
        self._node = node
        self.attributes = _with_defaults(node, opset)

    def has(self, position: int) -> bool:
        """Return whether an input is there."""
        return position < len(self._node.inputs) and self._node.inputs[position] is not None

    def input_names(self, count: int | None = None) -> tuple[str, ...]:
        """Return the names of the first ``count`` inputs, ``""`` for those left out."""
        values = self._node.inputs[:count]
        return tuple("" if value is None else str(value.name) for value in values)

    @property
    def rank(self) -> int:
        """The number of axes of the first input."""
        return len(self.shape(0))

    def shape(self, position: int) -> Extents:
        """Return the shape of an input."""
        return static_shape(self._value(position))

    def output_shape(self, position: int = 0) -> Extents:
        """Return the shape of an output."""
        return static_shape(self._node.outputs[position])

    def output_length(self, position: int, axis: int) -> int:
        """Return the length of an output along an axis; 0 for one without elements."""
        return known_shape(self._node.outputs[position])[axis]

    def dtype(self, position: int) -> np.dtype[np.generic]:
        """Return the type of an input."""
        return numpy_dtype(self._value(position))

    def output_dtype(self) -> np.dtype[np.generic]:
        """Return the type of the first output."""
        return numpy_dtype(self._node.outputs[0])

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the outputs."""
        return tuple(str(value.name) for value in self._node.outputs)

    def uses_output(self, position: int) -> bool:
        """Return whether anything reads an output."""
        if position >= len(self._node.outputs):
            return False
        value = self._node.outputs[position]
        return bool(value.uses()) or value.is_graph_output()

    def is_marked(self, key: str) -> bool:
        """Return whether a pass of the clean-up has marked the node."""
        return key in self._node.metadata_props

    def constant(self, position: int) -> NDArray[np.generic]:
        """Return the values of an input that must be constant."""
        value = self._value(position)
        if value.const_value is None:
            raise ValueError(
                f"input {position} ({value.name}) is not constant; export the model with its values"
            )
        return cast(NDArray[np.generic], value.const_value.numpy())

    def is_constant(self, position: int) -> bool:
        """Return whether an input is there and its values are known."""
        return self.has(position) and self._value(position).const_value is not None

    def integers(self, position: int) -> tuple[int, ...]:
        """Return the values of an integer input that must be constant, flat."""
        return tuple(int(value) for value in self.constant(position).reshape(-1))

    def numbers(self, position: int) -> tuple[float, ...]:
        """Return the values of an input that must be constant, flat."""
        return tuple(float(value) for value in self.constant(position).reshape(-1))

    def integer(self, name: str) -> int:
        """Return an attribute that is an integer."""
        value = self.attributes.get(name)
        if not isinstance(value, int):
            raise ValueError(f"attribute {name} is {value!r}, expected an integer")
        return value

    def text(self, name: str) -> str:
        """Return an attribute that is a text."""
        value = self.attributes.get(name)
        if not isinstance(value, str):
            raise ValueError(f"attribute {name} is {value!r}, expected a text")
        return value

    def listed(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return an attribute that is a list of integers, or its default."""
        value = self.attributes.get(name, default)
        if not isinstance(value, tuple):
            raise ValueError(f"attribute {name} is {value!r}, expected integers")
        return tuple(int(item) for item in value)

    def _value(self, position: int) -> ir.Value:
        value = self._node.inputs[position] if position < len(self._node.inputs) else None
        if value is None:
            raise ValueError(f"input {position} is left out")
        return value


def _with_defaults(node: ir.Node, opset: int) -> Mapping[str, Attribute]:
    """Return the attributes that are numbers, texts or lists of numbers, defaults included."""
    found: dict[str, Attribute] = {}
    if node.domain == "" and onnx.defs.has(node.op_type, opset):
        for name, given in onnx.defs.get_schema(node.op_type, opset).attributes.items():
            if given.default_value.type != onnx.AttributeProto.UNDEFINED:
                _add(found, name, ir.serde.deserialize_attribute(given.default_value))
            elif given.required and name not in node.attributes:
                raise ValueError(f"attribute {name} is missing")
    for name, attribute in node.attributes.items():
        _add(found, name, attribute)
    return found


def _add(found: dict[str, Attribute], name: str, attribute: ir.Attr) -> None:
    if attribute.type in _PLAIN:
        found[name] = _PLAIN[attribute.type](attribute.value)
    elif attribute.type in _TUPLES:
        found[name] = tuple(map(_TUPLES[attribute.type], attribute.value))


TYPES = frozenset(
    {
        *("bfloat16", "bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    }
)
"""NumPy types that tensors may have."""


def static_shape(value: ir.Value) -> Extents:
    """Return the shape of a value, which has elements.

    Raises
    ------
    ValueError
        If it is not known, or there are none.
    """
    shape = known_shape(value)
    has_elements(str(value.name), shape)
    return shape


def known_shape(value: ir.Value) -> Extents:
    """Return the shape of a value, which may be without elements.

    Raises
    ------
    ValueError
        If it is not known.
    """
    if value.shape is None or not value.shape.is_static():
        raise ValueError(
            f"the shape of {value.name} depends on data; export the model with fixed shapes"
        )
    return tuple(int(length) for length in value.shape.numpy())


def has_elements(name: str, shape: Extents) -> None:
    """Raise a ``ValueError`` if a tensor has none."""
    if 0 in shape:
        raise ValueError(
            f"{name} of shape {list(shape)} has no elements, so there is nothing to compute; give "
            f"its dimension of length 0 another length, or leave out what reads it"
        )


def numpy_dtype(value: ir.Value) -> np.dtype[np.generic]:
    """Return the type of a value.

    Raises
    ------
    ValueError
        If it is not known, or no tensor can have it.
    """
    if value.dtype in (None, ir.DataType.UNDEFINED):
        raise ValueError(f"the data type of {value.name} is not known")
    name = value.dtype.name.lower()
    dtype = None if value.dtype is ir.DataType.STRING else np.dtype(value.dtype.numpy())
    if dtype is None or dtype.name not in TYPES:
        raise ValueError(f"{value.name} has data type {name}, which is not supported")
    return dtype


Attributes: TypeAlias = dict[str, Attribute]

REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
    *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)

ONE_INPUT = frozenset(
    {
        *REDUCTIONS,
        *("Clip", "CumSum", "DequantizeLinear", "Expand", "Pad", "QuantizeLinear", "Reshape"),
        *("Resize", "Slice", "Squeeze", "Tile", "Trilu", "Unsqueeze"),
    }
)
"""Kinds of which only the first input is data; the others say how."""


def _window(node: Node, attributes: Attributes) -> None:
    attributes.update(window_attributes(node, () if "Pool" in node.kind else node.shape(1)[2:]))
    del attributes["auto_pad"]


def _transposed_convolution(node: Node, attributes: Attributes) -> None:
    _window(node, attributes)
    padding = node.listed("output_padding", (0,) * (node.rank - 2))
    attributes.update(output_padding=padding, pads=transposed_pads(node, padding))
    attributes.pop("output_shape", None)


def _batch_norm(node: Node, attributes: Attributes) -> None:
    if attributes.get("training_mode", 0):
        raise ValueError("it is in training mode")


def _clip(node: Node, attributes: Attributes) -> None:
    for position, name in ((1, "min"), (2, "max")):
        if node.has(position):
            attributes[name] = node.numbers(position)[0]


def _squeeze(node: Node, attributes: Attributes) -> None:
    shape = node.shape(0)
    if node.has(1):
        attributes["axes"] = _sorted_axes(node.integers(1), len(shape))
    else:
        attributes["axes"] = tuple(axis for axis, length in enumerate(shape) if length == 1)


def _unsqueeze(node: Node, attributes: Attributes) -> None:
    axes = node.integers(1)
    attributes["axes"] = _sorted_axes(axes, node.rank + len(axes))


def _slice(node: Node, attributes: Attributes) -> None:
    starts, ends = node.integers(1), node.integers(2)
    axes = node.integers(3) if node.has(3) else tuple(range(len(starts)))
    rank = node.rank
    attributes["starts"], attributes["ends"] = starts, ends
    attributes["axes"] = tuple(positive_axis(axis, rank) for axis in axes)
    attributes["steps"] = node.integers(4) if node.has(4) else (1,) * len(starts)


def _gather(node: Node, attributes: Attributes) -> None:
    shape = node.shape(0)
    axis = positive_axis(node.integer("axis"), len(shape))
    attributes["axis"] = axis
    if node.is_constant(1):
        indices = node.integers(1)
        attributes["indices"] = tuple(i + shape[axis] if i < 0 else i for i in indices)
        attributes["indices_shape"] = node.shape(1)


def _pad(node: Node, attributes: Attributes) -> None:
    rank = node.rank
    given = node.integers(1)
    axes = node.integers(3) if node.has(3) else tuple(range(rank))
    pads = [0] * (2 * rank)
    for position, axis in enumerate(axes):
        pads[positive_axis(axis, rank)] = given[position]
        pads[positive_axis(axis, rank) + rank] = given[position + len(axes)]
    attributes["pads"] = tuple(pads)
    attributes["value"] = node.numbers(2)[0] if node.has(2) else 0.0


def _resize(node: Node, attributes: Attributes) -> None:
    shape, sizes = node.shape(0), node.output_shape()
    rank = len(shape)
    axes = tuple(positive_axis(axis, rank) for axis in node.listed("axes", tuple(range(rank))))
    if attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise ValueError("only keep_aspect_ratio_policy stretch is supported")
    scales = [size / length for size, length in zip(sizes, shape, strict=True)]
    if node.has(2) and node.numbers(2):
        for axis, scale in zip(axes, node.numbers(2), strict=True):
            scales[axis] = scale
    attributes["sizes"], attributes["scales"] = sizes, tuple(scales)
    if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
        given = node.numbers(1)
        roi = [0.0] * rank + [1.0] * rank
        for position, axis in enumerate(axes):
            roi[axis], roi[axis + rank] = given[position], given[position + len(axes)]
        attributes["roi"] = tuple(roi)


def _reduce(node: Node, attributes: Attributes) -> None:
    rank = node.rank
    axes = node.integers(1) if node.has(1) else ()
    if not axes and not attributes.get("noop_with_empty_axes", 0):
        axes = tuple(range(rank))
    attributes["axes"] = _sorted_axes(axes, rank)


def _position_of_extreme(node: Node, attributes: Attributes) -> None:
    attributes["axes"] = (positive_axis(node.integer("axis"), node.rank),)
    del attributes["axis"]


def _dropout(node: Node, attributes: Attributes) -> None:
    raise ValueError("it is in training mode")


def _own_axis(node: Node) -> Attribute:
    return positive_axis(node.integer("axis"), node.rank)


def _flattened_axis(node: Node) -> Attribute:
    return node.integer("axis") + node.rank * (node.integer("axis") < 0)


COMPUTED: Mapping[str, tuple[str, Callable[[Node], Attribute]]] = {
    **dict.fromkeys(
        ("Concat", "LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax"),
        ("axis", _own_axis),
    ),
    **dict.fromkeys(("Reshape", "Expand"), ("shape", Node.output_shape)),
    "CumSum": ("axis", lambda node: positive_axis(node.integers(1)[0], node.rank)),
    "Einsum": ("equation", lambda node: explicit_equation(node.text("equation"))),
    "Flatten": ("axis", _flattened_axis),
    "Tile": ("repeats", lambda node: node.integers(1)),
    "Transpose": ("perm", lambda node: node.listed("perm", tuple(reversed(range(node.rank))))),
    "Trilu": ("k", lambda node: node.integers(1)[0] if node.has(1) else 0),
}
"""Kinds of which one attribute is computed, and how."""

RULES: Mapping[str, Callable[[Node, Attributes], None]] = {
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _position_of_extreme),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool", "Conv", "ConvInteger"), _window),
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "ConvTranspose": _transposed_convolution,
    "Dropout": _dropout,
    "Gather": _gather,
    "Pad": _pad,
    "Resize": _resize,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
"""Kinds of which several attributes are, or that are refused."""


def make_explicit(node: Node) -> Attributes:
    """Return the attributes of a node as the families expect them.

    Raises
    ------
    ValueError
        If the node cannot be lowered; the message is the reason.
    """
    attributes = dict(node.attributes)
    if node.kind in COMPUTED:
        name, compute = COMPUTED[node.kind]
        attributes[name] = compute(node)
    elif node.kind in RULES:
        RULES[node.kind](node, attributes)
    return attributes


def positive_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor of {rank} axes")
    return axis % rank


def _sorted_axes(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return tuple(sorted(positive_axis(axis, rank) for axis in axes))


def explicit_equation(equation: str) -> str:
    """Return an equation without blanks and with ``->``.

    Without one, the result has the letters that occur once, in alphabetical order.
    """
    equation = "".join(equation.split())
    if "->" in equation:
        return equation
    letters = equation.replace(",", "")
    once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
    return f"{equation}->{''.join(once)}"


def window_attributes(node: Node, kernel: Extents) -> dict[str, Attribute]:
    """Return ``kernel_shape``, ``strides``, ``dilations`` and ``pads`` of a sliding window.

    Parameters
    ----------
    kernel
        Lengths of the window along the spatial axes, where the node does not say.
    """
    rank = node.rank - 2
    kernel = node.listed("kernel_shape", kernel)
    strides = node.listed("strides", (1,) * rank)
    dilations = node.listed("dilations", (1,) * rank)
    return {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": _window_pads(node, kernel, strides, dilations),
    }


def _window_pads(node: Node, kernel: Extents, strides: Extents, dilations: Extents) -> Extents:
    mode = node.text("auto_pad")
    rank = len(kernel)
    if mode == "NOTSET":
        return node.listed("pads", (0,) * (2 * rank))
    if mode == "VALID":
        return (0,) * (2 * rank)
    # SAME: as many outputs as strides begin in the input.
    totals = [
        max(0, (-(-length // stride) - 1) * stride + (size - 1) * dilation + 1 - length)
        for length, size, stride, dilation in zip(
            node.shape(0)[2:], kernel, strides, dilations, strict=True
        )
    ]
    return _split(totals, more_at_end=mode == "SAME_UPPER")


def transposed_pads(node: Node, padding: Extents) -> Extents:
    """Return the pads of a ConvTranspose, ``output_shape`` and ``auto_pad`` resolved.

    Parameters
    ----------
    padding
        Its ``output_padding``.
    """
    mode = node.text("auto_pad")
    lengths = node.shape(0)[2:]
    none = (0,) * len(lengths)
    strides = node.listed("strides", (1,) * len(lengths))
    sizes = node.listed("output_shape", ())[-len(lengths) :]
    if not sizes and mode == "NOTSET":
        return node.listed("pads", none + none)
    if not sizes and mode == "VALID":
        return none + none
    if not sizes:
        sizes = tuple(length * stride for length, stride in zip(lengths, strides, strict=True))
    kernel = node.listed("kernel_shape", node.shape(1)[2:])
    dilations = node.listed("dilations", (1,) * len(lengths))
    totals = [
        max(0, stride * (length - 1) + extra + (k - 1) * dilation + 1 - size)
        for stride, length, extra, k, dilation, size in zip(
            strides, lengths, padding, kernel, dilations, sizes, strict=True
        )
    ]
    return _split(totals, more_at_end=mode == "SAME_UPPER")


def _split(totals: Sequence[int], more_at_end: bool) -> Extents:
    """Return all beginnings, then all ends; an odd element goes to one side."""
    less = [total // 2 for total in totals]
    more = [total - total // 2 for total in totals]
    return (*less, *more) if more_at_end else (*more, *less)
