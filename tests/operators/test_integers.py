"""Integer operators: exact against onnxruntime's integer kernels, one step from its float ones."""

from typing import Any

import numpy as np

from operators.onnx_case import Array
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import compute, partial
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
        return compute(Call(self.operator, self.tensors, self.pieces(boxes), boxes, box))

    def whole(self) -> Array:
        return self.box(whole(self.tensors["out"].shape))


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
    total = partial(Call(mine.operator, mine.tensors, mine.pieces(boxes), boxes, ((0, 1), (0, 1))))
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
