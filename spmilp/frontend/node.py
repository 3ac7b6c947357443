"""A node of the model as the rules read it: defaults filled in, constants, shapes and types."""

from collections.abc import Mapping
from typing import cast

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
