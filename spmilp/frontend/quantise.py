"""Quantised patterns become integer operators: integers in memory, int32 sums, no floats.

The pattern is DequantizeLinear of every operand, an operator, perhaps Relu or Clip, QuantizeLinear.
Operators that only move elements work on the integers as they are when the scales are equal.
"""

from dataclasses import replace
from math import isfinite

import numpy as np

from spmilp.frontend.graph import Attribute, Operator, Quantisation
from spmilp.frontend.patterns import Pattern, PatternFinder
from spmilp.frontend.scales import same_scale
from spmilp.frontend.unfused import UnfusedNetwork
from spmilp.frontend.weights import compute_constant_reals, transpose_integer_weights

MOVING = frozenset(
    {
        *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GlobalMaxPool", "Identity"),
        *("MaxPool", "Pad", "Reshape", "Slice", "SpaceToDepth", "Squeeze", "Tile", "Transpose"),
        "Unsqueeze",
    }
)
"""Operators each of whose output elements is an input element."""


def integerise(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with quantised patterns replaced by integer operators."""
    network = transpose_integer_weights(network)
    finder = PatternFinder(network)
    operators: list[Operator] = []
    absorbed: set[str] = set()
    for operator in network.operators:
        pattern = None if operator.output in absorbed else finder.pattern(operator)
        if pattern is not None:
            absorbed.update(pattern.absorbed)
            operators.append(_integer_operator(pattern))
        elif operator.output not in absorbed:
            operators.append(operator)
    network = replace(network, operators=tuple(operators))
    return compute_constant_reals(_without_unread_reals(network))


def _integer_operator(pattern: Pattern) -> Operator:
    operator = pattern.operator
    if _only_moves(pattern):
        return replace(
            operator,
            inputs=tuple(name for name, _ in pattern.operands),
            output=pattern.output,
            attributes=_integer_attributes(pattern),
        )
    return replace(
        operator,
        inputs=tuple(name for name, _ in pattern.operands),
        output=pattern.output,
        quantisation=Quantisation(
            inputs=tuple(scale for _, scale in pattern.operands),
            output=pattern.scale,
            low=pattern.low if isfinite(pattern.low) else None,
            high=pattern.high if isfinite(pattern.high) else None,
        ),
    )


def _only_moves(pattern: Pattern) -> bool:
    """Return whether an operator gives the right integers without knowing their scales."""
    scales = [scale for _, scale in pattern.operands if scale is not None]
    return (
        pattern.operator.kind in MOVING
        and not isfinite(pattern.low)
        and not isfinite(pattern.high)
        and pattern.scale is not None
        and pattern.scale.axis is None
        and all(same_scale(scale, pattern.scale) for scale in scales)
    )


def _integer_attributes(pattern: Pattern) -> dict[str, Attribute]:
    """Return the attributes for integers: Pad's value is the integer that stands for it."""
    attributes = dict(pattern.operator.attributes)
    value = attributes.get("value")
    if pattern.operator.kind == "Pad" and isinstance(value, int | float) and pattern.scale:
        limits = np.iinfo(pattern.scale.dtype.name)
        integer = np.rint(np.float32(value) / pattern.scale.scale[0]) + pattern.scale.zero_point[0]
        attributes["value"] = int(np.clip(integer, limits.min, limits.max))
    return attributes


def _without_unread_reals(network: UnfusedNetwork) -> UnfusedNetwork:
    """Drop every DequantizeLinear that no operator reads any more."""
    read = {name for operator in network.operators for name in operator.inputs} | {*network.outputs}
    kept = (o for o in network.operators if o.kind != "DequantizeLinear" or o.output in read)
    return replace(network, operators=tuple(kept))
