"""Expand and Tile: elements of the input, several times."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integers
from spmilp.frontend.operators.base import input_shape, required
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Expand(Moves):
    """Expand; attribute ``shape``, with which the input's shape broadcasts to the result's."""

    kinds = frozenset({"Expand"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the broadcast shape."""
        return broadcast_shape((required(operator, inputs, 0).shape, integers(operator, "shape")))

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the part that broadcasts to the box."""
        return (broadcast_box(input_shape(operator, tensors, 0), box),)


class Tile(Moves):
    """Tile; attribute ``repeats``, one positive integer per axis."""

    kinds = frozenset({"Tile"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape times the repeats."""
        shape = required(operator, inputs, 0).shape
        repeats = integers(operator, "repeats", len(shape))
        if min(repeats, default=1) < 1:
            raise ValueError(f"repeats are {repeats}, expected positive integers")
        return tuple(length * count for length, count in zip(shape, repeats, strict=True))

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return, along each axis, the interval in one copy, or all when it touches two."""
        shape = input_shape(operator, tensors, 0)
        return (
            tuple(
                (start % length, (stop - 1) % length + 1)
                if start // length == (stop - 1) // length
                else (0, length)
                for length, (start, stop) in zip(shape, box, strict=True)
            ),
        )
