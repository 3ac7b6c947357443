"""Names of nodes, and reasons why one cannot be lowered, noted by the pass that found out."""

import onnx_ir as ir


def name_of(node: ir.Node) -> str:
    """Return the name of a node, else that of its first output."""
    return node.name or next((value.name for value in node.outputs if value.name), node.op_type)


KEY = "spmilp.reason"


def set_reason(node: ir.Node, reason: str) -> None:
    """Note why a node cannot be lowered."""
    node.metadata_props[KEY] = reason


def reason_of(node: ir.Node) -> str | None:
    """Return what has been noted of a node, if anything."""
    return node.metadata_props.get(KEY)
