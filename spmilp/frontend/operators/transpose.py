"""Transpose."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integers
from spmilp.frontend.operators.base import required
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Transpose(Moves):
    """Transpose; attribute ``perm``: the input's axis that each output axis is."""

    kinds = frozenset({"Transpose"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the permuted shape."""
        shape = required(operator, inputs, 0).shape
        perm = integers(operator, "perm", len(shape))
        if sorted(perm) != list(range(len(shape))):
            raise ValueError(f"perm is {perm}, no permutation of {len(shape)} axes")
        return tuple(shape[axis] for axis in perm)

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the box with its axes permuted back."""
        perm = integers(operator, "perm", len(box))
        return (tuple(box[perm.index(axis)] for axis in range(len(box))),)
