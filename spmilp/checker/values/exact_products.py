"""Products of bytes in onnxruntime that are exact on all processors.

On x86 processors without an instruction for them (VNNI) it adds products of unsigned and signed
bytes in pairs that are cut off at 16 bits. Of products of unsigned bytes it does not. So signed
weights of such products become unsigned ones, with a zero point that is larger by as much.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

PLACES = {
    "QLinearConv": (0, 3, 5),
    "QLinearMatMul": (0, 3, 5),
    "QGemm": (0, 3, 5),
    "MatMulInteger": (0, 1, 3),
    "ConvInteger": (0, 1, 3),
}
"""Of each operator whose products these are: where among its inputs the values come, the weights,
and the weights' zero point. That of the values is the third input of all."""

ZERO_OF_VALUES = 2
OFFSET = 128


def has_products_of_bytes(model: Path) -> bool:
    """Return whether a model has operators whose products may be cut off."""
    graph = onnx.load(model, load_external_data=False).graph
    return any(node.op_type in PLACES for node in graph.node)


def with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that computes the same, in which constant weights of unsigned values are, too.

    Weights that are no initializers, and those of signed values, stay as they are.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    constants = {one.name: one for one in graph.initializer}
    kinds = _kinds_of(model) | {name: one.data_type for name, one in constants.items()}
    for number, node in enumerate(graph.node):
        if node.op_type not in PLACES:
            continue
        values, weights, zero = PLACES[node.op_type]
        given = constants.get(node.input[weights])
        if given is None or given.data_type != onnx.TensorProto.INT8:
            continue
        names = node.input[values], *node.input[ZERO_OF_VALUES : ZERO_OF_VALUES + 1]
        if onnx.TensorProto.UINT8 not in {kinds.get(name) for name in names}:
            continue
        known = node.input[zero] if zero < len(node.input) else ""
        if known and known not in constants:
            continue
        point = numpy_helper.to_array(constants[known]) if known else np.int8(0)
        node.input.extend([""] * (zero + 1 - len(node.input)))
        for place, signed in ((weights, numpy_helper.to_array(given)), (zero, point)):
            unsigned = (np.asarray(signed).astype(np.int16) + OFFSET).astype(np.uint8)
            node.input[place] = f"{node.input[place] or 'zero'}/unsigned/{number}"
            graph.initializer.append(numpy_helper.from_array(unsigned, node.input[place]))
    return changed


def _kinds_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the element types of values, as far as they are known."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    infos = (*graph.input, *graph.value_info, *graph.output)
    return {one.name: one.type.tensor_type.elem_type for one in infos}
