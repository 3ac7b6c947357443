"""QLinearConv and QLinearMatMul become DequantizeLinear, operator, QuantizeLinear."""

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.tape import Tape

from spmilp.frontend.cleanup.nodes import name_of, set_reason

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
    ir.convenience.replace_nodes_and_values(graph, node, [node], tape.nodes, node.outputs, [result])


def _bias_scale(*scales: ir.Value | None) -> NDArray[np.float32]:
    """Return the product of the scales of input and weight."""
    product = np.ones((), dtype=np.float32)
    for scale in scales:
        if scale is None or scale.const_value is None:
            raise ValueError("the scales of an integer operator are not constants")
        values = scale.const_value.numpy().astype(np.float32)
        product = np.multiply(product, values.reshape(() if values.size == 1 else -1))
    return product
