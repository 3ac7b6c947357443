"""The cleaned-up model becomes operators and tensors; what cannot be lowered is listed.

QuantizeLinear and DequantizeLinear keep their scales and zero points beside their attributes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.cleanup.constants import fill_of, is_shape_only
from spmilp.frontend.cleanup.nodes import MALFORMED, OWN_DOMAIN, first_line, origin_of, reason_of
from spmilp.frontend.graph import Attribute, Operator, Quantisation, Scale, Tensor
from spmilp.frontend.node import (
    ONE_INPUT,
    Node,
    explicit_attributes,
    has_elements,
    known_shape,
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
    passes.AddDefaultAttributesPass()(model)
    conversion = _Conversion(model)
    if conversion.problems:
        nodes = sorted(conversion.problems.items())
        raise UnsupportedOperatorError(
            tuple((name, kind, reason) for (_, name, kind), reason in nodes)
        )
    names = unique_names([operator.name for operator in conversion.operators])
    return UnfusedNetwork(
        operators=tuple(
            replace(operator, name=name)
            for operator, name in zip(conversion.operators, names, strict=True)
        ),
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
            if _is_used(value) and value.shape and 0 in value.shape.dims:
                static_shape(value)
        for operator in normalise(Node(node)):
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
        axis = positive_axis(node.integer("axis"), node.rank)
        ends = accumulate((known_shape(value)[axis] for value in node.outputs), initial=0)
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
        if position > 0 and _is_used(value):
            raise ValueError(f"its output {position} is used; only the first is supported")
    attributes, quantisation = explicit_attributes(node), None
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


def _is_used(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


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
        if _is_used(output)
    )


INTEGERS = {"int8", "uint8", "int16", "uint16", "int32"}
"""Types of quantised values."""


def _quantisation(node: Node) -> Quantisation:
    """Return the scales of an operator that quantises or dequantises.

    Raises
    ------
    ValueError
        If scale or zero point are not constant, or are given block by block.
    """
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
        rounds_with_zero=node.rounds_with_zero,
    )
    return Quantisation(inputs=(None if quantises else found,), output=found if quantises else None)
