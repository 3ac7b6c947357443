"""Quantised patterns become integer operators: integers in memory, int32 sums, no floats.

The pattern is DequantizeLinear of every operand, an operator, perhaps Relu or Clip, QuantizeLinear.
Operators that only move elements work on the integers as they are when the scales are equal.
Constants are transposed as integers, and become reals where an operator wants floats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import NamedTuple, TypeAlias

import numpy as np

from spmilp.frontend.graph import Attribute, Operator, Quantisation, Scale, Tensor
from spmilp.frontend.unfused import UnfusedNetwork

WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators that add up products; without QuantizeLinear after them they write floats."""

LIMITING = frozenset({"Clip", "Relu"})

Operand: TypeAlias = tuple[str, Scale | None]
"""An integer tensor and its scale; another tensor and ``None``."""


class End(NamedTuple):
    """How a pattern ends: the tensor that is written, and its scale; ``None`` for floats.

    ``low`` and ``high`` are the limits that a Relu or Clip sets, ``absorbed`` the outputs of the
    operators taken in: Relu, Clip, QuantizeLinear.
    """

    output: str
    scale: Scale | None
    low: float = -inf
    high: float = inf
    absorbed: tuple[str, ...] = ()


class _Patterns:
    """Looks for patterns in a network."""

    def __init__(self, network: UnfusedNetwork) -> None:
        self._tensors = network.tensors
        self._outputs = frozenset(network.outputs)
        self._consumers = network.consumers()
        self._reals: Mapping[str, Operand] = {
            operator.output: (operator.inputs[0], operator.quantisation.inputs[0])
            for operator in network.operators
            if operator.kind == "DequantizeLinear" and operator.quantisation is not None
        }

    def integer_operator(self, operator: Operator) -> tuple[Operator, tuple[str, ...]] | None:
        """Return what a pattern that begins with an operator becomes, and what it takes in."""
        operands: Sequence[Operand] = [self._reals.get(one, (one, None)) for one in operator.inputs]
        if operator.kind == "DequantizeLinear" or all(scale is None for _, scale in operands):
            return None
        if operator.kind == "QuantizeLinear":
            # With nothing between the two: a copy that rescales.
            copy = replace(operator, kind="Identity", attributes={}, quantisation=None)
            given = operator.quantisation
            end = End(operator.output, None if given is None else given.output)
            return _integer_operator(copy, operands, end), ()
        found = self._end(operator)
        if operator.kind not in WEIGHTED:
            fits = all(scale is not None or self._may_stay(one) for one, scale in operands)
            if found is None or not fits:
                return None
        elif self._products_fit(operator, operands):
            operands = [*operands[:2], *self._bias(operator, operands)]
        else:
            return None
        end = found or End(operator.output, None)
        return _integer_operator(operator, operands, end), end.absorbed

    def _may_stay(self, name: str) -> bool:
        """Return whether an operand without scale may stay: left out, constant, or integer."""
        return (
            not name
            or _is_constant(self._tensors[name])
            or np.issubdtype(self._tensors[name].dtype, np.integer)
        )

    def _products_fit(self, operator: Operator, operands: Sequence[Operand]) -> bool:
        """Return whether products and bias of an operator can be added up as integers.

        Each sum must have one scale: that of the first factor, and of the second's channel.
        """
        if operator.attributes.get("alpha", 1.0) != 1 or operator.attributes.get("beta", 1.0) != 1:
            return False
        (_, left), (_, right) = operands[:2]
        if left is None or right is None or left.axis is not None:
            return False
        if right.axis not in (None, self._channels(operator)):
            return False
        if max(left.dtype.itemsize, right.dtype.itemsize) > 1:
            return False
        return all(not name or _is_constant(self._tensors[name]) for name, _ in operands[2:])

    def _channels(self, operator: Operator) -> int:
        """Return the axis of the second factor whose positions are channels of the result."""
        if operator.kind == "Gemm":
            return 1 - operator.integer("transB")
        if operator.kind == "MatMul":
            # The one axis of a vector is summed.
            return len(self._tensors[operator.inputs[1]].shape) - 1 or -1
        return int(operator.kind == "ConvTranspose")

    def _bias(self, operator: Operator, operands: Sequence[Operand]) -> Sequence[Operand]:
        """Return the bias as integers if they count steps of the sums, else as the reals it is."""
        (_, left), (_, right) = operands[:2]
        if len(operands) < 3 or left is None or right is None:
            return ()
        name, scale = operands[2]
        if scale is None or (
            scale.dtype == np.int32
            and scale.axis in (None, len(self._tensors[name].shape) - 1)
            and not scale.zero_point.any()
            and np.allclose(scale.scale, left.scale * right.scale, rtol=1e-5, atol=0)
        ):
            return ((name, scale),)
        return ((operator.inputs[2], None),)

    def _end(self, operator: Operator) -> End | None:
        """Return the end with the QuantizeLinear behind an operator, if there is one."""
        low, high = -inf, inf
        absorbed: list[str] = []
        last = operator
        while last is operator or last.kind in LIMITING:
            readers = self._consumers.get(last.output, [])
            if len(readers) != 1 or last.output in self._outputs:
                return None
            (last,) = readers
            absorbed.append(last.output)
            if last.kind in LIMITING:
                low, high = (_limited(value, last) for value in (low, high))
        scale = None if last.quantisation is None else last.quantisation.output
        if last.kind != "QuantizeLinear" or scale is None:
            return None
        if scale.axis is not None and operator.kind in WEIGHTED:
            return None
        return End(last.output, scale, low, high, tuple(absorbed))


def _is_constant(tensor: Tensor) -> bool:
    return tensor.data is not None or tensor.shape_only


def _limited(value: float, operator: Operator) -> float:
    """Return what a Relu or Clip makes of a value."""
    if operator.kind == "Relu":
        return max(value, 0.0)
    lower, upper = operator.attributes.get("min"), operator.attributes.get("max")
    if isinstance(lower, int | float):
        value = max(value, lower)
    return min(value, upper) if isinstance(upper, int | float) else value


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
    patterns = _Patterns(network)
    operators: list[Operator] = []
    absorbed: set[str] = set()
    for operator in network.operators:
        if operator.output not in absorbed:
            found, taken = patterns.integer_operator(operator) or (operator, ())
            absorbed.update(taken)
            operators.append(found)
    read = {name for operator in operators for name in operator.inputs} | {*network.outputs}
    kept = (o for o in operators if o.kind != "DequantizeLinear" or o.output in read)
    return compute_constant_reals(replace(network, operators=tuple(kept)))


def _integer_operator(operator: Operator, operands: Sequence[Operand], end: End) -> Operator:
    scales = tuple(scale for _, scale in operands)
    operator = replace(operator, inputs=tuple(name for name, _ in operands), output=end.output)
    low, high = (value if isfinite(value) else None for value in (end.low, end.high))
    given = end.scale
    moved = scales[:1] if operator.kind == "Gather" else scales
    if (
        operator.kind in MOVING
        and low is None
        and high is None
        and given is not None
        and given.axis is None
        and all(scale is not None and same_scale(scale, given) for scale in moved)
    ):
        # It gives the right integers without knowing their scales.
        return replace(operator, attributes=_integer_attributes(operator, given))
    quantisation = Quantisation(inputs=scales, output=given, low=low, high=high)
    return replace(operator, quantisation=quantisation)


def same_scale(a: Scale, b: Scale) -> bool:
    """Return whether integers mean the same real numbers in both."""
    return (
        a.dtype == b.dtype
        and a.axis == b.axis
        and np.array_equal(a.scale, b.scale)
        and np.array_equal(a.zero_point, b.zero_point)
    )


def _integer_attributes(operator: Operator, scale: Scale) -> Mapping[str, Attribute]:
    """Return the attributes for integers: Pad's value is the integer that stands for it."""
    if operator.kind != "Pad":
        return operator.attributes
    limits = np.iinfo(scale.dtype.name)
    value = np.rint(np.float32(operator.number("value")) / scale.scale[0]) + scale.zero_point[0]
    return {**operator.attributes, "value": int(np.clip(value, limits.min, limits.max))}


def transpose_integer_weights(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with ``Transpose(DequantizeLinear(w))`` as ``DequantizeLinear(w')``."""
    tensors = dict(network.tensors)
    reals: dict[str, Operator] = {}
    operators = []
    for operator in network.operators:
        source = reals.get(operator.inputs[0]) if operator.kind == "Transpose" else None
        if source is not None:
            operator = _transposed(operator, source, tensors)
        if _constant_of(operator, tensors) is not None:
            reals[operator.output] = operator
        operators.append(operator)
    return replace(network, operators=tuple(operators), tensors=tensors)


def compute_constant_reals(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with the result of every DequantizeLinear of a constant as a constant."""
    tensors = dict(network.tensors)
    operators = []
    for operator in network.operators:
        found = _constant_of(operator, tensors)
        if found is None or operator.output in network.outputs:
            operators.append(operator)
            continue
        source, scale = found
        result = tensors[operator.output]
        data = None if source.data is None else _reals(source.data, scale).astype(result.dtype)
        tensors[operator.output] = replace(result, data=data, shape_only=source.shape_only)
    return replace(network, operators=tuple(operators), tensors=tensors)


def _constant_of(operator: Operator, tensors: Mapping[str, Tensor]) -> tuple[Tensor, Scale] | None:
    """Return the constant that a DequantizeLinear reads, and its scale."""
    if operator.kind != "DequantizeLinear" or operator.quantisation is None:
        return None
    source, scale = tensors[operator.inputs[0]], operator.quantisation.inputs[0]
    return (source, scale) if scale is not None and _is_constant(source) else None


def _transposed(transpose: Operator, source: Operator, tensors: dict[str, Tensor]) -> Operator:
    """Return the DequantizeLinear of a transposed constant."""
    found = _constant_of(source, tensors)
    if found is None:
        return transpose
    (weight, scale), order = found, list(transpose.integers("perm"))
    name = f"{weight.name}/{transpose.name}"
    tensors[name] = replace(
        weight,
        name=name,
        shape=tuple(weight.shape[axis] for axis in order),
        data=None if weight.data is None else np.ascontiguousarray(weight.data.transpose(order)),
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
