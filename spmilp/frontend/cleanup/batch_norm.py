"""BatchNormalization is folded into the weights of what precedes it.

With ``scale = gamma / sqrt(variance + epsilon)``, ``BN(W x + b)`` is, channel by channel,
``(scale W) x + scale (b - mean) + beta``. The new weights are computed in float64, rounded once.
"""

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.frontend.cleanup.constants import fill_of, is_shape_only, new_shape_only
from spmilp.frontend.cleanup.nodes import name_of, noting_what_is_malformed
from spmilp.units import Extents

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
        or not all(map(_is_constant, (*before.inputs[1:], *norm.inputs[1:])))
    ):
        return None
    return before


def _is_constant(value: ir.Value | None) -> bool:
    return value is None or value.const_value is not None or is_shape_only(value)


def _fold(graph: ir.Graph, before: ir.Node, norm: ir.Node) -> None:
    weight = before.inputs[1]
    bias = before.inputs[2] if len(before.inputs) > 2 else None
    parameters = [value for value in norm.inputs[1:] if value is not None]
    if weight is None or weight.shape is None or len(parameters) != 4:
        return
    known = [weight, *parameters] + ([] if bias is None else [bias])
    names = f"{name_of(before)}/weight", f"{name_of(before)}/bias"
    if any(is_shape_only(value) and fill_of(value) is None for value in known):
        channels = parameters[0].shape or ir.Shape([])
        shape = channels if bias is None or bias.shape is None else _widest(bias.shape, channels)
        new_weight = new_shape_only(graph, names[0], weight.shape, weight.dtype)
        new_bias = new_shape_only(graph, names[1], shape, weight.dtype)
    else:
        arrays = _folded(before, norm, weight, bias, parameters)
        new_weight = _add_constant(graph, names[0], arrays[0], weight, weight.shape.numpy())
        new_bias = _add_constant(graph, names[1], arrays[1], weight, arrays[1].shape)
    before.replace_input_with(1, new_weight)
    before.resize_inputs(3)
    before.replace_input_with(2, new_bias)
    before.attributes.pop("beta", None)
    output, between = norm.outputs[0], before.outputs[0]
    name = output.name
    ir.convenience.replace_all_uses_with(output, between, replace_graph_outputs=True)
    graph.remove(norm, safe=True)
    between.name = name


def _widest(bias: ir.Shape, channels: ir.Shape) -> ir.Shape:
    """Return the shape of a Gemm's C once it differs from column to column."""
    return ir.Shape([*list(bias)[:-1], *channels]) if len(bias) > 1 else channels


def _folded(
    before: ir.Node,
    norm: ir.Node,
    weight: ir.Value,
    bias: ir.Value | None,
    parameters: Iterable[ir.Value],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    gamma, beta, mean, variance = (_array(value) for value in parameters)
    scale = gamma / np.sqrt(variance + norm.attributes.get_float("epsilon", 1e-5))
    old_bias = np.zeros(1) if bias is None else _array(bias)
    old_bias = old_bias * before.attributes.get_float("beta", 1.0)
    return _scaled_weight(before, _weight(before, weight), scale), (old_bias - mean) * scale + beta


def _weight(before: ir.Node, weight: ir.Value) -> NDArray[np.float64]:
    """Return a weight; one filled with a number is as small as its scaled self can be stored."""
    shape = None if weight.shape is None else weight.shape.numpy()
    if weight.const_value is not None or shape is None or before.op_type == "ConvTranspose":
        return _array(weight)
    by_column = before.op_type == "Gemm" and not before.attributes.get_int("transB", 0)
    small = (1, shape[1]) if by_column else (shape[0], *(1 for _ in shape[1:]))
    return np.full(small, fill_of(weight), dtype=np.float64)


def _scaled_weight(
    before: ir.Node, weight: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    if before.op_type == "Gemm":
        return weight * (scale[:, None] if before.attributes.get_int("transB", 0) else scale)
    if before.op_type == "Conv":
        return weight * scale.reshape(-1, *(1,) * (weight.ndim - 1))
    # ConvTranspose: (C, M / group, kernel...), and the M output channels lie group by group.
    group = before.attributes.get_int("group", 1)
    grouped = weight.reshape(group, -1, *weight.shape[1:])
    return (grouped * scale.reshape(group, 1, -1, *(1,) * (weight.ndim - 2))).reshape(weight.shape)


def _array(value: ir.Value) -> NDArray[np.float64]:
    if value.const_value is not None:
        return value.const_value.numpy().astype(np.float64)
    fill = fill_of(value)
    if fill is None or value.shape is None:
        raise ValueError(f"constant {value.name} has no values")
    return np.full(value.shape.numpy(), fill, dtype=np.float64)


def _add_constant(
    graph: ir.Graph, name: str, array: NDArray[np.float64], like: ir.Value, shape: Extents
) -> ir.Value:
    """Add a constant of the data type of ``like`` to a graph; its values repeat along axes of 1."""
    dtype = ir.DataType.FLOAT if like.dtype is None else like.dtype
    tensor = ir.tensor(np.broadcast_to(array.astype(dtype.numpy()), shape), name=name)
    value = ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(tensor.dtype))
    value.const_value = tensor
    graph.register_initializer(value)
    return value
