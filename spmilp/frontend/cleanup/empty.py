"""Tensors without elements are cut out where they change nothing."""

import onnx_ir as ir


def drop_empty_parts(model: ir.Model) -> None:
    """Let no Concat read a part without elements (as RotaryEmbedding's definition has them)."""
    for node in model.graph:
        if node.op_type == "Concat" and node.domain == "":
            kept = [value for value in node.inputs if not _is_empty(value)]
            for position, value in enumerate(kept):
                node.replace_input_with(position, value)
            if kept:
                node.resize_inputs(len(kept))


def _is_empty(value: ir.Value | None) -> bool:
    return value is not None and value.shape is not None and 0 in value.shape.dims
