"""Operators that others define, by ONNX itself or as QLinear ones, are replaced by those."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
from numpy.typing import NDArray
from onnx import inliner
from onnx_ir.tape import Tape

from spmilp.frontend.cleanup.nodes import ORIGIN, inherit_origin, name_of, replace_node, set_reason

LARGE = 1024
"""Bytes from which a constant is large."""


@contextmanager
def parked_constants(model: ir.Model) -> Iterator[Callable[[ir.Model], ir.Model]]:
    """Make the large constants inputs, and give a function that makes them constants again.

    The function takes the new model. The old one is left with its constants as inputs.
    """
    graph = model.graph
    parked = {}
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if value.name and tensor is not None and tensor.nbytes > LARGE:
            parked[value.name] = tensor
            value.shape, value.type = ir.Shape(tensor.shape.numpy()), ir.TensorType(tensor.dtype)
            del graph.initializers[value.name]
            value.const_value = None
            graph.inputs.append(value)

    def restore(new: ir.Model) -> ir.Model:
        for value in list(new.graph.inputs):
            if value.name in parked:
                new.graph.inputs.remove(value)
                value.const_value = parked[value.name]
                new.graph.register_initializer(value)
        return new

    yield restore


NEW_GROUP_NORM = 21
"""Before this operator set GroupNormalization had one scale per group, not one per channel."""


def expand_functions(model: ir.Model, known: Collection[str]) -> ir.Model:
    """Return the model with ONNX's own function bodies in place of operators not in ``known``.

    Shapes must have been inferred: some bodies depend on them.
    """
    version = model.graph.opset_imports.get("", 0)
    foreign = {node.op_type for node in model.graph if node.domain == ""}.difference(known)
    if version < NEW_GROUP_NORM:
        foreign |= {n.op_type for n in model.graph if n.op_type == "GroupNormalization"}
    wanted = sorted(kind for kind in foreign if onnx.defs.has(kind, version))
    if not wanted:
        return model
    # A body refers to attributes by name; ONNX's inliner does not know their defaults.
    passes.AddDefaultAttributesPass()(model)
    expanded = {value.name: node for node in model.graph for value in node.outputs}
    with parked_constants(model) as restore:
        proto = inliner.inline_selected_functions(
            ir.to_proto(model), [("", kind) for kind in wanted], inline_schema_functions=True
        )
        new = restore(ir.from_proto(proto))
    _note_origins_of_bodies(new, expanded)
    return new


def _note_origins_of_bodies(model: ir.Model, expanded: Mapping[str | None, ir.Node]) -> None:
    """Let the nodes of a body, which end with an output of the operator, stand for it."""
    body: list[ir.Node] = []
    for node in model.graph:
        if ORIGIN in node.metadata_props:
            continue
        body.append(node)
        operator = next((expanded[v.name] for v in node.outputs if v.name in expanded), None)
        if operator is not None:
            inherit_origin(body, operator)
            body = []


PLAIN = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul"}


def expand_qlinear(model: ir.Model) -> None:
    """Replace every QLinearConv and QLinearMatMul; note the reason where scales vary."""
    for node in list(model.graph):
        if node.domain != "" or node.op_type not in PLAIN:
            continue
        scales = [node.inputs[1], node.inputs[4]]
        if any(scale is None or scale.const_value is None for scale in scales):
            set_reason(node, "its scales are not constants")
        else:
            _expand(model.graph, node)


def _expand(graph: ir.Graph, node: ir.Node) -> None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.inputs[:8]
    name, tape = name_of(node), Tape()
    # Scales of the output channels (axis 0 of W) or, in a product of matrices, of the columns.
    axis = {"axis": 0 if node.op_type == "QLinearConv" else -1}
    reals = [
        tape.op("DequantizeLinear", [x, x_scale, x_zero], name=f"{name}/x"),
        tape.op("DequantizeLinear", [w, w_scale, w_zero], axis, name=f"{name}/w"),
    ]
    if len(node.inputs) > 8 and node.inputs[8] is not None:
        scale = tape.initializer(ir.tensor(_bias_scale(x_scale, w_scale)), f"{name}/bias_scale")
        graph.register_initializer(scale)
        bias = [node.inputs[8], scale]
        reals.append(tape.op("DequantizeLinear", bias, {"axis": 0}, name=f"{name}/bias"))
    attributes = {key: attribute.value for key, attribute in node.attributes.items()}
    real = tape.op(PLAIN[node.op_type], reals, attributes, name=name)
    result = tape.op("QuantizeLinear", [real, y_scale, y_zero], name=f"{name}/y")
    replace_node(graph, node, tape.nodes, [result])


def _bias_scale(*scales: ir.Value | None) -> NDArray[np.float32]:
    """Return the product of the scales of input and weight."""
    product = np.ones((), dtype=np.float32)
    for scale in scales:
        if scale is None or scale.const_value is None:
            raise ValueError("the scales of an integer operator are not constants")
        values = scale.const_value.numpy().astype(np.float32)
        product = np.multiply(product, values.reshape(() if values.size == 1 else -1))
    return product
