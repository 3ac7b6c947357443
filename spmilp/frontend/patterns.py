"""Recognises where a network works on integers that stand for reals."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np

from spmilp.frontend.graph import Operator, Scale, Tensor
from spmilp.frontend.unfused import UnfusedNetwork

WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators that add up products; without QuantizeLinear after them they write floats."""

LIMITING = frozenset({"Clip", "Relu"})
BORDER = frozenset({"DequantizeLinear", "QuantizeLinear"})

Operand: TypeAlias = tuple[str, Scale | None]
"""An integer tensor and its scale; another tensor and ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Operators that become one integer operator.

    Parameters
    ----------
    operands
        One for each input of ``operator``.
    output, scale
        The tensor it will write; ``None`` for floats.
    low, high
        Limits that a Relu or Clip sets, infinite without one.
    absorbed
        Outputs of the operators taken in: Relu, Clip, QuantizeLinear.
    """

    operator: Operator
    operands: tuple[Operand, ...]
    output: str
    scale: Scale | None
    low: float = -inf
    high: float = inf
    absorbed: frozenset[str] = frozenset()


class PatternFinder:
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

    def pattern(self, operator: Operator) -> Pattern | None:
        """Return the pattern that begins with an operator, if there is one."""
        operands = tuple(self._reals.get(name, (name, None)) for name in operator.inputs)
        if operator.kind == "DequantizeLinear" or all(scale is None for _, scale in operands):
            return None
        if operator.kind == "QuantizeLinear":
            return self._rescaling(operator, operands)
        if operator.kind not in WEIGHTED:
            fits = all(scale is not None or self._may_stay(name) for name, scale in operands)
            return self._up_to_quantisation(operator, operands) if fits else None
        if not self._products_fit(operator, operands):
            return None
        operands = (*operands[:2], *self._bias(operator, operands))
        floats = Pattern(operator=operator, operands=operands, output=operator.output, scale=None)
        return self._up_to_quantisation(operator, operands) or floats

    def _rescaling(self, operator: Operator, operands: tuple[Operand, ...]) -> Pattern | None:
        """DequantizeLinear and QuantizeLinear with nothing between them: a copy that rescales."""
        if operator.quantisation is None:
            return None
        copy = Operator(
            name=operator.name, kind="Identity", inputs=operator.inputs, output=operator.output
        )
        return Pattern(
            operator=copy,
            operands=operands,
            output=operator.output,
            scale=operator.quantisation.output,
        )

    def _may_stay(self, name: str) -> bool:
        """Return whether an operand without scale may stay: left out, constant, or integer."""
        return (
            not name
            or _is_constant(self._tensors[name])
            or np.issubdtype(self._tensors[name].dtype, np.integer)
        )

    def _products_fit(self, operator: Operator, operands: tuple[Operand, ...]) -> bool:
        """Return whether products and bias of an operator can be added up as integers."""
        if operator.attributes.get("alpha", 1.0) != 1 or operator.attributes.get("beta", 1.0) != 1:
            return False
        (_, left), (_, right) = operands[:2]
        if left is None or right is None or left.axis is not None:
            return False
        if max(left.dtype.itemsize, right.dtype.itemsize) > 1:
            return False
        return all(not name or _is_constant(self._tensors[name]) for name, _ in operands[2:])

    def _bias(self, operator: Operator, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Return the bias as integers if they count steps of the sums, else as the reals it is."""
        (_, left), (_, right) = operands[:2]
        if len(operands) < 3 or left is None or right is None:
            return ()
        name, scale = operands[2]
        if scale is None or (
            scale.dtype == np.int32
            and not scale.zero_point.any()
            and np.allclose(scale.scale, left.scale * right.scale, rtol=1e-5, atol=0)
        ):
            return ((name, scale),)
        return ((operator.inputs[2], None),)

    def _up_to_quantisation(
        self, operator: Operator, operands: tuple[Operand, ...]
    ) -> Pattern | None:
        """Return the pattern that ends with the QuantizeLinear behind an operator."""
        low, high = -inf, inf
        absorbed: list[str] = []
        last = operator
        while True:
            following = self._only_reader(last.output)
            if following is None:
                return None
            absorbed.append(following.output)
            if following.kind == "QuantizeLinear":
                break
            if following.kind not in LIMITING:
                return None
            low, high = (_limited(value, following) for value in (low, high))
            last = following
        scale = None if following.quantisation is None else following.quantisation.output
        if scale is None or (scale.axis is not None and operator.kind in WEIGHTED):
            return None
        return Pattern(
            operator=operator,
            operands=operands,
            output=following.output,
            scale=scale,
            low=low,
            high=high,
            absorbed=frozenset(absorbed),
        )

    def _only_reader(self, name: str) -> Operator | None:
        readers = self._consumers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self._outputs else None


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
