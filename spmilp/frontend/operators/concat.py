"""Concat."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import axis_of, integer
from spmilp.frontend.operators.base import required
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Concat(Moves):
    """Concat along ``axis`` (not negative); any number of inputs."""

    kinds = frozenset({"Concat"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape with the lengths along the axis added."""
        shapes = [required(operator, inputs, position).shape for position in range(len(inputs))]
        axis = axis_of(operator, len(shapes[0]))
        rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
        if len(rests) > 1:
            raise ValueError(f"shapes {shapes} differ along other axes than {axis}")
        total = sum(shape[axis] for shape in shapes)
        return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return what of each input falls into the box."""
        axis = integer(operator, "axis")
        boxes: list[Box | None] = []
        first = 0
        for name in operator.inputs:
            length = tensors[name].shape[axis]
            start = max(box[axis][0] - first, 0)
            stop = min(box[axis][1] - first, length)
            inside = (*box[:axis], (start, stop), *box[axis + 1 :])
            boxes.append(inside if start < stop else None)
            first += length
        return tuple(boxes)
