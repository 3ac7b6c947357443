"""Models of old operator sets are brought to one in which today's operators mean what they say."""

import onnx
import onnx_ir as ir
from onnxscript import version_converter

from spmilp.errors import SpmilpError, UnsupportedOperatorError
from spmilp.frontend.cleanup.nodes import name_of
from spmilp.frontend.cleanup.shape_only import is_shape_only, mark_shape_only

OLDEST = 18
"""The first operator set in which axes, sizes, steps and splits are inputs everywhere."""


def upgrade_opset(model: ir.Model) -> None:
    """Bring a model to operator set 18 at least; newer ones stay as they are.

    Raises
    ------
    UnsupportedOperatorError
        If it has nodes of which ONNX knows nothing, so that they cannot be converted.
    SpmilpError
        If the ONNX version converter cannot do it for another reason.
    """
    version = model.graph.opset_imports.get("", model.graph.opset_imports.get("ai.onnx"))
    if version is None or version >= OLDEST:
        return
    unknown = tuple(
        (name_of(node), node.op_type, "the operator is not supported")
        for node in model.graph
        if not onnx.defs.has(node.op_type, version, node.domain)
    )
    if unknown:
        raise UnsupportedOperatorError(unknown)
    marked = {value.name for value in model.graph.inputs if is_shape_only(value)}
    version_converter.convert_version(model, OLDEST, fallback=True)
    # The converter makes new values, without the marks of the old.
    for value in model.graph.inputs:
        if value.name in marked:
            mark_shape_only(value)
    reached = model.graph.opset_imports[""]
    if reached < OLDEST:
        raise SpmilpError(
            f"the model's operator set {version} cannot be converted to {OLDEST}; export it anew "
            f"with operator set {OLDEST} or later"
        )
