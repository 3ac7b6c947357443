"""CumSum."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import axis_of, integer
from spmilp.frontend.operators.base import Base, input_shape, required, vector_work
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents


class CumSum(Base):
    """CumSum; attributes ``axis`` (not negative), ``exclusive``, ``reverse`` (0 or 1).

    The axis is not tiled. Costs 1 per element read.
    """

    kinds = frozenset({"CumSum"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        axis_of(operator, len(shape))
        integer(operator, "exclusive")
        integer(operator, "reverse")
        return shape

    def tiled_axes(self, operator: Operator, tensors: Mapping[str, Tensor]) -> tuple[bool, ...]:
        """All axes but the one that is summed."""
        own = integer(operator, "axis")
        return tuple(axis != own for axis in range(len(tensors[operator.output].shape)))

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the box with the whole of the axis."""
        axis = integer(operator, "axis")
        length = input_shape(operator, tensors, 0)[axis]
        return ((*box[:axis], (0, length), *box[axis + 1 :]),)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        reads = self.reads(operator, tensors, box)
        count = sum(volume(read) for read in reads if read is not None)
        return vector_work(operator, tensors, box, reads, count)
