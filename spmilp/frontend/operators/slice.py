"""Slice."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integers
from spmilp.frontend.operators.base import input_shape, required
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Slice(Moves):
    """Slice; a Split is several of these.

    Input: X. Attributes: ``starts``, ``ends``, ``axes`` (not negative), ``steps``, of one length;
    starts and ends as in ONNX (negative ones count from the end, those outside are clamped). Steps
    may be negative; what is read is then the covering range.
    """

    kinds = frozenset({"Slice"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the number of elements taken along each axis."""
        shape = required(operator, inputs, 0).shape
        taken = tuple(len(positions) for positions in slice_ranges(operator, shape))
        if 0 in taken:
            raise ValueError(f"the result of shape {taken} is empty")
        return taken

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the range of the positions along each axis."""
        ranges = slice_ranges(operator, input_shape(operator, tensors, 0))
        ends = (
            sorted((positions[start], positions[stop - 1]))
            for positions, (start, stop) in zip(ranges, box, strict=True)
        )
        return (tuple((low, high + 1) for low, high in ends),)


def slice_ranges(operator: Operator, shape: Extents) -> tuple[range, ...]:
    """Return, for each axis, the positions of the input that a Slice takes."""
    ranges = [range(length) for length in shape]
    axes = integers(operator, "axes")
    starts, ends = integers(operator, "starts", len(axes)), integers(operator, "ends", len(axes))
    steps = integers(operator, "steps", len(axes))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not 0 <= axis < len(shape) or step == 0:
            raise ValueError(f"axis {axis} with step {step} of a tensor of shape {shape}")
        length = shape[axis]
        low, high = (0, length) if step > 0 else (-1, length - 1)
        first, behind = (
            min(max(value + length if value < 0 else value, low), high) for value in (start, end)
        )
        ranges[axis] = range(first, behind, step)
    return tuple(ranges)
