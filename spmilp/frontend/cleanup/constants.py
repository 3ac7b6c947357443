"""Constant folding: values that do not depend on the network's inputs are computed once.

Weights of which the file carries only the shape enter the passes as marked inputs of the graph, so
that no pass can look at their values. Where all of them are one number, the mark has it.
"""

import sys
from math import prod
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript import optimizer, rewriter
from onnxscript.rewriter.rules import common as rules

from spmilp.frontend.passes import DEFAULT_PASSES, Passes

_MOVING = frozenset(
    {
        *("Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Tile"),
        *("Transpose", "Unsqueeze"),
    }
)

MOST_ELEMENTS = 1 << 26
"""Of a constant that is computed: larger ones would take gigabytes."""

ROUNDS = 4
"""Rounds of folding and rewriting; each may open the way for the next."""

SIMPLIFICATIONS = (
    rules.add_0_rule,
    rules.sub_0_rule,
    rules.mul_by_1_rule,
    rules.div_by_1_rule,
    rules.cast_cast_rule,
    rules.no_op_cast_rule,
    rules.no_op_transpose_rule,
    rules.transpose_transpose_rule,
    rules.reshape_reshape_rule,
    rules.squeeze_reshape_1d_rule,
    rules.unsqueeze_unsqueeze_rule,
    rules.collapse_slice2_rule,
    rules.no_op_dynamic_scatter_nd_rule,
    rules.successive_relu_rule,
    rules.fuse_pad_into_conv_rule,
)
"""The rewriter's rules that change no result.

Left out of its defaults: those that gain nothing here (Flatten to Reshape, Slices to Split), those
that change how a result is rounded, and those that go wrong in corners (clips whose limits exclude
each other, automatic padding of dilated convolutions, BatchNormalization after a grouped
ConvTranspose, which :mod:`~spmilp.frontend.cleanup.batch_norm` does).
"""


RULES = (rules.no_op_expand_rule, rules.materialize_reshape_shape_rule)
"""Those that lowering counts on: they make shapes known."""

RULES_FOR_EXPAND = tuple(rules.expand_before_binary_op_rules)
"""One for each operator and operand: tried only where a model has Expand."""


def fold_constants(model: ir.Model, chosen: Passes = DEFAULT_PASSES) -> None:
    """Fold constants, simplify what surrounds them, and remove what is then dead or double.

    Integer weights stay integers: what dequantises them is not folded.
    """
    _constants_become_initializers(model)
    for _ in range(ROUNDS):
        folded = optimizer.fold_constants(
            model,
            onnx_shape_inference=True,
            input_size_limit=sys.maxsize,
            output_size_limit=sys.maxsize,
            should_fold=_may_fold,
        )
        nodes = model.graph.num_nodes()
        rewriter.rewrite(model, _rules_for(model, chosen))
        passes.IdentityEliminationPass()(model)
        passes.RemoveUnusedNodesPass()(model)
        if not folded.modified and model.graph.num_nodes() == nodes:
            break
    _constants_become_initializers(model)
    if chosen.cse:
        passes.DeduplicateInitializersPass()(model)
        passes.CommonSubexpressionEliminationPass()(model)
    passes.RemoveUnusedNodesPass()(model)
    passes.NameFixPass()(model)


def _rules_for(model: ir.Model, chosen: Passes) -> tuple[rewriter.RewriteRule, ...]:
    expands = any(node.op_type == "Expand" for node in model.graph)
    return (
        *(SIMPLIFICATIONS if chosen.simplify else ()),
        *RULES,
        *(RULES_FOR_EXPAND if expands else ()),
    )


def _constants_become_initializers(model: ir.Model) -> None:
    passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)


def _may_fold(node: ir.Node) -> bool | None:
    """Return whether a node whose inputs are all constants is folded; ``None`` for the default."""
    if any(_elements(value) > MOST_ELEMENTS for value in node.outputs):
        return False
    if node.op_type in ("DequantizeLinear", "DynamicQuantizeLinear"):
        return False
    return True if node.op_type in ("ConstantOfShape", "QuantizeLinear") else None


def _elements(value: ir.Value) -> int:
    """Return the elements of a value as far as its dimensions are known."""
    if value.shape is None:
        return 0
    return prod(size for size in value.shape if isinstance(size, int))


MARK = "spmilp.shape_only"

WEIGHTED = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1}
"""Operators with weights, and which input they are."""

_FLOATS = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE}


def is_shape_only(value: ir.Value | None) -> bool:
    """Return whether a value is a constant of which only the shape is known."""
    return value is not None and MARK in value.metadata_props


def mark_shape_only(value: ir.Value) -> None:
    """Mark an input of a graph as a constant of which only the shape is known."""
    value.metadata_props[MARK] = "1"


FILL = "spmilp.fill"


def fill_of(value: ir.Value | None) -> float | None:
    """Return the number that all values of a constant of known shape are, if that is known."""
    if value is None:
        return None
    if FILL in value.metadata_props:
        return float(value.metadata_props[FILL])
    if value.const_value is None:
        return None
    different = np.unique(value.const_value.numpy())
    return float(different[0]) if different.size == 1 else None


def new_shape_only(
    graph: ir.Graph,
    name: str | None,
    shape: ir.Shape,
    dtype: ir.DataType | None,
    fill: float | None = None,
) -> ir.Value:
    """Add a constant without values to a graph, or one whose values are all one number."""
    if dtype is None:
        raise ValueError(f"constant {name} has no data type")
    value = ir.Value(name=name, shape=shape, type=ir.TensorType(dtype))
    mark_shape_only(value)
    if fill is not None:
        value.metadata_props[FILL] = repr(fill)
    graph.inputs.append(value)
    return value


def mark_missing_values(model: ir.Model) -> None:
    """Mark the constants that have no values, or whose file is not there or too short."""
    graph = model.graph
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if tensor is not None and not _has_values(tensor):
            value.shape, value.type = ir.Shape(tensor.shape.numpy()), ir.TensorType(tensor.dtype)
            del graph.initializers[value.name or ""]
            value.const_value = None
            mark_shape_only(value)
            graph.inputs.append(value)


def mark_filled_weights(model: ir.Model) -> None:
    """Mark all floating-point ``ConstantOfShape`` of a model whose weights are made by them.

    No trained weights are one number throughout: such a file (the ``light_*`` graphs of the
    ``onnx`` package) carries its weights as shapes, and as constants they would be hundreds of MiB.
    In all other models, and for other types, ``ConstantOfShape`` is a constant like any other.
    """
    filled = [node for node in model.graph if _fills_floats(node)]
    if not any(_makes_weights(node) for node in filled):
        return
    for node in filled:
        value = node.attributes.get("value")
        number = 0.0 if value is None else float(value.as_tensor().numpy().item())
        _replace_by_shape(model.graph, node, number)


def fold_shapes(model: ir.Model) -> None:
    """Replace nodes that compute with constants, some of them without values, by their result.

    The result is again a constant without values; shapes must have been inferred. The scale of a
    quantised weight stays apart from it.
    """
    for node in list(model.graph):
        inputs = [value for value in node.inputs if value is not None]
        if (
            any(map(is_shape_only, inputs))
            and all(is_shape_only(v) or v.const_value is not None for v in inputs)
            and node.op_type != "DequantizeLinear"
            and all(v.shape is not None and v.shape.is_static() for v in node.outputs)
            and not any(v.is_graph_output() for v in node.outputs)
        ):
            _replace_by_shape(model.graph, node, fill_of(inputs[0]) if _moves(node) else None)


def _moves(node: ir.Node) -> bool:
    """Return whether a result holds no other values than the first input."""
    return node.op_type in _MOVING


def _has_values(tensor: ir.TensorProtocol) -> bool:
    if isinstance(tensor, ir.ExternalTensor):
        end = (tensor.offset or 0) + (tensor.length or tensor.nbytes)
        path = Path(tensor.path)
        return path.is_file() and path.stat().st_size >= end
    if isinstance(tensor, ir.TensorProtoTensor) and tensor.dtype is not ir.DataType.STRING:
        return tensor.nbytes == 0 or bool(tensor.tobytes())
    return True


def _fills_floats(node: ir.Node) -> bool:
    if node.op_type != "ConstantOfShape" or node.domain != "":
        return False
    value = node.attributes.get("value")
    dtype = ir.DataType.FLOAT if value is None else value.as_tensor().dtype
    shape = node.outputs[0].shape
    return dtype in _FLOATS and shape is not None and shape.is_static()


def _makes_weights(node: ir.Node) -> bool:
    return any(WEIGHTED.get(user.op_type) == position for user, position in node.outputs[0].uses())


def _replace_by_shape(graph: ir.Graph, node: ir.Node, fill: float | None) -> None:
    for old in node.outputs:
        if old.shape is not None and old.uses():
            new = new_shape_only(graph, old.name, old.shape, old.dtype, fill)
            ir.convenience.replace_all_uses_with(old, new)
    graph.remove(node, safe=True)
