"""Products of bytes whose int32 sums are the result: ConvInteger and MatMulInteger.

Inputs: two operands of one byte per element, then optionally the zero point of each: one number, or
one per row of the first or per column (output channel) of the second operand. Every element counts
less its zero point. Attributes, reductions and loops are those of Conv and MatMul.
"""

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.base import has_input, input_shape, required
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.conv import Conv
from spmilp.frontend.operators.family import Inputs, Part, Reads, Tensors
from spmilp.frontend.operators.products import MatMul
from spmilp.units import Box, Extents


class ConvInteger(Conv):
    """ConvInteger: the zero point of W may be one per output channel."""

    kinds = frozenset({"ConvInteger"})

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return ``(N, M, spatial...)``."""
        shape = super().output_shape(operator, inputs)
        _are_bytes_with_zeros(operator, inputs, (1, shape[1]))
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the boxes of data, weight and their zero points."""
        operands = super().reads(operator, tensors, box, part)[:2]
        return (*operands, *_zeros(operator, tensors, (None, box[1])))

    def has_bias(self, operator: Operator) -> bool:
        """Return whether there is a bias: never."""
        return False


class MatMulInteger(MatMul):
    """MatMulInteger: one zero point per row of A, or per column of B."""

    kinds = frozenset({"MatMulInteger"})

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the batch axes, then rows and columns where the operands have them."""
        shape = super().output_shape(operator, inputs)
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        rows, columns = left[-2] if len(left) > 1 else 1, right[-1] if len(right) > 1 else 1
        _are_bytes_with_zeros(operator, inputs, (rows, columns))
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the boxes of both operands and of their zero points."""
        operands = super().reads(operator, tensors, box, part)
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        columns = box[-1] if len(right) > 1 else None
        rows = box[-2 if len(right) > 1 else -1] if len(left) > 1 else None
        return (*operands, *_zeros(operator, tensors, (rows, columns)))


def _are_bytes_with_zeros(operator: Operator, inputs: Inputs, lengths: tuple[int, int]) -> None:
    for position, length in enumerate(lengths):
        dtype = required(operator, inputs, position).dtype
        if dtype.name not in ("int8", "uint8"):
            raise ValueError(f"input {position} holds {dtype}, expected int8 or uint8")
        zero = inputs[position + 2] if position + 2 < len(inputs) else None
        if zero is not None and zero.shape not in ((), (1,), (length,)):
            raise ValueError(
                f"zero points of shape {zero.shape} for input {position}, expected one or {length}"
            )


def _zeros(
    operator: Operator, tensors: Tensors, intervals: tuple[tuple[int, int] | None, ...]
) -> Reads:
    """Return the boxes of the zero points that are given."""
    boxes: list[Box | None] = []
    for position, interval in enumerate(intervals, start=2):
        if position >= len(operator.inputs):
            break
        shape = input_shape(operator, tensors, position) if has_input(operator, position) else None
        if shape is None or interval is None or shape in ((), (1,)):
            boxes.append(None if shape is None else whole(shape))
        else:
            boxes.append((interval,))
    return tuple(boxes)
