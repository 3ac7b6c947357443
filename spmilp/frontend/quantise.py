"""Quantised patterns become integer operators: integers in memory, int32 sums, no floats.

The pattern is DequantizeLinear of every operand, an operator, perhaps Relu or Clip, QuantizeLinear.
Operators that only move elements work on the integers as they are when the scales are equal.
Constants are transposed as integers, and become reals where an operator wants floats.
"""

from dataclasses import replace
from math import isfinite

import numpy as np

from spmilp.frontend.graph import Attribute, Operator, Quantisation, Scale, Tensor
from spmilp.frontend.patterns import Pattern, PatternFinder
from spmilp.frontend.unfused import UnfusedNetwork

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


def same_scale(a: Scale, b: Scale) -> bool:
    """Return whether integers mean the same real numbers in both."""
    return (
        a.dtype == b.dtype
        and a.axis == b.axis
        and np.array_equal(a.scale, b.scale)
        and np.array_equal(a.zero_point, b.zero_point)
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


def transpose_integer_weights(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with ``Transpose(DequantizeLinear(w))`` as ``DequantizeLinear(w')``."""
    tensors = dict(network.tensors)
    reals: dict[str, Operator] = {}
    operators = []
    for operator in network.operators:
        source = reals.get(operator.inputs[0]) if operator.kind == "Transpose" else None
        if source is not None:
            operator = _transposed(operator, source, tensors)
        if _dequantises_constant(operator, tensors):
            reals[operator.output] = operator
        operators.append(operator)
    return replace(network, operators=tuple(operators), tensors=tensors)


def compute_constant_reals(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with the result of every DequantizeLinear of a constant as a constant."""
    tensors = dict(network.tensors)
    operators = []
    for operator in network.operators:
        if _dequantises_constant(operator, tensors) and operator.output not in network.outputs:
            source, given = tensors[operator.inputs[0]], operator.quantisation
            scale = None if given is None else given.inputs[0]
            data = None if source.data is None or scale is None else _reals(source.data, scale)
            tensors[operator.output] = replace(
                tensors[operator.output], data=data, shape_only=source.shape_only
            )
        else:
            operators.append(operator)
    return replace(network, operators=tuple(operators), tensors=tensors)


def _dequantises_constant(operator: Operator, tensors: dict[str, Tensor]) -> bool:
    if operator.kind != "DequantizeLinear":
        return False
    source = tensors[operator.inputs[0]]
    return source.data is not None or source.shape_only


def _transposed(transpose: Operator, source: Operator, tensors: dict[str, Tensor]) -> Operator:
    """Return the DequantizeLinear of a transposed constant."""
    perm = transpose.attributes["perm"]
    scale = None if source.quantisation is None else source.quantisation.inputs[0]
    if scale is None or not isinstance(perm, tuple):
        return transpose
    weight = tensors[source.inputs[0]]
    order = [int(axis) for axis in perm]
    name = f"{weight.name}/{transpose.name}"
    tensors[name] = Tensor(
        name=name,
        shape=tuple(weight.shape[axis] for axis in order),
        dtype=weight.dtype,
        data=None if weight.data is None else np.ascontiguousarray(weight.data.transpose(order)),
        shape_only=weight.shape_only,
        fill=weight.fill,
    )
    axis = None if scale.axis is None else order.index(scale.axis)
    return replace(
        source,
        name=transpose.name,
        inputs=(name,),
        output=transpose.output,
        quantisation=Quantisation(inputs=(replace(scale, axis=axis),), output=None),
    )


def _reals(integers: np.ndarray, scale: Scale) -> np.ndarray:
    """Return ``scale * (integer - zero point)`` in float32."""
    shape = [1] * integers.ndim
    if scale.axis is not None:
        shape[scale.axis] = -1
    centred = integers.astype(np.int32) - scale.zero_point.reshape(shape)
    return centred.astype(np.float32) * scale.scale.reshape(shape)
