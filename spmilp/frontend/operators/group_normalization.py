"""InstanceNormalization and GroupNormalization."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer, number
from spmilp.frontend.operators.base import (
    DIVISION,
    Base,
    input_shape,
    required,
    vector_work,
)
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.frontend.operators.layer_normalization import EACH_NORMALISED
from spmilp.units import Box, Extents


class GroupNormalization(Base):
    """InstanceNormalization, GroupNormalization (opset 21: scale and bias per channel).

    Inputs: X ``(N, C, ...)``, scale ``(C)``, bias ``(C)``. Attributes: ``epsilon``;
    GroupNormalization ``num_groups``. Statistics are in float32.

    The spatial axes are not tiled, the channels only where each is a group of its own. Costs 7 per
    element and 8 per group.
    """

    kinds = frozenset({"InstanceNormalization", "GroupNormalization"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        number(operator, "epsilon")
        for position in (1, 2):
            given = required(operator, inputs, position).shape
            if len(shape) < 2 or given != (shape[1],):
                raise ValueError(f"input {position} of shape {given} for data of shape {shape}")
        if shape[1] % self._groups(operator, shape) != 0:
            raise ValueError(f"{shape[1]} channels in {self._groups(operator, shape)} groups")
        return shape

    def tiled_axes(self, operator: Operator, tensors: Mapping[str, Tensor]) -> tuple[bool, ...]:
        """The batch, and channels that are groups."""
        shape = tensors[operator.output].shape
        alone = self._groups(operator, shape) == shape[1]
        return (True, alone, *(False for _ in shape[2:]))

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return whole groups of X, and the channels of scale and bias."""
        shape = input_shape(operator, tensors, 0)
        size = shape[1] // self._groups(operator, shape)
        channels = (box[1][0] // size * size, -(-box[1][1] // size) * size)
        return (box[0], channels, *whole(shape)[2:]), (box[1],), (box[1],)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        reads = self.reads(operator, tensors, box)
        data = reads[0] or box
        shape = input_shape(operator, tensors, 0)
        size = shape[1] // self._groups(operator, shape)
        groups = (data[0][1] - data[0][0]) * (data[1][1] - data[1][0]) // size
        count = EACH_NORMALISED * volume(data) + 2 * DIVISION * groups
        return vector_work(operator, tensors, box, reads, count)

    def _groups(self, operator: Operator, shape: Extents) -> int:
        if operator.kind == "InstanceNormalization":
            return shape[1]
        return integer(operator, "num_groups")
