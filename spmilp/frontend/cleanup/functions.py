"""Operators that ONNX itself defines by others are replaced by those."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnx import inliner

from spmilp.frontend.cleanup.nodes import ORIGIN, inherit_origin

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
