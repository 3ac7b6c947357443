"""Strategies of element-wise operators."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from operators.drawing import Draw, broadcast_partner, some_shape, values, whole_numbers
from operators.onnx_case import Case
from spmilp.frontend.operators.elementwise import BINARY, UNARY

ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "Celu": {"alpha": 1.5},
    "Elu": {"alpha": 0.7},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "LeakyRelu": {"alpha": 0.1},
    "Selu": {"alpha": 1.6, "gamma": 1.1},
    "Swish": {"alpha": 1.2},
    "ThresholdedRelu": {"alpha": 0.5},
}
POSITIVE = {"Log", "Sqrt", "Reciprocal"}
ONE_INPUT = sorted({*UNARY} - {"Cast", "Clip", "Gelu"})
TWO_INPUTS = sorted({*BINARY} - {"Mod", "PRelu"})


@st.composite
def one_input(draw: Draw, kind: str) -> Case:
    """Any shape; some of the elements are not finite where that matters."""
    data = values(draw, *some_shape(draw, 0, 3), low=0.1 if kind in POSITIVE else None)
    if kind in ("IsNaN", "IsInf"):
        data = np.where(data > 0.5, np.float32(np.nan if kind == "IsNaN" else np.inf), data)
    late, attributes = kind == "Swish", ATTRIBUTES.get(kind, {})
    arrays = [data > 0 if kind == "Not" else data]
    opset = 24 if late else 22
    return Case(kind=kind, arrays=arrays, attributes=attributes, opset=opset, reference=late)


@st.composite
def two_inputs(draw: Draw, kind: str) -> Case:
    """Either input broadcasts to the other."""
    shape = some_shape(draw, 0, 4)
    other = broadcast_partner(draw, shape)
    shapes = [shape, other] if draw(st.booleans()) else [other, shape]
    arrays = [values(draw, *one, low=0.2 if kind in ("Pow", "Div") else None) for one in shapes]
    if kind in ("And", "Or", "Xor"):
        arrays = [array > 0 for array in arrays]
    if kind in ("Equal", "GreaterOrEqual", "LessOrEqual"):
        arrays = [np.rint(array) for array in arrays]
    return Case(kind=kind, arrays=arrays)


@st.composite
def any_number(draw: Draw) -> Case:
    """One to four inputs that broadcast, and PRelu, whose slope does."""
    shape = some_shape(draw)
    kind = draw(st.sampled_from(["Sum", "Mean", "Max", "Min", "PRelu"]))
    count = 1 if kind == "PRelu" else draw(st.integers(0, 3))
    shapes = [shape, *(broadcast_partner(draw, shape) for _ in range(count))]
    return Case(kind=kind, arrays=[values(draw, *one) for one in shapes])


@st.composite
def where(draw: Draw) -> Case:
    """Condition and one side broadcast."""
    shape = some_shape(draw)
    shapes = [broadcast_partner(draw, shape), shape, broadcast_partner(draw, shape)]
    chosen, *sides = (values(draw, *one) for one in shapes)
    return Case(kind="Where", arrays=[chosen > 0, *sides])


@st.composite
def clip(draw: Draw) -> Case:
    """Any of the limits."""
    limits = draw(st.sampled_from([{"min": -0.5}, {"max": 0.5}, {"min": 0.0, "max": 6.0}, {}]))
    side = [None if name not in limits else np.float32(limits[name]) for name in ("min", "max")]
    while side and side[-1] is None:
        side.pop()
    return Case(
        kind="Clip",
        arrays=[values(draw, *some_shape(draw))],
        attributes=limits,
        onnx_attributes={},
        side_inputs=[None if one is None else np.asarray(one) for one in side],
    )


@st.composite
def gelu(draw: Draw) -> Case:
    """Both forms."""
    how = {"approximate": draw(st.sampled_from(["none", "tanh"]))}
    return Case(kind="Gelu", arrays=[values(draw, *some_shape(draw))], attributes=how)


@st.composite
def cast(draw: Draw) -> Case:
    """To the type of the output: float, bytes, integers, bool, half."""
    to = {"to": draw(st.sampled_from([1, 2, 6, 7, 9, 10]))}
    data = values(draw, *some_shape(draw), low=0.0) * 9
    return Case(kind="Cast", arrays=[data], onnx_attributes=to)


@st.composite
def integers(draw: Draw) -> Case:
    """Integers stay integers; the sign of Mod is what ``fmod`` says."""
    kind = draw(st.sampled_from(["Add", "Div", "Mul", "Sub", "Max", "Mod"]))
    dtype, how = np.int32, {}
    if kind == "Mod":
        how = {"fmod": draw(st.integers(0, 1))}
        dtype = draw(st.sampled_from([np.int32, np.float32])) if how["fmod"] else np.int32
    left = whole_numbers(draw, -50, 50, (4, 5), dtype)
    right = whole_numbers(draw, 1, 7, (5,), dtype) * dtype(draw(st.sampled_from([-1, 1])))
    return Case(kind=kind, arrays=[left, right], attributes=how)


STRATEGIES = [any_number, where, clip, gelu, cast, integers]
