"""Convolutions and matrix products against onnxruntime."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.claims import (
    boxes_equal_the_whole,
    every_face_of_what_is_read_matters,
    split_reductions_give_the_same,
    work_adds_up,
)
from operators.drawing import Draw, broadcast_partner, values, whole_numbers
from operators.onnx_case import Case


@st.composite
def conv(draw: Draw) -> Case:
    """Any groups, strides, dilations and pads, in one to three dimensions."""
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    group = draw(st.sampled_from([1, 1, 2, 3]))
    depth, width = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilations = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    pads = tuple(draw(st.integers(0, 2)) for _ in range(2 * rank))
    spatial = [
        (k - 1) * d + draw(st.integers(1, 6)) for k, d in zip(kernel, dilations, strict=True)
    ]
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": group,
    }
    data = values(draw, draw(st.integers(1, 2)), group * depth, *spatial)
    arrays = [data, values(draw, group * width, depth, *kernel)]
    if draw(st.booleans()):
        arrays.append(values(draw, group * width))
    return Case(kind="Conv", arrays=arrays, attributes=attributes, tight=(0, 2))


@st.composite
def depthwise(draw: Draw) -> Case:
    """As many groups as channels, with one or two outputs each."""
    channels, multiple = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    attributes = {
        "kernel_shape": (3, 3),
        "strides": (draw(st.integers(1, 2)),) * 2,
        "dilations": (1, 1),
        "pads": (1, 1, 1, 1),
        "group": channels,
    }
    data = values(draw, 1, channels, draw(st.integers(3, 7)), draw(st.integers(3, 7)))
    weight = values(draw, channels * multiple, 1, 3, 3)
    bias = values(draw, channels * multiple)
    return Case(kind="Conv", arrays=[data, weight, bias], attributes=attributes, tight=(0, 2))


@st.composite
def conv_transpose(draw: Draw) -> Case:
    """Any groups, strides, dilations, pads and output padding."""
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    group = draw(st.sampled_from([1, 1, 2]))
    depth, width = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilations = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    extra = tuple(draw(st.integers(0, s - 1)) for s in strides)
    spatial, pads = [], []
    for k, s, d, e in zip(kernel, strides, dilations, extra, strict=True):
        length = draw(st.integers(1, 5))
        room = (length - 1) * s + (k - 1) * d + e
        pads.append(draw(st.integers(0, min(2, room))))
        spatial.append(length)
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": (*pads, *(0 for _ in pads)),
        "output_padding": extra,
        "group": group,
    }
    arrays = [
        values(draw, 1, group * depth, *spatial),
        values(draw, group * depth, width, *kernel),
    ]
    if draw(st.booleans()):
        arrays.append(values(draw, group * width))
    return Case(kind="ConvTranspose", arrays=arrays, attributes=attributes, tight=(0, 2))


@st.composite
def gemm(draw: Draw) -> Case:
    """Any transposition, scale and broadcast C."""
    rows, inner, columns = (draw(st.integers(1, 6)) for _ in range(3))
    flip, flop = draw(st.integers(0, 1)), draw(st.integers(0, 1))
    attributes = {
        "transA": flip,
        "transB": flop,
        "alpha": draw(st.sampled_from([1.0, 0.5])),
        "beta": draw(st.sampled_from([1.0, 2.0])),
    }
    left, right = values(draw, rows, inner), values(draw, inner, columns)
    arrays = [left.T.copy() if flip else left, right.T.copy() if flop else right]
    if draw(st.booleans()):
        arrays.append(values(draw, *broadcast_partner(draw, (rows, columns))))
    return Case(kind="Gemm", arrays=arrays, attributes=attributes)


@st.composite
def matmul(draw: Draw) -> Case:
    """Batched, broadcast, and one-dimensional operands."""
    rows, inner, columns = (draw(st.integers(1, 5)) for _ in range(3))
    form = draw(st.sampled_from(["batched", "batched", "vector left", "vector right", "dot"]))
    batch = tuple(draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2))))
    left = (*broadcast_partner(draw, batch), rows, inner)
    right = (*batch, inner, columns)
    if form == "dot":
        left, right = (inner,), (inner,)
    elif form == "vector left":
        left = (inner,)
    elif form == "vector right":
        left, right = (*batch, rows, inner), (inner,)
    return Case(kind="MatMul", arrays=[values(draw, *left), values(draw, *right)])


@st.composite
def einsum(draw: Draw) -> Case:
    """Products over named axes."""
    equation = draw(st.sampled_from(["bhid,bhjd->bhij", "ij,jk->ki", "abc->ca", "i,j,k->kij"]))
    lengths = {letter: draw(st.integers(1, 4)) for letter in "abcdhijk"}
    arrays = [
        values(draw, *(lengths[letter] for letter in term))
        for term in equation.split("->")[0].split(",")
    ]
    return Case(kind="Einsum", arrays=arrays, attributes={"equation": equation})


@st.composite
def integer_conv(draw: Draw) -> Case:
    """Bytes with one zero point each, and one per output channel of the weight."""
    plain = draw(conv())
    (data, weight), dtype = plain.arrays[:2], draw(st.sampled_from([np.int8, np.uint8]))
    low = int(np.iinfo(dtype).min)
    count = draw(st.integers(0, 2))
    zeros = [
        whole_numbers(draw, low, low + 256, (), dtype),
        whole_numbers(draw, -9, 9, (), np.int8),
    ]
    return Case(
        kind="ConvInteger",
        arrays=[
            whole_numbers(draw, low, low + 256, data.shape, dtype),
            whole_numbers(draw, -128, 128, weight.shape, np.int8),
            *zeros[:count],
        ],
        attributes=plain.attributes,
        tight=(),
    )


@st.composite
def integer_matmul(draw: Draw) -> Case:
    """Bytes with one zero point each, or one per column of the second operand."""
    rows, inner, columns = (draw(st.integers(1, 5)) for _ in range(3))
    batch = tuple(draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2))))
    left_type, right_type = (draw(st.sampled_from([np.int8, np.uint8])) for _ in range(2))
    count = draw(st.integers(0, 2))
    shape = draw(st.sampled_from([(), (columns,)]))
    zeros = [
        whole_numbers(draw, 0, 100, (), left_type),
        whole_numbers(draw, 0, 100, shape, right_type),
    ]
    return Case(
        kind="MatMulInteger",
        arrays=[
            whole_numbers(draw, 0, 128, (*batch, rows, inner), left_type),
            whole_numbers(draw, 0, 128, (inner, columns), right_type),
            *zeros[:count],
        ],
        tight=(),
    )


STRATEGIES = [
    conv,
    depthwise,
    conv_transpose,
    gemm,
    matmul,
    einsum,
    integer_conv,
    integer_matmul,
]
SPLIT = [conv, gemm, matmul, integer_conv, integer_matmul]


@pytest.mark.parametrize("cases", STRATEGIES, ids=lambda cases: cases.__name__)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(draw=st.data())
def test_a_box_equals_onnxruntime(
    cases: Callable[[], st.SearchStrategy[Case]], draw: st.DataObject
) -> None:
    boxes_equal_the_whole(draw.draw(cases()), draw)


@pytest.mark.parametrize("cases", STRATEGIES, ids=lambda cases: cases.__name__)
@settings(max_examples=30, derandomize=True, deadline=None)
@given(draw=st.data())
def test_every_face_of_what_is_read_matters(
    cases: Callable[[], st.SearchStrategy[Case]], draw: st.DataObject
) -> None:
    every_face_of_what_is_read_matters(draw.draw(cases()), draw)


@pytest.mark.parametrize("cases", STRATEGIES, ids=lambda cases: cases.__name__)
@settings(max_examples=40, derandomize=True, deadline=None)
@given(draw=st.data())
def test_macs_of_the_parts_are_those_of_the_whole(
    cases: Callable[[], st.SearchStrategy[Case]], draw: st.DataObject
) -> None:
    work_adds_up(draw.draw(cases()), draw)


@pytest.mark.parametrize("cases", SPLIT, ids=lambda cases: cases.__name__)
@settings(max_examples=40, derandomize=True, deadline=None)
@given(draw=st.data())
def test_a_split_reduction_gives_the_same(
    cases: Callable[[], st.SearchStrategy[Case]], draw: st.DataObject
) -> None:
    split_reductions_give_the_same(draw.draw(cases()), draw)


def test_halves_are_computed_in_float32_and_rounded_once() -> None:
    generator = np.random.default_rng(0)
    halves = [generator.normal(size=shape).astype(np.float16) for shape in ((4, 64), (64, 3))]
    case = Case(kind="MatMul", arrays=halves)
    found = case.compute(case.tensors(np.float16), ((0, 4), (0, 3)))
    wide = halves[0].astype(np.float32) @ halves[1].astype(np.float32)
    np.testing.assert_array_equal(found, wide.astype(np.float16))
