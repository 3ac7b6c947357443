"""Element-wise operators against onnxruntime."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.claims import boxes_equal_the_whole
from operators.drawing import broadcast_partner, some_shape, values, whole_numbers
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
LOGICAL = {"And", "Or", "Xor"}
OWN_TESTS = {"Cast", "Clip", "Gelu", "Mod", "Not", "PRelu"}


@pytest.mark.parametrize("kind", sorted(set(UNARY) - OWN_TESTS))
@settings(max_examples=8, derandomize=True, deadline=None)
@given(draw=st.data())
def test_an_operator_of_one_input(kind: str, draw: st.DataObject) -> None:
    data = values(draw.draw, *some_shape(draw.draw, 0, 3), low=0.1 if kind in POSITIVE else None)
    if kind in ("IsNaN", "IsInf"):
        data = np.where(data > 0.5, np.float32(np.nan if kind == "IsNaN" else np.inf), data)
    late = kind == "Swish"
    case = Case(
        kind=kind,
        arrays=[data],
        attributes=ATTRIBUTES.get(kind, {}),
        opset=24 if late else 22,
        reference=late,
    )
    boxes_equal_the_whole(case, draw)


@pytest.mark.parametrize("kind", sorted(set(BINARY) - OWN_TESTS))
@settings(max_examples=12, derandomize=True, deadline=None)
@given(draw=st.data())
def test_an_operator_of_two_broadcast_inputs(kind: str, draw: st.DataObject) -> None:
    shape = some_shape(draw.draw, 0, 4)
    other = broadcast_partner(draw.draw, shape)
    shapes = [shape, other] if draw.draw(st.booleans()) else [other, shape]
    arrays = [
        values(draw.draw, *one, low=0.2 if kind in ("Pow", "Div") else None) for one in shapes
    ]
    if kind in LOGICAL:
        arrays = [array > 0 for array in arrays]
    if kind in ("Equal", "GreaterOrEqual", "LessOrEqual"):
        arrays = [np.rint(array) for array in arrays]
    boxes_equal_the_whole(Case(kind=kind, arrays=arrays), draw)


@settings(max_examples=20, derandomize=True, deadline=None)
@given(draw=st.data())
def test_the_slope_of_prelu_broadcasts(draw: st.DataObject) -> None:
    shape = some_shape(draw.draw, 1, 4)
    slope = broadcast_partner(draw.draw, shape)
    arrays = [values(draw.draw, *shape), values(draw.draw, *slope)]
    boxes_equal_the_whole(Case(kind="PRelu", arrays=arrays), draw)


@pytest.mark.parametrize("kind", ["Sum", "Mean", "Max", "Min"])
@settings(max_examples=15, derandomize=True, deadline=None)
@given(draw=st.data())
def test_any_number_of_inputs(kind: str, draw: st.DataObject) -> None:
    shape = some_shape(draw.draw)
    others = [broadcast_partner(draw.draw, shape) for _ in range(draw.draw(st.integers(0, 3)))]
    arrays = [values(draw.draw, *one) for one in (*others, shape)]
    boxes_equal_the_whole(Case(kind=kind, arrays=arrays), draw)


@settings(max_examples=20, derandomize=True, deadline=None)
@given(draw=st.data())
def test_where_chooses_with_broadcast_inputs(draw: st.DataObject) -> None:
    shape = some_shape(draw.draw)
    chosen = values(draw.draw, *broadcast_partner(draw.draw, shape)) > 0
    arrays = [
        chosen,
        values(draw.draw, *shape),
        values(draw.draw, *broadcast_partner(draw.draw, shape)),
    ]
    boxes_equal_the_whole(Case(kind="Where", arrays=arrays), draw)


@pytest.mark.parametrize("limits", [{"min": -0.5}, {"max": 0.5}, {"min": 0.0, "max": 6.0}, {}])
@settings(max_examples=5, derandomize=True, deadline=None)
@given(draw=st.data())
def test_clip_has_any_of_its_limits(limits: dict[str, float], draw: st.DataObject) -> None:
    side = [
        None if name not in limits else np.asarray(limits[name], dtype=np.float32)
        for name in ("min", "max")
    ]
    while side and side[-1] is None:
        side.pop()
    data = values(draw.draw, *some_shape(draw.draw))
    case = Case(kind="Clip", arrays=[data], attributes=limits, onnx_attributes={}, side_inputs=side)
    boxes_equal_the_whole(case, draw)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@settings(max_examples=8, derandomize=True, deadline=None)
@given(draw=st.data())
def test_gelu_in_both_forms(approximate: str, draw: st.DataObject) -> None:
    data = values(draw.draw, *some_shape(draw.draw))
    case = Case(kind="Gelu", arrays=[data], attributes={"approximate": approximate})
    boxes_equal_the_whole(case, draw)


@pytest.mark.parametrize("target", ["float32", "int32", "int64", "uint8", "bool", "float16"])
@settings(max_examples=5, derandomize=True, deadline=None)
@given(draw=st.data())
def test_cast_converts_to_the_type_of_the_output(target: str, draw: st.DataObject) -> None:
    data = values(draw.draw, *some_shape(draw.draw), low=0.0) * 9
    to = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9, "float16": 10}[target]
    case = Case(kind="Cast", arrays=[data], onnx_attributes={"to": to})
    boxes_equal_the_whole(case, draw)


@settings(max_examples=5, derandomize=True, deadline=None)
@given(draw=st.data())
def test_not_negates(draw: st.DataObject) -> None:
    boxes_equal_the_whole(Case(kind="Not", arrays=[values(draw.draw, 3, 4) > 0]), draw)


@pytest.mark.parametrize(("fmod", "dtype"), [(0, np.int32), (1, np.int32), (1, np.float32)])
@settings(max_examples=8, derandomize=True, deadline=None)
@given(draw=st.data())
def test_mod_has_the_sign_that_fmod_says(fmod: int, dtype: Any, draw: st.DataObject) -> None:
    left = whole_numbers(draw.draw, -50, 50, (4, 5), dtype)
    right = whole_numbers(draw.draw, 1, 7, (5,), dtype) * dtype(draw.draw(st.sampled_from([-1, 1])))
    case = Case(kind="Mod", arrays=[left, right], attributes={"fmod": fmod})
    boxes_equal_the_whole(case, draw)


@pytest.mark.parametrize("kind", ["Add", "Div", "Mul", "Sub", "Max"])
@settings(max_examples=8, derandomize=True, deadline=None)
@given(draw=st.data())
def test_integers_stay_integers(kind: str, draw: st.DataObject) -> None:
    left = whole_numbers(draw.draw, -50, 50, (4, 5), np.int32)
    right = whole_numbers(draw.draw, 1, 7, (5,), np.int32)
    boxes_equal_the_whole(Case(kind=kind, arrays=[left, right]), draw)
