"""Why branches and loops that are left cannot be lowered.

An If whose condition is a constant is replaced by its branch when constants are folded.
"""

import onnx_ir as ir

from spmilp.frontend.cleanup.constants import elements_of, is_shape_only
from spmilp.frontend.cleanup.nodes import set_reason

MOST_VALUES = 16
"""Most elements of an input of which it is proposed to fix the values."""


def refuse_control_flow(model: ir.Model) -> None:
    """Note at every If, Loop and Scan that is left what is in the way, and what to do."""
    for node in model.graph:
        if node.op_type == "If" and not node.domain:
            set_reason(node, _dependence(node.inputs[0]))
        elif node.op_type in ("Loop", "Scan") and not node.domain:
            set_reason(node, "loops are not unrolled; export the model with its steps written out")


def _dependence(condition: ir.Value | None) -> str:
    """Say on which of the graph's inputs a condition depends, and what to do."""
    found, waiting = dict[str, ir.Value](), [] if condition is None else [condition]
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        if value.is_graph_input() and not is_shape_only(value):
            found[str(value.name)] = value
        node = value.producer()
        more = {one for one in (node.inputs if node else ()) if one is not None} - seen
        seen |= more
        waiting += more
    if not found:
        return "its condition is not known; export the model with the condition fixed"
    said = f"its condition depends on input {', '.join(sorted(found))}"
    if all(1 <= elements_of(value) <= MOST_VALUES for value in found.values()):
        return f"{said}; fix it: {' '.join(f'--input {name}=...' for name in sorted(found))}"
    return f"{said}; export the model with the condition fixed"
