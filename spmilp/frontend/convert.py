"""The cleaned-up model becomes operators and tensors; what cannot be lowered is listed.

QuantizeLinear and DequantizeLinear keep their scales and zero points beside their attributes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import onnx_ir as ir

from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.cleanup.constants import fill_of, is_shape_only
from spmilp.frontend.cleanup.nodes import MALFORMED, OWN_DOMAIN, first_line, origin_of, reason_of
from spmilp.frontend.cleanup.quantisation import ROUNDS_WITH_ZERO
from spmilp.frontend.graph import Attribute, Operator, Quantisation, Scale, Tensor
from spmilp.frontend.node import (
    ONE_INPUT,
    Node,
    has_elements,
    make_explicit,
    numpy_dtype,
    positive_axis,
    static_shape,
)
from spmilp.frontend.operators.registry import find_family
from spmilp.frontend.unfused import UnfusedNetwork, unique_names

CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})


def convert(model: ir.Model) -> UnfusedNetwork:
    """Return the operators and tensors of a cleaned-up model.

    Raises
    ------
    UnsupportedOperatorError
        If there are nodes that cannot be lowered; it lists all of them.
    """
    conversion = _Conversion(model)
    if conversion.problems:
        nodes = sorted(conversion.problems.items())
        raise UnsupportedOperatorError(
            tuple((name, kind, reason) for (_, name, kind), reason in nodes)
        )
    names = unique_names([operator.name for operator in conversion.operators])
    return UnfusedNetwork(
        operators=tuple(map(_renamed, conversion.operators, names)),
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
        self._opset = model.graph.opset_imports.get("", 0)
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
        view = Node(node, self._opset)
        results = {str(value.name): value for value in node.outputs}
        for value in node.outputs:
            if (value.uses() or value.is_graph_output()) and value.shape and 0 in value.shape.dims:
                static_shape(value)
        for plain in normalise(view):
            operator = with_scales(view, plain)
            inputs = [self.tensors[name] if name else None for name in operator.inputs]
            for tensor in filter(None, inputs):
                has_elements(tensor.name, tensor.shape)
            family = find_family(operator.kind)
            if family is None:
                raise ValueError("the operator is not supported")
            shape, value = family(operator, inputs).shape, results[operator.output]
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


def _renamed(operator: Operator, name: str) -> Operator:
    return operator if operator.name == name else replace(operator, name=name)


def _is_lowerable(node: ir.Node) -> None:
    """Raise a ``ValueError`` with the reason for nodes of which no rule has to be asked."""
    reason = reason_of(node)
    if reason is not None:
        raise ValueError(reason)
    if node.op_type in CONTROL_FLOW:
        raise ValueError(
            "control flow that depends on data is not supported; export the model with its "
            "conditions and numbers of steps fixed"
        )
    if node.domain not in ("", "ai.onnx", OWN_DOMAIN):
        raise ValueError(
            f"operator {node.op_type} of domain {node.domain} is not supported; give the model its "
            f"definition as an ONNX function, or export it with operators of ONNX"
        )
    if node.op_type != "Split" and find_family(node.op_type) is None:
        raise ValueError(
            "the operator is not supported; export the model with others, or cut this one off"
        )


def _tensor(value: ir.Value) -> Tensor:
    data = None
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


def normalise(node: Node) -> tuple[Operator, ...]:
    """Return the operators that stand for a node; all but Split and TopK are one.

    Raises
    ------
    ValueError
        If the node cannot be lowered; the message is the reason.
    """
    if node.kind == "Split":
        return _split(node)
    if node.kind == "TopK":
        return _top(node)
    for position in range(1, len(node.outputs())):
        if node.uses_output(position):
            raise ValueError(f"its output {position} is used; only the first is supported")
    attributes = make_explicit(node)
    alone = node.kind in ONE_INPUT or (node.kind == "Gather" and "indices" in attributes)
    inputs = node.input_names(1 if alone else None)
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    output = node.outputs()[0]
    return (
        Operator(
            name=node.name, kind=node.kind, inputs=inputs, output=output, attributes=attributes
        ),
    )


def _split(node: Node) -> tuple[Operator, ...]:
    """Return one Slice for each output of a Split that is used."""
    axis = positive_axis(node.integer("axis"), node.rank)
    lengths = [node.output_length(position, axis) for position in range(len(node.outputs()))]
    ends = [*accumulate(lengths, initial=0)]
    return _by_output(
        node,
        "Slice",
        [
            {"starts": (start,), "ends": (end,), "axes": (axis,), "steps": (1,)}
            for start, end in pairwise(ends)
        ],
    )


def _top(node: Node) -> tuple[Operator, ...]:
    """Return one TopK for the elements and one for their positions, where these are used."""
    attributes = {
        "axis": positive_axis(node.integer("axis"), node.rank),
        "k": node.integers(1)[0],
        "largest": node.integer("largest"),
    }
    return _by_output(node, "TopK", [{**attributes, "positions": position} for position in (0, 1)])


def _by_output(
    node: Node, kind: str, attributes: Sequence[Mapping[str, Attribute]]
) -> tuple[Operator, ...]:
    """Return an operator on the first input for each output that is used."""
    return tuple(
        Operator(
            name=f"{node.name}:{position}" if position or kind == "Slice" else node.name,
            kind=kind,
            inputs=node.input_names(1),
            output=output,
            attributes=given,
        )
        for position, (output, given) in enumerate(zip(node.outputs(), attributes, strict=False))
        if node.uses_output(position)
    )


INTEGERS = {"int8", "uint8", "int16", "uint16", "int32"}
"""Types of quantised values."""


def with_scales(node: Node, operator: Operator) -> Operator:
    """Return the operator with its scales, if it is one that quantises or dequantises.

    Raises
    ------
    ValueError
        If scale or zero point are not constant, or are given block by block.
    """
    if operator.kind == "QuantizeLinear":
        quantisation = Quantisation(inputs=(None,), output=_scale(node, node.output_dtype()))
    elif operator.kind == "DequantizeLinear":
        quantisation = Quantisation(inputs=(_scale(node, node.dtype(0)),), output=None)
    else:
        return operator
    return replace(operator, attributes={}, quantisation=quantisation)


def _scale(node: Node, dtype: np.dtype[np.generic]) -> Scale:
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
    per_tensor = scale.size == 1
    rank = node.rank
    axis = node.integer("axis")
    if not per_tensor and (scale.ndim != 1 or not -rank <= axis < rank):
        raise ValueError(f"scales of shape {scale.shape} along axis {axis} are not supported")
    return Scale(
        scale=scale.reshape(-1),
        zero_point=zero.reshape(-1).astype(np.int32),
        axis=None if per_tensor else axis % rank,
        dtype=dtype,
        rounds_with_zero=node.is_marked(ROUNDS_WITH_ZERO),
    )
