"""Shapes are inferred anew; what the file says of inner values may be stale."""

import onnx_ir as ir
import onnx_ir.passes.common as passes


def forget_shapes(model: ir.Model) -> None:
    """Drop the shapes of all values that nodes give, the network's outputs among them."""
    for node in model.graph.all_nodes():
        for value in node.outputs:
            value.shape = None


def infer_shapes(model: ir.Model) -> None:
    """Infer the shapes that follow from inputs, constants and nodes; keep the others unknown.

    Shapes that are themselves computed (``data_prop``) follow when constants are folded; ONNX would
    take seconds over them where large constants are computed, too.
    """
    passes.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=False)(model)
