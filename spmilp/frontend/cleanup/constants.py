"""Constant folding: values that do not depend on the network's inputs are computed once."""

import sys

import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript import optimizer, rewriter
from onnxscript.rewriter.rules import common as rules

ROUNDS = 4
"""Rounds of folding and rewriting; each may open the way for the next."""

RULES = (
    rules.add_0_rule,
    rules.sub_0_rule,
    rules.mul_by_1_rule,
    rules.div_by_1_rule,
    rules.cast_cast_rule,
    rules.no_op_cast_rule,
    rules.no_op_expand_rule,
    rules.no_op_transpose_rule,
    rules.transpose_transpose_rule,
    rules.materialize_reshape_shape_rule,
    rules.reshape_reshape_rule,
    rules.squeeze_reshape_1d_rule,
    rules.unsqueeze_unsqueeze_rule,
    rules.collapse_slice2_rule,
    rules.no_op_dynamic_scatter_nd_rule,
    rules.successive_relu_rule,
    rules.fuse_pad_into_conv_rule,
)
"""The rewriter's rules that change no result.

Left out of its defaults: those that gain nothing here (Flatten to Reshape, Slices to Split), those
that change how a result is rounded, and those that go wrong in corners (clips whose limits exclude
each other, automatic padding of dilated convolutions, BatchNormalization after a grouped
ConvTranspose, which :mod:`~spmilp.frontend.cleanup.batch_norm` does).
"""


RULES_FOR_EXPAND = tuple(rules.expand_before_binary_op_rules)
"""One for each operator and operand: tried only where a model has Expand."""


def fold_constants(model: ir.Model) -> None:
    """Fold constants, simplify what surrounds them, and remove what is then dead or double.

    Integer weights stay integers: what dequantises them is not folded.
    """
    _constants_become_initializers(model)
    for _ in range(ROUNDS):
        folded = optimizer.fold_constants(
            model,
            onnx_shape_inference=True,
            input_size_limit=sys.maxsize,
            output_size_limit=sys.maxsize,
            should_fold=_may_fold,
        )
        nodes = model.graph.num_nodes()
        rewriter.rewrite(model, _rules_for(model))
        passes.IdentityEliminationPass()(model)
        passes.RemoveUnusedNodesPass()(model)
        if not folded.modified and model.graph.num_nodes() == nodes:
            break
    _constants_become_initializers(model)
    passes.DeduplicateInitializersPass()(model)
    passes.CommonSubexpressionEliminationPass()(model)
    passes.RemoveUnusedNodesPass()(model)
    passes.NameFixPass()(model)


def _rules_for(model: ir.Model) -> tuple[rewriter.RewriteRule, ...]:
    expands = any(node.op_type == "Expand" for node in model.graph)
    return (*RULES, *RULES_FOR_EXPAND) if expands else RULES


def _constants_become_initializers(model: ir.Model) -> None:
    passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)


def _may_fold(node: ir.Node) -> bool | None:
    """Return whether a node whose inputs are all constants is folded; ``None`` for the default."""
    if node.op_type in ("DequantizeLinear", "DynamicQuantizeLinear"):
        return False
    return True if node.op_type in ("ConstantOfShape", "QuantizeLinear") else None
