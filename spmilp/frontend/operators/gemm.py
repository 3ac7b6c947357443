"""Gemm."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer, number
from spmilp.frontend.operators.base import (
    Base,
    has_input,
    input_shape,
    requantisation,
    required,
    work_dtype,
)
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape, volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents


class Gemm(Base):
    """Gemm: ``alpha * A' @ B' + beta * C``.

    Inputs: A, B, optional C that broadcasts to the result.

    Attributes: ``alpha``, ``beta`` (numbers), ``transA``, ``transB`` (0 or 1).

    The reduction is over the columns of A'. Only the part that ends at the last one reads (and
    adds) C. Loops: ``B`` rows, ``K`` columns, ``C`` reduction. C costs 1 per output element, each
    of alpha and beta 1 more where it is not 1.
    """

    kinds = frozenset({"Gemm"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return ``(rows, columns)``."""
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        _scales_are_plain(operator)
        if len(left) != 2 or len(right) != 2:
            raise ValueError(f"operands of shapes {left} and {right}, expected matrices")
        left = left[::-1] if integer(operator, "transA") else left
        right = right[::-1] if integer(operator, "transB") else right
        if left[1] != right[0]:
            raise ValueError(f"inner lengths {left[1]} and {right[0]} differ")
        result = (left[0], right[1])
        added = inputs[2] if len(inputs) > 2 else None
        if added is not None and broadcast_shape((added.shape, result)) != result:
            raise ValueError(f"C of shape {added.shape} does not broadcast to {result}")
        return result

    def reduction(self, operator: Operator, tensors: Mapping[str, Tensor]) -> int:
        """Length of the reduction: the columns of A'."""
        return input_shape(operator, tensors, 0)[0 if integer(operator, "transA") else 1]

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the boxes of A, B and C."""
        length = self.reduction(operator, tensors)
        part = reduction or (0, length)
        left, right = (box[0], part), (part, box[1])
        boxes: list[Box | None] = [
            left[::-1] if integer(operator, "transA") else left,
            right[::-1] if integer(operator, "transB") else right,
        ]
        if has_input(operator, 2):
            shape = input_shape(operator, tensors, 2)
            boxes.append(broadcast_box(shape, box) if part[1] == length else None)
        return tuple(boxes)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the exact number of MACs; scaling, C and requantisation as vector work."""
        length = self.reduction(operator, tensors)
        part = reduction or (0, length)
        vector = 0
        if part[1] == length:
            added = has_input(operator, 2)
            each = added + (number(operator, "alpha") != 1)
            each += added and number(operator, "beta") != 1
            vector = each * volume(box) + requantisation(operator, box)
        (row, row_end), (column, column_end) = box
        return Work(
            loops=(("B", row_end - row), ("K", column_end - column), ("C", part[1] - part[0])),
            vector=vector,
            dtype=work_dtype(operator, tensors),
        )


def _scales_are_plain(operator: Operator) -> None:
    scaled = number(operator, "alpha") != 1 or number(operator, "beta") != 1
    if scaled and operator.quantisation is not None:
        raise ValueError("a quantised Gemm with alpha or beta other than 1 is not supported")
