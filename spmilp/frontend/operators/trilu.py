"""Trilu."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer
from spmilp.frontend.operators.base import required
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Trilu(Moves):
    """Trilu: keeps the upper or lower triangle of the last two axes, zeroes the rest.

    Attributes: ``upper`` (0 or 1), ``k`` (the diagonal).
    """

    kinds = frozenset({"Trilu"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        integer(operator, "upper")
        integer(operator, "k")
        if len(shape) < 2:
            raise ValueError(f"input of shape {shape}, expected a matrix at least")
        return shape

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the same box."""
        return (box,)
