"""Integer operators: exact against onnxruntime's integer kernels, one step from its float ones."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from operators.claims import boxes_of
from operators.drawing import Draw, values, whole_numbers
from operators.onnx_case import Array, run
from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.frontend.graph import Operator, Quantisation, Scale, Tensor
from spmilp.frontend.operators.boxes import slices, whole
from spmilp.frontend.operators.registry import family_of
from spmilp.units import Box


def scale_of(
    step: float | Array, zero: int = 0, dtype: Any = np.int8, axis: int | None = None
) -> Scale:
    """Return a scale for one tensor, or for each position of an axis."""
    steps = np.asarray(step, dtype=np.float32).reshape(-1)
    return Scale(
        scale=steps,
        zero_point=np.full(steps.shape, zero, dtype=np.int32),
        axis=axis,
        dtype=np.dtype(dtype),
    )


class Integers:
    """One quantised operator and its integer inputs."""

    def __init__(
        self,
        kind: str,
        arrays: list[Array],
        scales: list[Scale | None],
        output: Scale | None,
        attributes: dict[str, Any] | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        self.arrays = arrays
        self.operator = Operator(
            name="node",
            kind=kind,
            inputs=tuple(f"in{position}" for position in range(len(arrays))),
            output="out",
            attributes=attributes or {},
            quantisation=Quantisation(inputs=tuple(scales), output=output, low=low, high=high),
        )
        self.tensors = {
            name: Tensor(name=name, shape=array.shape, dtype=array.dtype)
            for name, array in zip(self.operator.inputs, arrays, strict=True)
        }
        self.family = family_of(kind)
        shape = self.family.output_shape(self.operator, list(self.tensors.values()))
        dtype = np.dtype(np.float32) if output is None else output.dtype
        self.tensors["out"] = Tensor(name="out", shape=shape, dtype=dtype)

    def pieces(self, boxes: tuple[Box | None, ...]) -> list[Array | None]:
        return [
            None if box is None else array[slices(box, (0,) * array.ndim)].copy()
            for array, box in zip(self.arrays, boxes, strict=True)
        ]

    def box(self, box: Box) -> Array:
        boxes = self.family.reads(self.operator, self.tensors, box)
        return compute(self.operator, self.tensors, self.pieces(boxes), boxes, box)

    def whole(self) -> Array:
        return self.box(whole(self.tensors["out"].shape))


def node_output(nodes: list[onnx.NodeProto], constants: dict[str, Array], data: Array) -> Array:
    """Run nodes from input ``x`` to ``out``, all else constant."""
    graph = helper.make_graph(
        nodes,
        "integers",
        [
            helper.make_tensor_value_info(
                "x", helper.np_dtype_to_tensor_dtype(data.dtype), data.shape
            )
        ],
        [onnx.ValueInfoProto(name="out")],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = helper.make_opsetid("", 21)
    return run(helper.make_model(graph, opset_imports=[opset], ir_version=10), {"x": data})


@st.composite
def convolution(draw: Draw) -> tuple[Integers, Array]:
    """A convolution of bytes with zero points, and what QLinearConv makes of it."""
    unsigned = draw(st.booleans())
    dtype, low, high = (np.uint8, 0, 256) if unsigned else (np.int8, -128, 128)
    group, depth, width = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    data = whole_numbers(draw, low, high, (1, group * depth, 6, 5), dtype)
    weight = whole_numbers(draw, -128, 128, (group * width, depth, 3, 2), np.int8)
    bias = whole_numbers(draw, -5000, 5000, (group * width,), np.int32)
    per_channel = draw(st.booleans())
    steps = values(draw, group * width, low=0.01) if per_channel else np.float32(0.02)
    zero, zero_out = draw(st.integers(low, high - 1)), draw(st.integers(low, high - 1))
    step, step_out = np.float32(0.037), np.float32(draw(st.sampled_from([0.3, 1.7, 9.1])))
    attributes = {
        "kernel_shape": (3, 2),
        "strides": (draw(st.integers(1, 2)), 1),
        "dilations": (1, 1),
        "pads": (1, 0, 1, 1),
        "group": group,
    }
    constants = {
        "x_scale": np.asarray(step),
        "x_zero": np.asarray(zero, dtype=dtype),
        "w": weight,
        "w_scale": np.asarray(steps),
        "w_zero": np.zeros(np.shape(steps), dtype=np.int8),
        "y_scale": np.asarray(step_out),
        "y_zero": np.asarray(zero_out, dtype=dtype),
        "b": bias,
    }
    node = helper.make_node("QLinearConv", ["x", *constants], ["out"], **attributes)
    mine = Integers(
        "Conv",
        [data, weight, bias],
        [
            scale_of(step, zero, dtype),
            scale_of(steps, 0, np.int8, 0 if per_channel else None),
            None,
        ],
        scale_of(step_out, zero_out, dtype),
        attributes,
    )
    return mine, node_output([node], constants, data)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(draw=st.data())
def test_a_convolution_equals_qlinearconv_bit_for_bit(draw: st.DataObject) -> None:
    mine, expected = draw.draw(convolution())
    box = draw.draw(boxes_of(expected.shape))
    np.testing.assert_array_equal(mine.box(box), expected[slices(box, (0,) * 4)])


@settings(max_examples=30, derandomize=True, deadline=None)
@given(draw=st.data())
def test_a_split_integer_reduction_changes_no_bit(draw: st.DataObject) -> None:
    mine, expected = draw.draw(convolution())
    length = mine.family.reduction(mine.operator, mine.tensors)
    box = draw.draw(boxes_of(expected.shape))
    total = None
    for start in range(length):
        part = (start, start + 1)
        boxes = mine.family.reads(mine.operator, mine.tensors, box, part)
        pieces = mine.pieces(boxes)
        total = partial(mine.operator, mine.tensors, pieces, boxes, box, total)
    assert total is not None
    assert total.dtype == np.int32
    result = complete(mine.operator, mine.tensors, pieces, boxes, box, total)
    np.testing.assert_array_equal(result, expected[slices(box, (0,) * 4)])


@settings(max_examples=30, derandomize=True, deadline=None)
@given(draw=st.data())
def test_a_product_equals_qlinearmatmul_bit_for_bit(draw: st.DataObject) -> None:
    left = whole_numbers(draw.draw, 0, 256, (2, 5, 7), np.uint8)
    right = whole_numbers(draw.draw, -128, 128, (7, 4), np.int8)
    zeros = [draw.draw(st.integers(0, 255)) for _ in range(2)]
    constants = {
        "x_scale": np.float32(0.02),
        "x_zero": np.uint8(zeros[0]),
        "w": right,
        "w_scale": np.float32(0.05),
        "w_zero": np.int8(3),
        "y_scale": np.float32(1.3),
        "y_zero": np.uint8(zeros[1]),
    }
    constants = {name: np.asarray(array) for name, array in constants.items()}
    node = helper.make_node("QLinearMatMul", ["x", *constants], ["out"])
    mine = Integers(
        "MatMul",
        [left, right],
        [scale_of(0.02, zeros[0], np.uint8), scale_of(0.05, 3)],
        scale_of(1.3, zeros[1], np.uint8),
    )
    np.testing.assert_array_equal(mine.whole(), node_output([node], constants, left))


def in_qdq_form(
    kind: str, arrays: list[Array], steps: list[float], step_out: float, **attributes: Any
) -> Array:
    """Run DequantizeLinear of every input, an operator, QuantizeLinear."""
    nodes, names = [], []
    constants: dict[str, Array] = {"step": np.asarray(step_out, dtype=np.float32)}
    constants["zero"] = np.zeros((), dtype=np.int8)
    for position, (array, step) in enumerate(zip(arrays, steps, strict=True)):
        source = "x" if position == 0 else f"q{position}"
        if position > 0:
            constants[source] = array
        constants[f"s{position}"] = np.asarray(step, dtype=np.float32)
        names.append(f"r{position}")
        nodes.append(
            helper.make_node("DequantizeLinear", [source, f"s{position}", "zero"], [names[-1]])
        )
    nodes.append(helper.make_node(kind, names, ["real"], **attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["real", "step", "zero"], ["out"]))
    return node_output(nodes, constants, arrays[0])


@pytest.mark.parametrize(
    ("kind", "count", "attributes"),
    [
        ("Add", 2, {}),
        ("Mul", 2, {}),
        ("Concat", 2, {"axis": 1}),
        ("Sigmoid", 1, {}),
        ("Softmax", 1, {"axis": 1}),
        ("GlobalAveragePool", 1, {}),
        (
            "AveragePool",
            1,
            {
                "kernel_shape": (2, 2),
                "strides": (2, 2),
                "dilations": (1, 1),
                "pads": (0, 0, 0, 0),
                "ceil_mode": 0,
                "count_include_pad": 0,
            },
        ),
    ],
)
@settings(max_examples=8, derandomize=True, deadline=None)
@given(draw=st.data())
def test_other_operators_work_on_reals_and_round(
    kind: str, count: int, attributes: dict[str, Any], draw: st.DataObject
) -> None:
    arrays = [whole_numbers(draw.draw, -128, 128, (2, 3, 4, 4), np.int8) for _ in range(count)]
    steps = [0.031, 0.017][:count]
    expected = in_qdq_form(kind, arrays, steps, 0.05, **attributes)
    mine = Integers(kind, arrays, list(map(scale_of, steps)), scale_of(0.05), attributes)
    apart = np.abs(mine.whole().astype(int) - expected.astype(int))
    assert apart.max() <= (0 if kind in ("Add", "Mul", "Concat") else 1)


@settings(max_examples=15, derandomize=True, deadline=None)
@given(draw=st.data())
def test_a_convolution_in_qdq_form_is_within_one_step(draw: st.DataObject) -> None:
    data = whole_numbers(draw.draw, -128, 128, (1, 8, 5, 5), np.int8)
    weight = whole_numbers(draw.draw, -128, 128, (4, 8, 3, 3), np.int8)
    attributes = {
        "kernel_shape": (3, 3),
        "strides": (1, 1),
        "dilations": (1, 1),
        "pads": (1, 1, 1, 1),
        "group": 1,
    }
    expected = in_qdq_form("Conv", [data, weight], [0.02, 0.01], 0.11, **attributes)
    scales = [scale_of(0.02), scale_of(0.01)]
    mine = Integers("Conv", [data, weight], [*scales], scale_of(0.11), attributes)
    assert np.abs(mine.whole().astype(int) - expected.astype(int)).max() <= 1


def test_limits_cut_the_real_result_before_it_is_rounded() -> None:
    data = np.array([[-50, -1, 0, 1, 40, 100]], dtype=np.int8)
    unit = np.eye(6, dtype=np.int8)
    scales = [scale_of(0.1), scale_of(1.0)]
    mine = Integers("MatMul", [data, unit], [*scales], scale_of(0.1, -10), low=0.0, high=6.0)
    np.testing.assert_array_equal(mine.whole(), [[-10, -10, -10, -9, 30, 50]])


def test_halves_round_to_even_and_what_is_beyond_the_type_saturates() -> None:
    data = np.array([[1, 3, 5, -1, 127, -128]], dtype=np.int8)
    scales = [scale_of(0.5), scale_of(1.0)]
    mine = Integers("MatMul", [data, np.eye(6, dtype=np.int8)], [*scales], scale_of(1.0, 100))
    np.testing.assert_array_equal(mine.whole(), [[100, 102, 102, 100, 127, 36]])


def test_sums_beyond_24_bits_are_exact() -> None:
    left = np.full((1, 4096), 255, dtype=np.uint8)
    left[0, 0] = 254
    right = np.full((4096, 1), 127, dtype=np.int8)
    mine = Integers("MatMul", [left, right], [scale_of(1, 0, np.uint8), scale_of(1)], scale_of(1))
    boxes = mine.family.reads(mine.operator, mine.tensors, ((0, 1), (0, 1)))
    total = partial(mine.operator, mine.tensors, mine.pieces(boxes), boxes, ((0, 1), (0, 1)))
    assert total[0, 0] == 4095 * 255 * 127 + 254 * 127


def test_the_borders_of_integer_parts_quantise_and_dequantise_per_channel() -> None:
    steps = np.array([0.1, 0.5], dtype=np.float32)
    scale = scale_of(steps, 2, np.int8, axis=1)
    reals = np.array([[1.0, 1.0], [-0.26, 200.0]], dtype=np.float32)
    integers = np.array([[12, 4], [-1, 127]], dtype=np.int8)
    down = Integers("QuantizeLinear", [reals], [None], scale)
    np.testing.assert_array_equal(down.whole(), integers)
    up = Integers("DequantizeLinear", [integers], [scale], None)
    np.testing.assert_array_equal(up.box(((0, 2), (1, 2))), [[1.0], [62.5]])
