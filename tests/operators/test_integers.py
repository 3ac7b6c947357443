"""Integer operators: exact against onnxruntime's integer kernels, one step from its float ones."""

from typing import Any

import numpy as np

from operators.onnx_case import Array, Case, geometry_of
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import partial
from spmilp.frontend.graph import Quantisation, Scale
from spmilp.frontend.operators.boxes import whole


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


def quantised(
    kind: str,
    arrays: list[Array],
    scales: list[Scale | None],
    output: Scale | None,
    low: float | None = None,
    high: float | None = None,
) -> tuple[Case, Array]:
    """Return a quantised operator and its whole result."""
    quantisation = Quantisation(inputs=tuple(scales), output=output, low=low, high=high)
    case = Case(kind=kind, arrays=arrays, quantisation=quantisation)
    tensors = case.tensors(np.float32 if output is None else output.dtype)
    return case, case.compute(tensors, whole(tensors["out"].shape))


def test_limits_cut_the_real_result_before_it_is_rounded() -> None:
    data = np.array([[-50, -1, 0, 1, 40, 100]], dtype=np.int8)
    unit = np.eye(6, dtype=np.int8)
    scales = [scale_of(0.1), scale_of(1.0)]
    _, mine = quantised("MatMul", [data, unit], [*scales], scale_of(0.1, -10), low=0.0, high=6.0)
    np.testing.assert_array_equal(mine, [[-10, -10, -10, -9, 30, 50]])


def test_halves_round_to_even_and_what_is_beyond_the_type_saturates() -> None:
    data = np.array([[1, 3, 5, -1, 127, -128]], dtype=np.int8)
    scales = [scale_of(0.5), scale_of(1.0)]
    _, mine = quantised("MatMul", [data, np.eye(6, dtype=np.int8)], [*scales], scale_of(1.0, 100))
    np.testing.assert_array_equal(mine, [[100, 102, 102, 100, 127, 36]])


def test_sums_beyond_24_bits_are_exact() -> None:
    left = np.full((1, 4096), 255, dtype=np.uint8)
    left[0, 0] = 254
    right = np.full((4096, 1), 127, dtype=np.int8)
    scales = [scale_of(1, 0, np.uint8), scale_of(1)]
    case, _ = quantised("MatMul", [left, right], [*scales], scale_of(1))
    operator, tensors, box = case.operator(), case.tensors(np.int8), ((0, 1), (0, 1))
    boxes = geometry_of(operator, tensors).reads(box)
    total = partial(Call(operator, tensors, case.pieces(boxes), boxes, box))
    assert total[0, 0] == 4095 * 255 * 127 + 254 * 127


def test_the_borders_of_integer_parts_quantise_and_dequantise_per_channel() -> None:
    steps = np.array([0.1, 0.5], dtype=np.float32)
    scale = scale_of(steps, 2, np.int8, axis=1)
    reals = np.array([[1.0, 1.0], [-0.26, 200.0]], dtype=np.float32)
    integers = np.array([[12, 4], [-1, 127]], dtype=np.int8)
    _, down = quantised("QuantizeLinear", [reals], [None], scale)
    np.testing.assert_array_equal(down, integers)
    _, up = quantised("DequantizeLinear", [integers], [scale], None)
    np.testing.assert_array_equal(up[:, 1:], [[1.0], [62.5]])
