"""What holds for every operator, on random cases against onnxruntime."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operators import elementwise, moves, products, reductions
from operators.claims import (
    boxes_equal_the_whole,
    every_face_of_what_is_read_matters,
    split_reductions_give_the_same,
    work_adds_up,
)
from operators.elementwise import ONE_INPUT, TWO_INPUTS, one_input, two_inputs
from operators.onnx_case import Case

READING = [*moves.STRATEGIES, *products.STRATEGIES, *reductions.STRATEGIES]
STRATEGIES = [*elementwise.STRATEGIES, *READING]

each_strategy = pytest.mark.parametrize("cases", STRATEGIES, ids=lambda cases: cases.__name__)
few = settings(max_examples=15, derandomize=True, deadline=None)
many = settings(
    max_examples=120, derandomize=True, deadline=None, suppress_health_check=[*HealthCheck]
)
Cases = Callable[[], st.SearchStrategy[Case]]


@pytest.mark.parametrize("kind", ONE_INPUT)
@settings(few, max_examples=5)
@given(draw=st.data())
def test_a_box_of_an_operator_of_one_input_equals_onnxruntime(
    kind: str, draw: st.DataObject
) -> None:
    boxes_equal_the_whole(draw.draw(one_input(kind)), draw)


@pytest.mark.parametrize("kind", TWO_INPUTS)
@settings(few, max_examples=8)
@given(draw=st.data())
def test_a_box_of_an_operator_of_two_inputs_equals_onnxruntime(
    kind: str, draw: st.DataObject
) -> None:
    boxes_equal_the_whole(draw.draw(two_inputs(kind)), draw)


@each_strategy
@few
@given(draw=st.data())
def test_a_box_equals_onnxruntime(cases: Cases, draw: st.DataObject) -> None:
    boxes_equal_the_whole(draw.draw(cases()), draw)


@pytest.mark.full
@each_strategy
@many
@given(draw=st.data())
def test_many_boxes_equal_onnxruntime(cases: Cases, draw: st.DataObject) -> None:
    boxes_equal_the_whole(draw.draw(cases()), draw)


@pytest.mark.parametrize("cases", READING, ids=lambda cases: cases.__name__)
@few
@given(draw=st.data())
def test_every_face_of_what_is_read_matters(cases: Cases, draw: st.DataObject) -> None:
    every_face_of_what_is_read_matters(draw.draw(cases()), draw)


@pytest.mark.parametrize("cases", products.STRATEGIES, ids=lambda cases: cases.__name__)
@few
@given(draw=st.data())
def test_macs_of_the_parts_are_those_of_the_whole(cases: Cases, draw: st.DataObject) -> None:
    work_adds_up(draw.draw(cases()), draw)


@pytest.mark.parametrize("cases", products.SPLIT, ids=lambda cases: cases.__name__)
@few
@given(draw=st.data())
def test_a_split_reduction_gives_the_same(cases: Cases, draw: st.DataObject) -> None:
    split_reductions_give_the_same(draw.draw(cases()), draw)


def test_halves_are_computed_in_float32_and_rounded_once() -> None:
    generator = np.random.default_rng(0)
    halves = [generator.normal(size=shape).astype(np.float16) for shape in ((4, 64), (64, 3))]
    case = Case(kind="MatMul", arrays=halves)
    found = case.compute(case.tensors(np.float16), ((0, 4), (0, 3)))
    wide = halves[0].astype(np.float32) @ halves[1].astype(np.float32)
    np.testing.assert_array_equal(found, wide.astype(np.float16))
