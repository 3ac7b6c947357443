"""MatMul."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.base import (
    Base,
    input_shape,
    requantisation,
    required,
    work_dtype,
)
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape, volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents


class MatMul(Base):
    """MatMul as in NumPy: batched, broadcast, with one-dimensional operands. No attributes.

    The reduction is over the last axis of the first operand. Loops: ``B`` batch positions that
    share the second operand, ``G`` those that have one each, ``X`` rows, ``K`` columns, ``C``
    reduction.
    """

    kinds = frozenset({"MatMul"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the batch axes, then rows and columns where the operands have them."""
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        if not left or not right:
            raise ValueError(f"operands of shapes {left} and {right}, expected no scalars")
        inner = right[0] if len(right) == 1 else right[-2]
        if left[-1] != inner:
            raise ValueError(f"inner lengths {left[-1]} and {inner} differ")
        batch = broadcast_shape((left[:-2], right[:-2]))
        rows = left[-2:-1] if len(left) > 1 else ()
        columns = right[-1:] if len(right) > 1 else ()
        return (*batch, *rows, *columns)

    def reduction(self, operator: Operator, tensors: Mapping[str, Tensor]) -> int:
        """Length of the reduction."""
        return input_shape(operator, tensors, 0)[-1]

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the boxes of both operands."""
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        part = reduction or (0, left[-1])
        batch, rows, columns = _split(box, left, right)
        if len(right) == 1:
            right_box: Box = (part,)
        else:
            right_box = (*broadcast_box(right[:-2], batch), part, *columns)
        return (*broadcast_box(left[:-2], batch), *rows, part), right_box

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the exact number of MACs, and requantisation as vector work."""
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        part = reduction or (0, left[-1])
        batch, rows, columns = _split(box, left, right)
        own = volume(broadcast_box(right[:-2], batch)) if len(right) > 2 else 1
        return Work(
            loops=(
                ("B", volume(batch) // own),
                ("G", own),
                ("X", volume(rows)),
                ("K", volume(columns)),
                ("C", part[1] - part[0]),
            ),
            vector=requantisation(operator, box) if part[1] == left[-1] else 0,
            dtype=work_dtype(operator, tensors),
        )


def _split(box: Box, left: Extents, right: Extents) -> tuple[Box, Box, Box]:
    """Return the batch, row and column axes of a box of the result."""
    rows, columns = len(left) > 1, len(right) > 1
    batch = len(box) - rows - columns
    return box[:batch], box[batch : batch + rows], box[batch + rows :]
