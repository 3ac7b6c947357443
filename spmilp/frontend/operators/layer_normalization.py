"""LayerNormalization and RMSNormalization."""

from collections.abc import Mapping, Sequence
from math import prod

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import axis_of, integer, number
from spmilp.frontend.operators.base import (
    DIVISION,
    Base,
    has_input,
    input_shape,
    required,
    vector_work,
)
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape, volume, whole
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.units import Box, Extents

EACH_NORMALISED = 7
"""Element operations: mean, difference, square and its sum, division, scale, bias."""


class LayerNormalization(Base):
    """LayerNormalization and RMSNormalization over the axes from ``axis`` on.

    Inputs: X, scale, and for LayerNormalization an optional bias; both broadcast to X.
    Attributes: ``axis`` (not negative), ``epsilon``. Statistics are in float32.

    Costs 7 per element and 8 per normalised row.
    """

    kinds = frozenset({"LayerNormalization", "RMSNormalization"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        axis_of(operator, len(shape))
        number(operator, "epsilon")
        others = [tensor.shape for tensor in inputs[1:] if tensor is not None]
        required(operator, inputs, 1)
        if broadcast_shape((shape, *others)) != shape:
            raise ValueError(f"scale or bias of shapes {others} do not broadcast to {shape}")
        return shape

    def tiled_axes(self, operator: Operator, tensors: Mapping[str, Tensor]) -> tuple[bool, ...]:
        """The axes before the normalised ones."""
        first = integer(operator, "axis")
        return tuple(axis < first for axis in range(len(tensors[operator.output].shape)))

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return whole rows of X, and the box of scale and bias."""
        axis = integer(operator, "axis")
        shape = input_shape(operator, tensors, 0)
        boxes: list[Box | None] = [(*box[:axis], *whole(shape)[axis:])]
        for position in range(1, len(operator.inputs)):
            there = has_input(operator, position)
            boxes.append(
                broadcast_box(input_shape(operator, tensors, position), box) if there else None
            )
        return tuple(boxes)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        axis = integer(operator, "axis")
        rows = volume(box[:axis])
        elements = rows * prod(input_shape(operator, tensors, 0)[axis:])
        reads = self.reads(operator, tensors, box)
        count = EACH_NORMALISED * elements + 2 * DIVISION * rows
        return vector_work(operator, tensors, box, reads, count)
