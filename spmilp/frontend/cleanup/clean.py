"""The passes of the clean-up in their order."""

from collections.abc import Collection, Mapping

import onnx_ir as ir
import onnx_ir.passes.common as passes

from spmilp.frontend.cleanup.batch_norm import fold_batch_norms
from spmilp.frontend.cleanup.constants import fold_constants
from spmilp.frontend.cleanup.dimensions import bind_dimensions
from spmilp.frontend.cleanup.empty import drop_empty_parts
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
from spmilp.frontend.cleanup.shapes import forget_shapes, infer_shapes


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
