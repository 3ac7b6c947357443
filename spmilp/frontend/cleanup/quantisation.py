"""Quantisation by scales that are computed at run time, by blocks, and in four bits.

Scales that are not constant become arithmetic on reals. Constants of four bits become bytes with
the same values; a constant with one scale per block becomes the reals that it stands for.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.frontend.cleanup.nodes import (
    Builder,
    name_of,
    noting_what_is_malformed,
    replace_node,
    set_reason,
)

WIDER = {ir.DataType.INT4: ir.DataType.INT8, ir.DataType.UINT4: ir.DataType.UINT8}


def widen_four_bits(model: ir.Model) -> None:
    """Let every constant of four bits be one of bytes.

    Only its DequantizeLinear may read it; other nodes keep it, and are reported for its type.
    """
    for value in list(model.graph.initializers.values()):
        tensor = value.const_value
        wider = None if tensor is None else WIDER.get(tensor.dtype)
        readers = [node for node, _ in value.uses()]
        if tensor is None or wider is None:
            continue
        if all(node.op_type == "DequantizeLinear" for node in readers):
            values = tensor.numpy().astype(wider.numpy())
            value.const_value = ir.tensor(values, name=value.name)
            value.type = ir.TensorType(wider)


def expand_run_time_scales(model: ir.Model) -> bool:
    """Replace quantisation by arithmetic where its scale is computed; say whether any was."""
    replaced = False
    for node in list(model.graph):
        if node.domain != "" or node.op_type not in _EXPANSIONS:
            continue
        with noting_what_is_malformed(node):
            build = Builder(model.graph, name_of(node))
            outputs = _EXPANSIONS[node.op_type](build, node)
            if outputs:
                replace_node(model.graph, node, build.tape.nodes, outputs)
                replaced = True
    return replaced


def _dynamic(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return the bytes, scale and zero point of a DynamicQuantizeLinear.

    The range of the values, zero among them, is cut into 255 steps; a range of zero has step 1
    (onnxruntime, ``core/util/qmath.h``, ``GetQuantizationParameter``).
    """
    data = _required(node, 0)
    zero, levels = build.number(0), build.number(255)
    low = build.op("Min", [_extreme(build, "ReduceMin", data), zero])
    high = build.op("Max", [_extreme(build, "ReduceMax", data), zero])
    step = build.op("Div", [build.op("Sub", [high, low]), levels])
    step = build.op("Where", [build.op("Equal", [high, low]), build.number(1), step])
    offset = build.op("Sub", [zero, build.op("Div", [low, step])])
    offset = build.op("Round", [build.op("Clip", [offset, zero, levels])])
    offset = build.op("Cast", [offset], to=ir.DataType.UINT8.value)
    return [_quantised(build, data, step, offset, ir.DataType.UINT8), step, offset]


def _extreme(build: Builder, kind: str, data: ir.Value) -> ir.Value:
    """Return the least or greatest element; found along the longest axis first, so in tiles."""
    if data.shape is not None and data.shape.is_static() and len(data.shape) > 1:
        lengths = data.shape.numpy()
        kept = lengths.index(max(lengths))
        others = [axis for axis in range(len(lengths)) if axis != kept]
        data = build.op(kind, [data, build.integers(*others)], keepdims=0)
    return build.op(kind, [data], keepdims=0)


def _quantise(build: Builder, node: ir.Node) -> list[ir.Value]:
    if _is_constant(node):
        return []
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    dtype = ir.DataType.UINT8 if zero is None else zero.dtype
    if dtype is None or not _has_one_scale(node):
        return []
    return [_quantised(build, _required(node, 0), _required(node, 1), zero, dtype)]


def _quantised(
    build: Builder, data: ir.Value, step: ir.Value, zero: ir.Value | None, dtype: ir.DataType
) -> ir.Value:
    limits = np.iinfo(dtype.numpy())
    result = build.op("Round", [build.op("Div", [data, step])])
    if zero is not None:
        offset = build.op("Cast", [zero], to=ir.DataType.FLOAT.value)
        result = build.op("Add", [result, offset])
    bounds = [build.number(float(limits.min)), build.number(float(limits.max))]
    return build.op("Cast", [build.op("Clip", [result, *bounds])], to=dtype.value)


def _dequantise(build: Builder, node: ir.Node) -> list[ir.Value]:
    if _is_constant(node):
        return _blocks(build, node)
    if not _has_one_scale(node):
        return []
    centred = build.op("Cast", [_required(node, 0)], to=ir.DataType.INT32.value)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        zero = build.op("Cast", [node.inputs[2]], to=ir.DataType.INT32.value)
        centred = build.op("Sub", [centred, zero])
    step = _required(node, 1)
    dtype = ir.DataType.FLOAT if step.dtype is None else step.dtype
    return [build.op("Mul", [build.op("Cast", [centred], to=dtype.value), step])]


def _blocks(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return the reals of a constant with one scale per block; nothing if there are no blocks."""
    size = node.attributes.get_int("block_size", 0)
    data = _required(node, 0).const_value
    if size == 0 or data is None:
        return []
    integers = data.numpy().astype(np.int32)
    axis = node.attributes.get_int("axis", 1)

    def along(position: int) -> NDArray[np.generic]:
        given = _required(node, position).const_value
        values = np.zeros(()) if given is None else given.numpy()
        repeated = np.repeat(values, size, axis=axis)
        return np.take(repeated, np.arange(integers.shape[axis]), axis=axis)

    if len(node.inputs) > 2 and node.inputs[2] is not None:
        integers = integers - along(2).astype(np.int32)
    steps = along(1)
    return [build.constant((integers * steps.astype(np.float32)).astype(steps.dtype))]


_EXPANSIONS: dict[str, Callable[[Builder, ir.Node], list[ir.Value]]] = {
    "DequantizeLinear": _dequantise,
    "DynamicQuantizeLinear": _dynamic,
    "QuantizeLinear": _quantise,
}


def _is_constant(node: ir.Node) -> bool:
    return all(value is None or value.const_value is not None for value in node.inputs[1:3])


def _has_one_scale(node: ir.Node) -> bool:
    """Return whether there is one scale; note the reason at a node with more that are computed."""
    shape = node.inputs[1].shape if node.inputs[1] is not None else None
    alone = shape is not None and shape.is_static() and int(np.prod(shape.numpy())) == 1
    if not alone:
        set_reason(node, "several scales that are computed at run time are not supported")
    return alone


def _required(node: ir.Node, position: int) -> ir.Value:
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None:
        raise ValueError(f"input {position} of {name_of(node)} is left out")
    return value
