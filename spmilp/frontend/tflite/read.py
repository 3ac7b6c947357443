"""A TensorFlow Lite model in terms of ONNX, with every scale and zero point of the file.

Integers are read by DequantizeLinear and written by QuantizeLinear, which is marked: what lies
between is computed in the fixed point of TensorFlow Lite's reference kernels. Its tensors of four
axes have their channels last; convolutions and pooling, and what follows them element by element,
are given theirs first here, under names of their own. Transpositions stand where the two meet.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from spmilp.errors import FileError
from spmilp.frontend.cleanup.bodies import FIXED_POINT
from spmilp.frontend.tflite.file import builtin_name, read_tflite, schema
from spmilp.frontend.tflite.run import Run
from spmilp.units import Extents

CHANNELS_FIRST = "/channels_first"
"""Ends the names of tensors whose channels lie first here, and last in the file."""

TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)

IR_VERSION, OPERATOR_SET = 10, 23

Node: TypeAlias = tuple[str, list[str], dict[str, Any]]
"""A node to be: its kind, its inputs, and its attributes."""


def onnx_of_tflite(path: Path) -> tuple[onnx.ModelProto, bytes]:
    """Return a TensorFlow Lite model in terms of ONNX, and the file's bytes.

    Raises a ``FileError`` if the file is no sound TensorFlow Lite model, an
    ``UnsupportedOperatorError`` that lists all operators that cannot be lowered, and a
    ``MissingExtraError`` if LiteRT's package is not installed.
    """
    from spmilp.frontend.tflite.operators import translate

    model, content = read_tflite(path)
    try:
        made = Translation(model, content)
        translate(made)
        return made.model(), content
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise FileError(
            f"{path} is not a sound TensorFlow Lite model: its operators and tensors do not go "
            f"together ({error})"
        ) from error


def names_of(model: Any) -> list[str]:
    """Return the names of a model's tensors up to a ``;`` where that is one tensor's alone.

    The converter joins the names of all operators that it has made one.
    """
    whole = [(one.name or b"").decode(errors="replace") for one in model.subgraphs[0].tensors]
    short = [name.partition(";")[0] for name in whole]
    names = list[str]()
    for position, (one, other) in enumerate(zip(short, whole, strict=True)):
        name = one if short.count(one) == 1 and one else other
        names.append(name if name and name not in names else f"{name}#{position}")
    return names


class Operation:
    """An operator of the file; inputs and outputs are positions of tensors, -1 for none."""

    def __init__(self, model: Any, operator: Any, position: int) -> None:
        self.kind = builtin_name(model, operator)
        self.position = position
        self.inputs = [int(each) for each in _listed(operator.inputs)]
        self.outputs = [int(each) for each in _listed(operator.outputs)]
        self.options = operator.builtinOptions

    def has(self, position: int) -> bool:
        """Return whether an input is there."""
        return position < len(self.inputs) and self.inputs[position] >= 0

    def option(self, name: str) -> Any:
        """Return a field of the options, or its default where there are none."""
        return getattr(self.options, name, 0)


class Translation:
    """The nodes and constants that stand for a model's operators and tensors.

    Where lengths are not in the file, LiteRT finds them, with a batch of 1.
    """

    def __init__(self, model: Any, content: bytes) -> None:
        self._types = {n: name for name, n in vars(schema().TensorType).items() if name.isupper()}
        self._buffers, (graph, *_) = model.buffers, model.subgraphs
        self._tensors = graph.tensors
        self.inputs, self.outputs = list(map(int, graph.inputs)), list(map(int, graph.outputs))
        self.operations = [
            Operation(model, operator, n) for n, operator in enumerate(_listed(graph.operators))
        ]
        self._names = names_of(model)
        self._constants: dict[int, NDArray[Any]] = {}
        # Which layouts of a tensor there are: channels first, or as in the file.
        self._there = {(tensor, False) for tensor in self.inputs}
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._taken = {*self._names}
        recorded = [tuple(map(int, _listed(tensor.shape))) for tensor in self._tensors]
        self._run = Run(content) if is_dynamic(graph) else None
        self._shapes = recorded if self._run is None else self._run.shapes(recorded)
        for tensor in range(len(self._tensors)):
            data = self._data(tensor)
            if data is not None:
                self._constants[tensor] = data

    def folded(self, operation: Operation) -> bool:
        """Take over what LiteRT has computed of an operation on constants; say whether it has."""
        given = [tensor for tensor in operation.inputs if tensor >= 0]
        if operation.kind != "SHAPE" and not all(map(self.is_constant, given)):
            return False
        results = {} if self._run is None else self._run.values(operation.outputs)
        self._constants |= results
        return bool(results)

    def _data(self, tensor: int) -> NDArray[Any] | None:
        data = self._buffers[self._tensors[tensor].buffer].data
        if data is None or not len(data):
            return None
        kind, shape = self._type(tensor), self.shape(tensor)
        content = np.asarray(data, dtype=np.uint8)
        if kind == "INT4":
            halves = np.stack([content & 15, content >> 4], axis=-1).reshape(-1)[: prod(shape)]
            return ((halves ^ 8).astype(np.int8) - 8).reshape(shape)
        dtype = np.dtype(kind.lower())
        if content.size != prod(shape) * dtype.itemsize:
            raise IndexError(
                f"constant {self._names[tensor]} of shape {list(shape)} and type {dtype} has "
                f"{content.size} B, expected {prod(shape) * dtype.itemsize} B"
            )
        return content.view(dtype).reshape(shape)

    def _type(self, tensor: int) -> str:
        return str(self._types[self._tensors[tensor].type])

    def dtype(self, tensor: int) -> np.dtype[Any]:
        """Return the type of a tensor's values; integers of four bits become bytes.

        Raises a ``ValueError`` if there is no such type here.
        """
        name = self._type(tensor)
        try:
            return np.dtype("int8" if name == "INT4" else name.lower())
        except TypeError as error:
            raise ValueError(
                f"{self._names[tensor]} has type {name}, which is not supported"
            ) from error

    def shape(self, tensor: int) -> Extents:
        """Return the shape of a tensor with the file's order of axes."""
        return self._shapes[tensor]

    def name(self, tensor: int, *, first: bool = False) -> str:
        """Return the name of a tensor in one of the two layouts."""
        return self._names[tensor] + CHANNELS_FIRST * first

    def constant(self, tensor: int) -> NDArray[Any]:
        """Return the values of a tensor; a ``ValueError`` if they are computed."""
        if tensor not in self._constants:
            raise ValueError(f"{self._names[tensor]} is computed at run time, expected a constant")
        return self._constants[tensor]

    def listed(self, tensor: int) -> list[int]:
        """Return the integers of a tensor, flat; a ``ValueError`` if they are computed."""
        return [int(value) for value in self.constant(tensor).reshape(-1)]

    def is_constant(self, tensor: int) -> bool:
        """Return whether a tensor has values in the file."""
        return tensor in self._constants

    def set_constant(self, tensor: int, values: NDArray[Any]) -> None:
        """Let an operator's result be known."""
        self._constants[tensor] = values

    def is_quantised(self, tensor: int) -> bool:
        """Return whether a tensor's integers stand for reals."""
        given = self._tensors[tensor].quantization
        of_integers = self._type(tensor) in ("INT4", "INT8", "UINT8", "INT16", "INT32")
        return of_integers and given is not None and len(_listed(given.scale)) > 0

    def scales(self, tensor: int) -> tuple[NDArray[Any], NDArray[Any], int]:
        """Return scales, zero points, and the axis along which they differ."""
        given = self._tensors[tensor].quantization
        scale = np.asarray(given.scale, dtype=np.float32)
        zero = np.asarray(_listed(given.zeroPoint) or [0], dtype=np.int64)
        return scale, np.broadcast_to(zero, scale.shape), int(given.quantizedDimension)

    def only_first(self, tensor: int) -> bool:
        """Return whether only the layout with the channels first is there as yet."""
        return (tensor, True) in self._there and (tensor, False) not in self._there

    def raw(self, tensor: int, *, first: bool = False) -> str:
        """Return the name of a tensor's values as they are, in one of the two layouts."""
        name, order = self.name(tensor, first=first), TO_FIRST if first else TO_LAST
        if tensor in self._constants:
            if name not in self._initializers:
                values = self._constants[tensor]
                self._initialize(name, values.transpose(order) if first else values)
            return name
        if (tensor, first) not in self._there:
            if (tensor, not first) not in self._there:
                raise ValueError(f"{self._names[tensor]} is read before it is written")
            self._there.add((tensor, first))
            source, shape = self.name(tensor, first=not first), self.shape(tensor)
            whole = tuple(shape[axis] for axis in TO_FIRST) if first else shape
            if 1 in (shape[3], prod(shape[1:3])):
                self.node("Reshape", [source, self.given(f"{name}/shape", integers(*whole))], name)
            else:
                self.node("Transpose", [source], name, perm=order)
        return name

    def real(self, tensor: int, *, first: bool = False) -> str:
        """Return the name of a tensor's reals in one of the two layouts."""
        return self.as_reals(self.raw(tensor, first=first), tensor, first=first)

    def as_reals(self, raw: str, tensor: int, *, first: bool = False) -> str:
        """Return the name of the reals that a tensor's values, perhaps reordered, stand for."""
        if not self.is_quantised(tensor):
            return raw
        scale, zero, axis = self.scales(tensor)
        along = TO_FIRST.index(axis) if first else axis
        return self.reals(raw, scale, zero.astype(self.dtype(tensor)), along)

    def reals(self, raw: str, scale: NDArray[Any], zero: NDArray[Any], axis: int) -> str:
        """Return the name of the reals that integers stand for."""
        name = self.free_name(f"{raw}/DequantizeLinear")
        self.node("DequantizeLinear", [raw, *self._scales(name, scale, zero)], name, axis=axis)
        return name

    def _scales(self, name: str, scale: NDArray[Any], zero: NDArray[Any]) -> tuple[str, str]:
        shape = () if scale.size == 1 else scale.shape
        one, other = (
            self.given(f"{name}/{what}", values.reshape(shape))
            for what, values in (("scale", scale), ("zero", zero))
        )
        return one, other

    def given(self, name: str, values: NDArray[Any]) -> str:
        """Return the name of a constant, which is added."""
        found = self.free_name(name)
        self._initialize(found, values)
        return found

    def _initialize(self, name: str, values: NDArray[Any]) -> None:
        self._initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)

    def free_name(self, name: str) -> str:
        """Return a name that nothing has."""
        found, number = name, 1
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found

    def node(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node, and return its output."""
        self._nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def step(
        self, operation: Operation, kind: str, inputs: Sequence[str], **attributes: Any
    ) -> str:
        """Add a node on the way to an operation's output, and return what it gives."""
        name = self.free_name(f"{self._names[operation.outputs[0]]}/{kind}")
        return self.node(kind, inputs, name, **attributes)

    def write(
        self,
        operation: Operation,
        kind: str,
        inputs: Sequence[str],
        *,
        first: bool = False,
        output: int = 0,
        shape: Extents | None = None,
        moves: bool = False,
        **attributes: Any,
    ) -> None:
        """Add the node that gives an operation's output, its activation and its quantisation.

        Of a node that gives another ``shape`` it is reshaped. One that ``moves`` elements has
        neither of the two.
        """
        tensor = operation.outputs[output]
        steps: list[Node] = [(kind, [*inputs], attributes)]
        steps += [] if moves else self._activation(operation)
        if self.is_quantised(tensor) and not moves:
            scale, zero, _ = self.scales(tensor)
            if scale.size > 1:
                raise ValueError(f"its result has {scale.size} scales, expected one")
            prefix = f"{self.name(tensor, first=first)}/QuantizeLinear"
            known = self._scales(prefix, scale, zero.astype(self.dtype(tensor)))
            steps.append(("QuantizeLinear", [*known], {}))
        if shape is not None and shape != self.shape(tensor):
            own = integers(*self.shape(tensor))
            steps.append(("Reshape", [self.given(f"{self.name(tensor)}/shape", own)], {}))
        self._write(tensor, steps, first=first)

    def move(self, operation: Operation, kind: str, inputs: Sequence[str], **how: Any) -> None:
        """Add the node that gives an operation's output and changes no element."""
        self.write(operation, kind, inputs, moves=True, **how)

    def _write(self, tensor: int, steps: Sequence[Node], *, first: bool) -> None:
        target, before = self.name(tensor, first=first), list[str]()
        self._there.add((tensor, first))
        for number, (kind, given, attributes) in enumerate(steps, start=1):
            is_last = number == len(steps)
            name = target if is_last else self.free_name(f"{target}/{kind}")
            self.node(kind, [*before, *given], name, **attributes)
            # Users see the name of the node that carries the work.
            self._nodes[-1].name = self._names[tensor] if number == 1 else f"{target}/{kind}"
            if kind == "QuantizeLinear":
                self._nodes[-1].metadata_props.add(key=FIXED_POINT, value="1")
            before = [name]

    def _activation(self, operation: Operation) -> list[Node]:
        names = {n: name for name, n in vars(schema().ActivationFunctionType).items()}
        kind = names[operation.option("fusedActivationFunction")]
        if kind in PLAIN_ACTIVATIONS:
            return PLAIN_ACTIVATIONS[kind]
        if kind not in LIMITS:
            raise ValueError(f"its activation {kind} is not supported")
        limits = [self.given("limit", np.array(value, np.float32)) for value in LIMITS[kind]]
        return [("Clip", limits, {})]

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        for tensor in self.outputs:
            self.raw(tensor)  # with the channels last, as in the file
        inputs, outputs = (
            [self._declared(tensor) for tensor in some] for some in (self.inputs, self.outputs)
        )
        graph = helper.make_graph(
            self._nodes, "tflite", inputs, outputs, [*self._initializers.values()]
        )
        opset = helper.make_operatorsetid("", OPERATOR_SET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)

    def _declared(self, tensor: int) -> onnx.ValueInfoProto:
        kind = helper.np_dtype_to_tensor_dtype(self.dtype(tensor))
        return helper.make_tensor_value_info(self._names[tensor], kind, self.shape(tensor))


PLAIN_ACTIVATIONS: dict[str, list[Node]] = {
    "NONE": [],
    "RELU": [("Relu", [], {})],
    "TANH": [("Tanh", [], {})],
}

LIMITS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
"""Least and greatest results of activations that cut off."""


def is_dynamic(graph: Any) -> bool:
    """Say whether lengths of a graph's tensors are not in the file."""
    return any(-1 in map(int, _listed(one.shapeSignature)) for one in graph.tensors)


def _listed(values: Any) -> list[Any]:
    """Return a field of the file that may be left out as a list."""
    return [] if values is None else list(values)


def integers(*values: int) -> NDArray[np.int64]:
    """Return a constant of one axis."""
    return np.array(values, dtype=np.int64)
