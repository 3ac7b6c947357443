"""Local response normalisation."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer, number
from spmilp.frontend.operators.base import (
    DIVISION,
    EXPONENTIAL,
    Base,
    input_shape,
    required,
    vector_work,
)
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents


class LRN(Base):
    """LRN across channels; attributes ``size``, ``alpha``, ``beta``, ``bias``.

    Each channel reads ``floor((size - 1) / 2)`` channels before it and ``ceil((size - 1) / 2)``
    behind it. Costs 1 per element read for its square, and per output element ``size`` additions,
    a power, a division and 2.
    """

    kinds = frozenset({"LRN"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        integer(operator, "size")
        for name in ("alpha", "beta", "bias"):
            number(operator, name)
        if len(shape) < 2:
            raise ValueError(f"input of shape {shape}, expected batch and channels at least")
        return shape

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the box with the neighbouring channels."""
        size, channels = integer(operator, "size"), input_shape(operator, tensors, 0)[1]
        start, stop = box[1]
        wider = (max(0, start - (size - 1) // 2), min(channels, stop + size // 2))
        return ((box[0], wider, *box[2:]),)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        reads = self.reads(operator, tensors, box)
        each = integer(operator, "size") + 2 * EXPONENTIAL + DIVISION + 2
        count = sum(volume(read) for read in reads if read is not None) + each * volume(box)
        return vector_work(operator, tensors, box, reads, count)
