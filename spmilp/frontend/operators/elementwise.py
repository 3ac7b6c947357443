"""Element-wise operators: one output element from the same, or a broadcast, element of each input.

Attributes, where a kind has any (numbers unless stated):

- Clip: ``min``, ``max``, each left out when there is no such limit
- LeakyRelu, Elu, Celu, ThresholdedRelu, Swish: ``alpha``
- Selu: ``alpha``, ``gamma``; HardSigmoid: ``alpha``, ``beta``
- Gelu: ``approximate``, ``"none"`` or ``"tanh"``
- Mod: ``fmod``, 0 or 1
- Cast: none; the type is the output tensor's

Sum, Max, Min and Mean take any number of inputs. Where takes condition, X, Y. PRelu's slope
broadcasts like any input. Identity is a copy (a network output that no operator computes).
"""

from collections.abc import Mapping

import numpy as np

from spmilp.frontend.operators.boxes import broadcast_box, volume
from spmilp.frontend.operators.geometry import (
    DIVISION,
    ERROR_FUNCTION,
    EXPONENTIAL,
    Fusion,
    Geometry,
    Part,
    Reads,
)
from spmilp.units import Box, Extents

_SIGMOID = EXPONENTIAL + 1 + DIVISION

UNARY: Mapping[str, int] = {
    **dict.fromkeys(
        ("Abs", "Cast", "Ceil", "Floor", "Identity", "IsInf", "IsNaN", "Neg", "Not"), 1
    ),
    **dict.fromkeys(("Relu", "Round", "Sign"), 1),
    **dict.fromkeys(("Clip", "LeakyRelu", "ThresholdedRelu"), 2),
    **dict.fromkeys(("Reciprocal", "Sqrt"), DIVISION),
    **dict.fromkeys(("Cos", "Exp", "Log", "Sin"), EXPONENTIAL),
    **dict.fromkeys(("Sigmoid", "Tanh"), _SIGMOID),
    "Celu": EXPONENTIAL + DIVISION + 4,
    "Elu": EXPONENTIAL + 3,
    "Erf": ERROR_FUNCTION,
    "Gelu": ERROR_FUNCTION + 4,
    "HardSigmoid": 4,
    "HardSwish": 5,
    "Mish": 2 * EXPONENTIAL + _SIGMOID + 2,
    "Selu": EXPONENTIAL + 4,
    "Softplus": 2 * EXPONENTIAL + 1,
    "Softsign": DIVISION + 2,
    "Swish": _SIGMOID + 2,
    "Tan": 2 * EXPONENTIAL + DIVISION,
}
"""Kinds with one input: element operations per output element."""

BINARY: Mapping[str, int] = {
    **dict.fromkeys(("Add", "And", "Equal", "Greater", "GreaterOrEqual", "Less"), 1),
    **dict.fromkeys(("LessOrEqual", "Mul", "Or", "Sub", "Xor"), 1),
    "Div": DIVISION,
    "Mod": DIVISION + 2,
    "PRelu": 2,
    "Pow": 2 * EXPONENTIAL,
}
"""Kinds with two inputs: element operations per output element."""

VARIADIC = frozenset({"Max", "Mean", "Min", "Sum"})
"""Kinds with any number of inputs: one operation per output element and further input."""

INPUTS = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2), "Where": 3}

EACH: Mapping[str, int] = {**UNARY, **BINARY, "Where": 2}
"""Element operations per output element of kinds with one to three inputs."""


class Elementwise(Geometry):
    """All of them; the table above has their costs and the module's docstring their attributes."""

    kinds = frozenset({*EACH, *VARIADIC})
    fusion = Fusion.ELEMENTWISE

    def prepare(self, first: Extents) -> Extents:
        count = len(self.inputs)
        expected = INPUTS.get(self.operator.kind, count)
        if None in self.inputs:
            raise ValueError(f"input {self.inputs.index(None)} of {self.operator.kind} is left out")
        if count != expected:
            raise ValueError(f"{count} inputs, expected {expected}")
        return np.broadcast_shapes(*(shape for shape in self.inputs if shape is not None))

    def reads(self, box: Box, part: Part = None) -> Reads:
        return tuple([None if one is None else broadcast_box(one, box) for one in self.inputs])

    def count(self, box: Box, reads: Reads) -> int:
        kind = self.operator.kind
        further = max(1, len(self.inputs) - 1) + DIVISION * (kind == "Mean")
        return EACH.get(kind, further) * volume(box)


class Quantise(Geometry):
    """QuantizeLinear, DequantizeLinear.

    Input: X alone. Scale and zero point are constants in ``operator.quantisation``: for
    QuantizeLinear ``Quantisation(inputs=(None,), output=Scale(...))``, for DequantizeLinear
    ``Quantisation(inputs=(Scale(...),), output=None)``. No attributes.

    Costs 3 per element of QuantizeLinear (multiply, round, clamp), 2 of DequantizeLinear.
    """

    kinds = frozenset({"QuantizeLinear", "DequantizeLinear"})
    fusion = Fusion.ELEMENTWISE

    def prepare(self, data: Extents) -> Extents:
        given, scale = self.operator.quantisation, None
        if given is not None:
            scale = given.output if self.operator.kind == "QuantizeLinear" else given.inputs[0]
        if scale is None:
            raise ValueError("scale and zero point are not constant")
        if scale.axis is not None and data[scale.axis] != scale.scale.size:
            raise ValueError(
                f"{scale.scale.size} scales for {data[scale.axis]} positions of axis {scale.axis}"
            )
        return data

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (box,)

    def count(self, box: Box, reads: Reads) -> int:
        return 0


FAMILIES = Elementwise, Quantise
