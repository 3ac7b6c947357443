"""BatchNormalization."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import number
from spmilp.frontend.operators.base import (
    DIVISION,
    Base,
    required,
    vector_work,
)
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents


class BatchNormalization(Base):
    """BatchNormalization at inference: ``(x - mean) / sqrt(var + epsilon) * scale + bias``.

    Inputs: X ``(N, C, ...)``, scale, bias, mean, var, each ``(C)``. Attributes: ``epsilon``.

    Costs 2 per element and 12 per channel.
    """

    kinds = frozenset({"BatchNormalization"})
    fusion = Fusion.ELEMENTWISE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        number(operator, "epsilon")
        for position in range(1, 5):
            given = required(operator, inputs, position).shape
            if len(shape) < 2 or given != (shape[1],):
                raise ValueError(f"input {position} of shape {given} for data of shape {shape}")
        return shape

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the same box of X and its channels of the others."""
        return (box, *((box[1],) for _ in range(4)))

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        count = 2 * volume(box) + (2 * DIVISION + 4) * (box[1][1] - box[1][0])
        return vector_work(operator, tensors, box, self.reads(operator, tensors, box), count)
