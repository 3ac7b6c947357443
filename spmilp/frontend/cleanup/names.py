"""What people call a node."""

import onnx_ir as ir


def name_of(node: ir.Node) -> str:
    """Return the name of a node, else that of its first output."""
    return node.name or next((value.name for value in node.outputs if value.name), node.op_type)
