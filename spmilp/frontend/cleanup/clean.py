"""The passes of the clean-up in their order, the smallest ones among them."""

from collections.abc import Collection, Mapping

import onnx_ir as ir
import onnx_ir.passes.common as passes

from spmilp.frontend.cleanup.batch_norm import fold_batch_norms
from spmilp.frontend.cleanup.constants import fold_constants
from spmilp.frontend.cleanup.dimensions import bind_dimensions
from spmilp.frontend.cleanup.functions import expand_functions
from spmilp.frontend.cleanup.opset import upgrade_opset
from spmilp.frontend.cleanup.qlinear import expand_qlinear
from spmilp.frontend.cleanup.quiet import quiet_libraries
from spmilp.frontend.cleanup.recurrent import unroll_recurrences
from spmilp.frontend.cleanup.shape_only import (
    fold_shapes,
    mark_filled_weights,
    mark_missing_values,
)


def clean_up(model: ir.Model, dims: Mapping[str, int], known: Collection[str]) -> ir.Model:
    """Return a model that computes the same with static shapes, few kinds of nodes and no waste.

    Parameters
    ----------
    dims
        Lengths of dynamic dimensions by name.
    known
        Kinds of operators to keep whole although ONNX defines them by others.

    Raises
    ------
    SpmilpError
        If a dimension is unknown or stays unbound, or the operator set cannot be upgraded.
    """
    with quiet_libraries():
        passes.RemoveInitializersFromInputsPass()(model)
        passes.InlinePass()(model)
        mark_missing_values(model)
        upgrade_opset(model)
        bind_dimensions(model, dims)
        forget_shapes(model)
        infer_shapes(model)
        mark_filled_weights(model)
        fold_shapes(model)
        fold_constants(model)
        infer_shapes(model)
        expand_qlinear(model)
        unroll_recurrences(model)
        model = expand_functions(model, known)
        infer_shapes(model)
        drop_empty_parts(model)
        fold_constants(model)
        fold_shapes(model)
        fold_batch_norms(model)
        infer_shapes(model)
    return model


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
