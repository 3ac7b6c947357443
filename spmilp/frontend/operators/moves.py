"""Helpers of the families that only move elements."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.base import Base, vector_work
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box


class Moves(Base, ABC):
    """Moves elements without arithmetic: a view costs nothing, else 1 per output element."""

    fusion: Fusion

    @abstractmethod
    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """For each input, the least box that holds what ``box`` of the output needs."""

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        count = 0 if self.fusion is Fusion.VIEW else volume(box)
        return vector_work(operator, tensors, box, self.reads(operator, tensors, box), count)
