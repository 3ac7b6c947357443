"""Every kind has one family and one kernel; what cannot be lowered says why."""

from typing import Any

import numpy as np
import pytest

from spmilp.checker.values.kernels.registry import computed_kinds
from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.registry import family_of, known_kinds


def test_what_can_be_lowered_can_be_computed() -> None:
    assert computed_kinds() == known_kinds()


WINDOW = {"kernel_shape": (3, 3), "strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)}


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes", "reason"),
    [
        ("Conv", [(1, 3, 8, 8), (4, 2, 3, 3)], {**WINDOW, "group": 1}, "3 input and 4 output"),
        ("Conv", [(1, 2, 2, 8), (4, 2, 3, 3)], {**WINDOW, "group": 1}, "window of 3 .* exceeds"),
        ("Conv", [(1, 2, 8, 8), (4, 2, 3, 3)], {"group": 1}, "kernel_shape of Conv is missing"),
        ("MatMul", [(2, 3), (4, 5)], {}, "inner lengths 3 and 4"),
        ("Add", [(2, 3), (2, 4)], {}, "do not broadcast"),
        ("Add", [(2, 3)], {}, "1 inputs, expected 2"),
        ("Softmax", [(2, 3)], {"axis": 2}, "axis is 2, expected 0 to 1"),
        ("Reshape", [(2, 3)], {"shape": (4,)}, "cannot be reshaped"),
        ("Transpose", [(2, 3)], {"perm": (0, 0)}, "no permutation"),
        ("Gather", [(2, 3)], {"axis": 1, "indices": (3,), "indices_shape": ()}, "for an axis of 3"),
        (
            "Slice",
            [(4,)],
            {"starts": (2,), "ends": (2,), "axes": (0,), "steps": (1,)},
            "empty",
        ),
        ("Einsum", [(2, 2)], {"equation": "ii->i"}, "not of the form"),
        ("QuantizeLinear", [(2,)], {}, "not constant"),
    ],
)
def test_what_cannot_be_lowered_says_why(
    kind: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], reason: str
) -> None:
    tensors = [
        Tensor(name=f"in{position}", shape=shape, dtype=np.dtype(np.float32))
        for position, shape in enumerate(shapes)
    ]
    operator = Operator(
        name="node",
        kind=kind,
        inputs=tuple(tensor.name for tensor in tensors),
        output="out",
        attributes=attributes,
    )
    with pytest.raises(ValueError, match=reason):
        family_of(kind)(operator, tensors)
