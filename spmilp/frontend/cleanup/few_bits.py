"""Constants of few bits become bytes, or the reals that they stand for."""

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.frontend.cleanup.nodes import Builder, RefusedError, noting_what_is_malformed

WIDER = {ir.DataType.INT4: ir.DataType.INT8, ir.DataType.UINT4: ir.DataType.UINT8}


def widen_four_bits(model: ir.Model) -> None:
    """Let every constant of four bits be one of bytes.

    Only its DequantizeLinear may read it; other nodes keep it, and are reported for its type.
    """
    for value in list(model.graph.initializers.values()):
        tensor, readers = value.const_value, {node.op_type for node, _ in value.uses()}
        if tensor is not None and tensor.dtype in WIDER and readers <= {"DequantizeLinear"}:
            wider = WIDER[tensor.dtype]
            value.const_value = ir.tensor(tensor.numpy().astype(wider.numpy()), name=value.name)
            value.type = ir.TensorType(wider)


def expand_few_bits(model: ir.Model) -> bool:
    """Replace onnxruntime's products and tables of few bits; say whether there were any."""
    replaced = False
    for node in list(model.graph):
        find = _EXPANSIONS.get(node.op_type) if node.domain == "com.microsoft" else None
        if find is not None:
            with noting_what_is_malformed(node):
                build = Builder(model.graph, node)
                build.replace([find(build, node)])
                replaced = True
    return replaced


def _product_of_few_bits(build: Builder, node: ir.Node) -> ir.Value:
    """Return a product with the reals that constant weights, a row for each column, stand for."""
    if _input(node, 4) is not None:
        raise RefusedError("rows in another order than that of their blocks are not supported")
    reals, columns = np.multiply(*_in_blocks(node, 1)), node.attributes["N"].as_int()
    weights = reals.astype(_constant(node, 2).dtype).reshape(columns, -1).T
    weights = weights[: node.attributes["K"].as_int()]
    product = build.main("MatMul", [node.inputs[0], build.constant(np.ascontiguousarray(weights))])
    bias = _input(node, 5)
    return product if bias is None else build.op("Add", [product, bias])


def _rows_of_few_bits(build: Builder, node: ir.Node) -> ir.Value:
    """Return rows of a constant table, which is one of bytes, times the scales of their blocks."""
    gather, blocks = (node.attributes.get_int(name, at) for at, name in enumerate(_AXES))
    if gather != 0 or blocks not in (1, -1):
        raise RefusedError("only rows of a table that lie in blocks are supported")
    (centred, steps), indices = _in_blocks(node, 0), node.inputs[1]
    held = centred.astype(np.int8 if node.attributes.get_int("bits", 4) < 8 else np.int16)
    kind = ir.DataType.from_numpy(steps.dtype).value
    rows = build.op("Cast", [build.op("Gather", [build.constant(held), indices])], to=kind)
    reals = build.op("Mul", [rows, build.op("Gather", [build.constant(steps), indices])])
    lengths = [build.op("Shape", [indices]), build.integers(centred[0].size)]
    return build.main("Reshape", [reals, build.op("Concat", lengths, axis=0)])


_AXES = ("gather_axis", "quantize_axis")


def _in_blocks(node: ir.Node, position: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return a constant matrix less its zero points, and its scales, by rows, blocks, elements."""
    bits, size = node.attributes.get_int("bits", 4), node.attributes.get_int("block_size", 128)
    data, steps = _constant(node, position), _constant(node, 2)
    rows = node.attributes.get_int("N", len(data))
    levels, steps = _unpacked(data.reshape(rows, -1), bits), steps.reshape(rows, -1, 1)
    if levels.size != steps.size * size:
        raise RefusedError(f"{levels.size} elements are no {steps.size} blocks of {size}")
    zeros = np.full(steps.shape, (data.dtype == np.uint8) << (bits - 1), np.float32)
    if _input(node, 3) is not None:
        given = _unpacked(_constant(node, 3).reshape(rows, -1), bits)
        zeros = given[:, : steps.shape[1], np.newaxis]
    return levels.reshape(rows, -1, size) - zeros, steps


def _unpacked(packed: NDArray[Any], bits: int) -> NDArray[np.float32]:
    """Return the numbers that lie in bytes, several to one along the last axis, low bits first."""
    if packed.dtype == np.uint8:
        shifted = packed[..., np.newaxis] >> np.arange(0, 8, bits, dtype=np.uint8)
        packed = (shifted & np.uint8((1 << bits) - 1)).reshape(len(packed), -1)
    return packed.astype(np.float32)


def _input(node: ir.Node, position: int) -> ir.Value | None:
    return node.inputs[position] if position < len(node.inputs) else None


def _constant(node: ir.Node, position: int) -> NDArray[Any]:
    value = _input(node, position)
    if value is None or value.const_value is None:
        raise RefusedError(f"its input {position} ({value and value.name}) is not constant")
    return value.const_value.numpy()


_EXPANSIONS = {"GatherBlockQuantized": _rows_of_few_bits, "MatMulNBits": _product_of_few_bits}
