"""Scales and zero points of QuantizeLinear and DequantizeLinear."""

from dataclasses import replace

import numpy as np

from spmilp.frontend.graph import Operator, Quantisation, Scale
from spmilp.frontend.node import Node

INTEGERS = {"int8", "uint8", "int16", "uint16", "int32"}
"""Types of quantised values."""


def with_scales(node: Node, operator: Operator) -> Operator:
    """Return the operator with its scales, if it is one that quantises or dequantises.

    Raises
    ------
    ValueError
        If scale or zero point are not constant, or are given block by block.
    """
    if operator.kind == "QuantizeLinear":
        quantisation = Quantisation(inputs=(None,), output=_scale(node, node.output_dtype()))
    elif operator.kind == "DequantizeLinear":
        quantisation = Quantisation(inputs=(_scale(node, node.dtype(0)),), output=None)
    else:
        return operator
    return replace(operator, attributes={}, quantisation=quantisation)


def same_scale(a: Scale, b: Scale) -> bool:
    """Return whether integers mean the same real numbers in both."""
    return (
        a.dtype == b.dtype
        and a.axis == b.axis
        and np.array_equal(a.scale, b.scale)
        and np.array_equal(a.zero_point, b.zero_point)
    )


def _scale(node: Node, dtype: np.dtype[np.generic]) -> Scale:
    if dtype.name not in INTEGERS:
        raise ValueError(f"quantisation to {dtype.name} is not supported")
    if node.attributes.get("block_size", 0):
        raise ValueError("scales of blocks are not supported")
    scale = node.constant(1).astype(np.float32)
    zero = node.constant(2) if node.has(2) else np.zeros(scale.shape, np.int32)
    per_tensor = scale.size == 1
    rank = len(node.shape(0))
    axis = node.integer("axis")
    if not per_tensor and (scale.ndim != 1 or not -rank <= axis < rank):
        raise ValueError(f"scales of shape {scale.shape} along axis {axis} are not supported")
    return Scale(
        scale=scale.reshape(-1),
        zero_point=zero.reshape(-1).astype(np.int32),
        axis=None if per_tensor else axis % rank,
        dtype=dtype,
    )
