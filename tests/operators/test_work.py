"""Work and regions against numbers worked out by hand or by counting."""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from operators.onnx_case import geometry_of
from spmilp.frontend.graph import Operator, Quantisation, Scale, Tensor
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.geometry import Work
from spmilp.units import Box, Extents


def operator_of(
    kind: str,
    shapes: list[Extents],
    attributes: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    quantisation: Quantisation | None = None,
) -> tuple[Operator, dict[str, Tensor]]:
    """Return an operator and its tensors."""
    names = tuple(f"in{position}" for position in range(len(shapes)))
    operator = Operator(
        name="node",
        kind=kind,
        inputs=names,
        output="out",
        attributes=attributes or {},
        quantisation=quantisation,
    )
    tensors = {
        name: Tensor(name=name, shape=shape, dtype=np.dtype(dtype))
        for name, shape in zip(names, shapes, strict=True)
    }
    shape = geometry_of(operator, tensors).shape
    tensors["out"] = Tensor(name="out", shape=shape, dtype=np.dtype(dtype))
    return operator, tensors


def work_of(
    operator: Operator,
    tensors: Mapping[str, Tensor],
    box: Box | None = None,
    reduction: tuple[int, int] | None = None,
) -> Work:
    """Return the work of a box, by default of the whole output."""
    own = whole(tensors["out"].shape) if box is None else box
    return geometry_of(operator, tensors).work(own, reduction)


def conv_attributes(kernel: int, stride: int, pad: int, group: int = 1) -> dict[str, Any]:
    """Return the attributes of a square two-dimensional convolution."""
    return {
        "kernel_shape": (kernel, kernel),
        "strides": (stride, stride),
        "dilations": (1, 1),
        "pads": (pad,) * 4,
        "group": group,
    }


def test_the_first_convolution_of_resnet_has_118_million_macs() -> None:
    operator, tensors = operator_of(
        "Conv", [(1, 3, 224, 224), (64, 3, 7, 7)], conv_attributes(7, 2, 3)
    )
    work = work_of(operator, tensors)
    assert dict(work.loops) == {"B": 1, "G": 1, "K": 64, "C": 3, "Y": 112, "X": 112, "R": 7, "S": 7}
    assert prod(dict(work.loops).values()) == 118_013_952


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 2, 1), (4, 2, 1), (2, 3, 0), (3, 1, 2)])
def test_macs_of_a_transposed_convolution_are_counted_pair_by_pair(
    kernel: int, stride: int, pad: int
) -> None:
    length = 5
    attributes = conv_attributes(kernel, stride, pad) | {"output_padding": (0, 0)}
    operator, tensors = operator_of(
        "ConvTranspose", [(1, 2, length, length), (2, 3, kernel, kernel)], attributes
    )
    outputs = tensors["out"].shape[2]
    pairs = sum(
        0 <= i * stride - pad + k < outputs for i, k in product(range(length), range(kernel))
    )
    macs = prod(count for _, count in work_of(operator, tensors).loops)
    assert macs == pairs * pairs * 2 * 3


def test_a_product_with_shared_weights_has_a_batch_and_with_own_ones_has_groups() -> None:
    shared = operator_of("MatMul", [(2, 12, 64, 32), (32, 16)])
    assert dict(work_of(*shared).loops) == {"B": 24, "G": 1, "X": 64, "K": 16, "C": 32}
    own = operator_of("MatMul", [(2, 12, 64, 32), (12, 32, 16)])
    assert dict(work_of(*own).loops) == {"B": 2, "G": 12, "X": 64, "K": 16, "C": 32}
    part = work_of(*own, box=((0, 1), (0, 6), (0, 64), (0, 8)), reduction=(0, 8))
    assert dict(part.loops) == {"B": 1, "G": 6, "X": 64, "K": 8, "C": 8}


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
    work = work_of(*operator_of(kind, shapes, attributes))
    assert work.vector == vector
    assert work.loops == ()


def test_integers_cost_their_conversion() -> None:
    scale = Scale(
        scale=np.ones(1, dtype=np.float32),
        zero_point=np.zeros(1, dtype=np.int32),
        axis=None,
        dtype=np.dtype(np.int8),
    )
    quantisation = Quantisation(inputs=(scale, scale), output=scale)
    added = work_of(*operator_of("Add", [(2, 5), (2, 5)], {}, "int8", quantisation))
    assert (added.vector, added.dtype) == (10 + 2 * 20 + 3 * 10, "int8")
    product_ = work_of(*operator_of("MatMul", [(2, 5), (5, 4)], {}, "int8", quantisation))
    assert product_.vector == 3 * 8


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "float32"),
        ("float64", "float32"),
        ("int64", "float32"),
        ("float16", "float16"),
        ("uint8", "int8"),
        ("bool", "int8"),
    ],
)
def test_types_of_work(dtype: str, name: str) -> None:
    assert work_of(*operator_of("Identity", [(3,)], {}, dtype)).dtype == name


def test_constant_indices_read_their_range_and_others_the_whole_table() -> None:
    constant = {"axis": 0, "indices": (9, 4, 6), "indices_shape": (3,)}
    operator, tensors = operator_of("Gather", [(50, 8)], constant)
    assert geometry_of(operator, tensors).reads(((1, 3), (0, 4))) == (((4, 7), (0, 4)),)
    operator, tensors = operator_of("Gather", [(50, 8), (3,)], {"axis": 0})
    reads = geometry_of(operator, tensors).reads(((1, 3), (0, 4)))
    assert reads == (((0, 50), (0, 4)), ((1, 3),))
