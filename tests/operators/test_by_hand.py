"""Shapes, reads, work and integers of operators, against numbers worked out by hand."""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import compute, partial
from spmilp.frontend.graph import Operator, Quantisation, Scale, Tensor
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.geometry import Geometry
from spmilp.frontend.operators.registry import family_of
from spmilp.units import Box, Extents
from tests.frontend.running import Array


def geometry_of(
    kind: str,
    shapes: list[Extents],
    attributes: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    quantisation: Quantisation | None = None,
) -> Geometry:
    """Return the geometry of an operator on tensors ``in0``, ``in1`` and so on."""
    inputs = [
        Tensor(name=f"in{at}", shape=shape, dtype=np.dtype(dtype))
        for at, shape in enumerate(shapes)
    ]
    operator = Operator(
        name="node",
        kind=kind,
        inputs=tuple(tensor.name for tensor in inputs),
        output="out",
        attributes=attributes or {},
        quantisation=quantisation,
    )
    return family_of(kind)(operator, inputs)


def window(kernel: int, stride: int, pad: int, group: int = 1) -> dict[str, Any]:
    """Return the attributes of a square two-dimensional convolution."""
    sides = {"kernel_shape": kernel, "strides": stride, "dilations": 1}
    return {name: (n, n) for name, n in sides.items()} | {"pads": (pad,) * 4, "group": group}


def loops_of(own: Geometry, box: Box | None = None, part: tuple[int, int] | None = None) -> Any:
    return dict(own.work(box or whole(own.shape), part).loops)


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes", "reason"),
    [
        ("Conv", [(1, 3, 8, 8), (4, 2, 3, 3)], window(3, 1, 0), "3 input and 4 output"),
        ("Conv", [(1, 2, 2, 8), (4, 2, 3, 3)], window(3, 1, 0), "window of 3 .* exceeds"),
        ("Conv", [(1, 2, 8, 8), (4, 2, 3, 3)], {"group": 1}, "kernel_shape of Conv is None"),
        ("MatMul", [(2, 3), (4, 5)], {}, "inner lengths 3 and 4"),
        ("Add", [(2, 3), (2, 4)], {}, "shape mismatch"),
        ("Add", [(2, 3)], {}, "1 inputs, expected 2"),
        ("Softmax", [(2, 3)], {"axis": 2}, "axis is 2, expected 0 to 1"),
        ("Reshape", [(2, 3)], {"shape": (4,)}, "cannot be reshaped"),
        ("Transpose", [(2, 3)], {"perm": (0, 0)}, "no permutation"),
        ("Gather", [(2, 3)], {"axis": 1, "indices": (3,), "indices_shape": ()}, "for an axis of 3"),
        ("Slice", [(4,)], {"starts": (2,), "ends": (2,), "axes": (0,), "steps": (1,)}, "empty"),
        ("Einsum", [(2, 2)], {"equation": "ii->i"}, "not of the form"),
        ("QuantizeLinear", [(2,)], {}, "not constant"),
    ],
)
def test_what_cannot_be_lowered_says_why(
    kind: str, shapes: list[Extents], attributes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        geometry_of(kind, shapes, attributes)


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 2, 1), (4, 2, 1), (2, 3, 0), (3, 1, 2)])
def test_macs_of_a_transposed_convolution_are_counted_pair_by_pair(
    kernel: int, stride: int, pad: int
) -> None:
    attributes = window(kernel, stride, pad) | {"output_padding": (0, 0)}
    own = geometry_of("ConvTranspose", [(1, 2, 5, 5), (2, 3, kernel, kernel)], attributes)
    positions = product(range(5), range(kernel))
    pairs = sum(0 <= i * stride - pad + k < own.shape[2] for i, k in positions)
    assert prod(loops_of(own).values()) == pairs * pairs * 2 * 3


def test_a_product_with_shared_weights_has_a_batch_and_with_own_ones_has_groups() -> None:
    shared = geometry_of("MatMul", [(2, 12, 64, 32), (32, 16)])
    assert loops_of(shared) == {"B": 24, "G": 1, "X": 64, "K": 16, "C": 32}
    own = geometry_of("MatMul", [(2, 12, 64, 32), (12, 32, 16)])
    assert loops_of(own) == {"B": 2, "G": 12, "X": 64, "K": 16, "C": 32}
    part = loops_of(own, ((0, 1), (0, 6), (0, 64), (0, 8)), (0, 8))
    assert part == {"B": 1, "G": 6, "X": 64, "K": 8, "C": 8}


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes", "vector"),
    [
        ("Add", [(2, 5), (5,)], {}, 10),
        ("Div", [(2, 5), (5,)], {}, 40),
        ("Sum", [(2, 5)] * 4, {}, 30),
        ("Relu", [(2, 5)], {}, 10),
        ("Sigmoid", [(2, 5)], {}, 90),
        ("Softmax", [(2, 5)], {"axis": 1}, 110),
        ("Reshape", [(2, 5)], {"shape": (10,)}, 0),
        ("Concat", [(2, 5), (2, 5)], {"axis": 0}, 0),
        ("Transpose", [(2, 5)], {"perm": (1, 0)}, 10),
        ("GlobalAveragePool", [(1, 3, 4, 4)], {}, 60),
        ("ReduceSum", [(2, 5)], {"axes": (1,), "keepdims": 0}, 10),
    ],
)
def test_vector_work(
    kind: str, shapes: list[Extents], attributes: dict[str, Any], vector: int
) -> None:
    own = geometry_of(kind, shapes, attributes)
    work = own.work(whole(own.shape))
    assert (work.vector, work.loops) == (vector, ())


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *(("float32", "float32"), ("float64", "float32"), ("int64", "float32")),
        *(("float16", "float16"), ("uint8", "int8"), ("bool", "int8")),
    ],
)
def test_types_of_work(dtype: str, name: str) -> None:
    assert geometry_of("Identity", [(3,)], {}, dtype).work(((0, 3),)).dtype == name


def test_constant_indices_read_their_range_and_others_the_whole_table() -> None:
    constant = {"axis": 0, "indices": (9, 4, 6), "indices_shape": (3,)}
    box = ((1, 3), (0, 4))
    assert geometry_of("Gather", [(50, 8)], constant).reads(box) == (((4, 7), (0, 4)),)
    reads = geometry_of("Gather", [(50, 8), (3,)], {"axis": 0}).reads(box)
    assert reads == (((0, 50), (0, 4)), ((1, 3),))


def scale_of(step: float | Array, zero: int = 0, axis: int | None = None) -> Scale:
    """Return a scale of bytes for one tensor, or for each position of an axis."""
    steps = np.asarray(step, dtype=np.float32).reshape(-1)
    zeros = np.full(steps.shape, zero, dtype=np.int32)
    return Scale(scale=steps, zero_point=zeros, axis=axis, dtype=np.dtype(np.int8))


def call_of(
    kind: str,
    arrays: list[Array],
    scales: list[Scale | None],
    output: Scale | None,
    low: float | None = None,
    high: float | None = None,
) -> Call:
    """Return a quantised operator on whole tensors."""
    quantisation = Quantisation(inputs=tuple(scales), output=output, low=low, high=high)
    own = geometry_of(kind, [array.shape for array in arrays], quantisation=quantisation)
    dtype = np.dtype(np.float32) if output is None else output.dtype
    given = zip(own.operator.inputs, arrays, strict=True)
    tensors = {n: Tensor(name=n, shape=array.shape, dtype=array.dtype) for n, array in given}
    tensors["out"] = Tensor(name="out", shape=own.shape, dtype=dtype)
    box = whole(own.shape)
    return Call(own.operator, tensors, arrays, own.reads(box), box)


UNIT = np.eye(6, dtype=np.int8)


@pytest.mark.parametrize(
    ("data", "scales", "output", "limits", "expected"),
    [
        (
            [-50, -1, 0, 1, 40, 100],
            (0.1, 1.0),
            scale_of(0.1, -10),
            (0.0, 6.0),
            [-10, -10, -10, -9, 30, 50],
        ),
        (
            [1, 3, 5, -1, 127, -128],
            (0.5, 1.0),
            scale_of(1.0, 100),
            (None, None),
            [100, 102, 102, 100, 127, 36],
        ),
    ],
    ids=["limits cut the real result", "halves round to even, and types saturate"],
)
def test_results_are_rounded_once(
    data: list[int], scales: tuple[float, ...], output: Scale, limits: Any, expected: list[int]
) -> None:
    given = [np.array([data], dtype=np.int8), UNIT]
    found = compute(call_of("MatMul", given, [*map(scale_of, scales)], output, *limits))
    np.testing.assert_array_equal(found, [expected])


def test_sums_beyond_24_bits_are_exact() -> None:
    left, right = np.full((1, 4096), 127, np.int8), np.full((4096, 1), 127, np.int8)
    left[0, 0] = 126
    total = partial(call_of("MatMul", [left, right], [scale_of(1), scale_of(1)], scale_of(1)))
    assert total[0, 0] == 4095 * 127 * 127 + 126 * 127 > 1 << 24


def test_integers_cost_their_conversion() -> None:
    scale = scale_of(1.0)
    quantisation = Quantisation(inputs=(scale, scale), output=scale)
    added = geometry_of("Add", [(2, 5), (2, 5)], {}, "int8", quantisation).work(((0, 2), (0, 5)))
    assert (added.vector, added.dtype) == (10 + 2 * 20 + 3 * 10, "int8")
    products = geometry_of("MatMul", [(2, 5), (5, 4)], {}, "int8", quantisation)
    assert products.work(((0, 2), (0, 4))).vector == 3 * 8
