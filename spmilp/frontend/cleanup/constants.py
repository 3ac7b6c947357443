"""Constant folding: values that do not depend on the network's inputs are computed once.

Weights of which the file carries only the shape enter the passes as marked inputs of the graph, so
that no pass can look at their values. Where all of them are one number, the mark has it.

BatchNormalization is folded into the weights of what precedes it. With ``scale = gamma /
sqrt(variance + epsilon)``, ``BN(W x + b)`` is, channel by channel, ``(scale W) x + scale (b - mean)
+ beta``. The new weights are computed in float64, rounded once.
"""

import sys
from math import prod
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes
from numpy.typing import NDArray
from onnxscript import optimizer, rewriter
from onnxscript.rewriter.rules import common as rules

from spmilp.frontend.cleanup.nodes import name_of, noting_what_is_malformed
from spmilp.frontend.passes import DEFAULT_PASSES, Passes
from spmilp.units import Extents

KEEPING_VALUES = frozenset(
    {
        *("Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Tile"),
        *("Transpose", "Unsqueeze"),
    }
)
"""Operators whose result holds no other values than their first input."""

MOST_ELEMENTS = 1 << 26
"""Largest constant that is computed, in elements: larger ones would take gigabytes."""

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
ConvTranspose, which :mod:`~spmilp.frontend.cleanup.constants` does).
"""


RULES = (rules.no_op_expand_rule, rules.materialize_reshape_shape_rule)
"""Those that lowering counts on: they make shapes known."""

RULES_FOR_EXPAND = tuple(rules.expand_before_binary_op_rules)
"""One for each operator and operand: tried only where a model has Expand."""


def fold_constants(model: ir.Model, chosen: Passes = DEFAULT_PASSES) -> None:
    """Fold constants, simplify what surrounds them, and remove what is then dead or double.

    Integer weights stay integers: what dequantises them is not folded.
    """
    lift_constants = passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)
    lift_constants(model)
    for _ in range(ROUNDS):
        folded = fold_once(model)
        nodes = model.graph.num_nodes()
        expands = any(node.op_type == "Expand" for node in model.graph)
        wanted = (*RULES, *RULES_FOR_EXPAND) if expands else RULES
        rewriter.rewrite(model, (*SIMPLIFICATIONS, *wanted) if chosen.simplify else wanted)
        passes.IdentityEliminationPass()(model)
        passes.RemoveUnusedNodesPass()(model)
        if not folded and model.graph.num_nodes() == nodes:
            break
    lift_constants(model)
    if chosen.cse:
        passes.DeduplicateInitializersPass()(model)
        passes.CommonSubexpressionEliminationPass()(model)
    passes.RemoveUnusedNodesPass()(model)
    passes.NameFixPass()(model)


def fold_once(model: ir.Model) -> bool:
    """Fold what is constant, and put branches in place of their Ifs; return whether any was."""
    folded = optimizer.fold_constants(
        model,
        onnx_shape_inference=True,
        input_size_limit=sys.maxsize,
        output_size_limit=sys.maxsize,
        should_fold=_may_fold,
    )
    return bool(folded.modified)


def _may_fold(node: ir.Node) -> bool | None:
    """Return whether a node whose inputs are all constants is folded; ``None`` for the default."""
    if any(elements_of(value) > MOST_ELEMENTS for value in node.outputs):
        return False
    if node.op_type in ("DequantizeLinear", "DynamicQuantizeLinear"):
        # A constant with one scale per block becomes the reals that it stands for.
        return node.attributes.get_int("block_size", 0) > 0
    return True if node.op_type in ("ConstantOfShape", "QuantizeLinear") else None


def elements_of(value: ir.Value) -> int:
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


def is_known(value: ir.Value) -> bool:
    """Return whether a value is a constant, with values or without."""
    return value.const_value is not None or is_shape_only(value)


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
    graph = passes.LiftSubgraphInitializersToMainGraphPass()(model).model.graph
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if tensor is not None and not _has_values(tensor):
            value.shape, value.type = ir.Shape(tensor.shape.numpy()), ir.TensorType(tensor.dtype)
            del graph.initializers[value.name or ""]
            value.const_value = None
            graph.inputs.append(value)
            mark_shape_only(value)


def mark_filled_weights(model: ir.Model) -> None:
    """Mark all floating-point ``ConstantOfShape`` of a model whose weights are made by them.

    No trained weights are one number throughout: such a file (the ``light_*`` graphs of the
    ``onnx`` package) carries its weights as shapes, and as constants they would be hundreds of MiB.
    In all other models, and for other types, ``ConstantOfShape`` is a constant like any other.
    """
    filled = [node for node in model.graph if _fills_floats(node)]
    uses = (use for node in filled for use in node.outputs[0].uses())
    makes_weights = any(WEIGHTED.get(user.op_type) == position for user, position in uses)
    for node in filled if makes_weights else ():
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
            and all(map(is_known, inputs))
            and node.op_type != "DequantizeLinear"
            and all(v.shape is not None and v.shape.is_static() for v in node.outputs)
            and not any(v.is_graph_output() for v in node.outputs)
        ):
            _replace_by_shape(
                model.graph, node, fill_of(inputs[0]) if node.op_type in KEEPING_VALUES else None
            )


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


def _replace_by_shape(graph: ir.Graph, node: ir.Node, fill: float | None) -> None:
    for old in node.outputs:
        if old.shape is not None and old.uses():
            new = new_shape_only(graph, old.name, old.shape, old.dtype, fill)
            ir.convenience.replace_all_uses_with(old, new)
    graph.remove(node, safe=True)


INTO = ("Conv", "ConvTranspose", "Gemm")


def fold_batch_norms(model: ir.Model) -> None:
    """Fold every BatchNormalization that alone reads a convolution or Gemm with constant weights.

    Where only the shapes of the weights are known, so are those of the new ones. Weights filled
    with one number need no more memory afterwards than one number per channel.
    """
    for node in list(model.graph):
        before = _foldable_producer(node)
        if before is not None:
            with noting_what_is_malformed(node):
                _fold(model.graph, before, node)


def _foldable_producer(norm: ir.Node) -> ir.Node | None:
    """Return the node into which ``norm`` can be folded, if there is one."""
    if norm.op_type != "BatchNormalization" or norm.inputs[0] is None or norm.domain != "":
        return None
    between = norm.inputs[0]
    before = between.producer()
    if (
        before is None
        or before.op_type not in INTO
        or before.domain != ""
        or len(between.uses()) != 1
        or between.is_graph_output()
        or any(value.uses() for value in norm.outputs[1:])
        or norm.attributes.get_int("training_mode", 0) != 0
        or not all(v is None or is_known(v) for v in (*before.inputs[1:], *norm.inputs[1:]))
    ):
        return None
    return before


def _fold(graph: ir.Graph, before: ir.Node, norm: ir.Node) -> None:
    weight, bias, *_ = (*before.inputs[1:], None)
    parameters = [value for value in norm.inputs[1:] if value is not None]
    if weight is None or weight.shape is None or len(parameters) != 4:
        return
    known = [weight, *parameters] + ([] if bias is None else [bias])
    names = f"{name_of(before)}/weight", f"{name_of(before)}/bias"
    if any(is_shape_only(value) and fill_of(value) is None for value in known):
        shape = parameters[0].shape or ir.Shape([])
        if bias is not None and bias.shape is not None and len(bias.shape) > 1:
            # A Gemm's C now differs from column to column.
            shape = ir.Shape([*list(bias.shape)[:-1], *shape])
        new_weight = new_shape_only(graph, names[0], weight.shape, weight.dtype)
        new_bias = new_shape_only(graph, names[1], shape, weight.dtype)
    else:
        gamma, beta, mean, variance = map(_array, parameters)
        scale = gamma / np.sqrt(variance + norm.attributes.get_float("epsilon", 1e-5))
        old = 0.0 if bias is None else _array(bias) * before.attributes.get_float("beta", 1.0)
        shift = (old - mean) * scale + beta
        scaled = _scaled(before, weight, scale)
        new_weight = _add_constant(graph, names[0], scaled, weight, weight.shape.numpy())
        new_bias = _add_constant(graph, names[1], shift, weight, shift.shape)
    before.replace_input_with(1, new_weight)
    before.resize_inputs(3)
    before.replace_input_with(2, new_bias)
    before.attributes.pop("beta", None)
    output, between = norm.outputs[0], before.outputs[0]
    name = output.name
    ir.convenience.replace_all_uses_with(output, between, replace_graph_outputs=True)
    graph.remove(norm, safe=True)
    between.name = name


def _scaled(before: ir.Node, weight: ir.Value, scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a weight times the scale of each output channel; it may repeat along axes of 1."""
    values = _array(weight)
    ones = (1,) * (values.ndim - 1)
    if before.op_type == "ConvTranspose":
        # (C, M / group, kernel...), and the M output channels lie group by group.
        group = before.attributes.get_int("group", 1)
        grouped = values.reshape(group, -1, *values.shape[1:])
        return (grouped * scale.reshape(group, 1, -1, *ones[1:])).reshape(values.shape)
    by_column = before.op_type == "Gemm" and not before.attributes.get_int("transB", 0)
    number = fill_of(weight) if weight.const_value is None else None
    return (values if number is None else np.float64(number)) * (
        scale if by_column else scale.reshape(-1, *ones)
    )


def _array(value: ir.Value) -> NDArray[np.float64]:
    """Return the values of a constant; what is filled with a number takes no memory."""
    if value.const_value is not None:
        return value.const_value.numpy().astype(np.float64)
    fill = fill_of(value)
    if fill is None or value.shape is None:
        raise ValueError(f"constant {value.name} has no values")
    return np.broadcast_to(np.float64(fill), value.shape.numpy())


def _add_constant(
    graph: ir.Graph, name: str, array: NDArray[np.float64], like: ir.Value, shape: Extents
) -> ir.Value:
    """Add a constant of the data type of ``like`` to a graph; its values repeat along axes of 1."""
    dtype = ir.DataType.FLOAT if like.dtype is None else like.dtype
    tensor = ir.tensor(np.broadcast_to(array.astype(dtype.numpy()), shape), name=name)
    kind = ir.TensorType(tensor.dtype)
    value = ir.Value(name=name, shape=ir.Shape(shape), type=kind, const_value=tensor)
    graph.register_initializer(value)
    return value
