"""Operators that only move elements: their base, and Concat, Expand, Tile and Trilu."""

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.attributes import axis_of, integer, integers
from spmilp.frontend.operators.base import VectorOperator, input_shape, required
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape, volume
from spmilp.frontend.operators.family import Fusion, Inputs, Part, Reads, Tensors
from spmilp.units import Box, Extents


class Moves(VectorOperator):
    """Moves elements without arithmetic: a view costs nothing, else 1 per output element."""

    fusion: Fusion

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        """Return the element operations."""
        return 0 if self.fusion is Fusion.VIEW else volume(box)


class Concat(Moves):
    """Concat along ``axis`` (not negative); any number of inputs."""

    kinds = frozenset({"Concat"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape with the lengths along the axis added."""
        shapes = [required(operator, inputs, position).shape for position in range(len(inputs))]
        axis = axis_of(operator, len(shapes[0]))
        rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
        if len(rests) > 1:
            raise ValueError(f"shapes {shapes} differ along other axes than {axis}")
        total = sum(shape[axis] for shape in shapes)
        return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
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


class Expand(Moves):
    """Expand; attribute ``shape``, with which the input's shape broadcasts to the result's."""

    kinds = frozenset({"Expand"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the broadcast shape."""
        return broadcast_shape((required(operator, inputs, 0).shape, integers(operator, "shape")))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the part that broadcasts to the box."""
        return (broadcast_box(input_shape(operator, tensors, 0), box),)


class Tile(Moves):
    """Tile; attribute ``repeats``, one positive integer per axis."""

    kinds = frozenset({"Tile"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape times the repeats."""
        shape = required(operator, inputs, 0).shape
        repeats = integers(operator, "repeats", len(shape))
        if min(repeats, default=1) < 1:
            raise ValueError(f"repeats are {repeats}, expected positive integers")
        return tuple(length * count for length, count in zip(shape, repeats, strict=True))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
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


class Trilu(Moves):
    """Trilu: keeps the upper or lower triangle of the last two axes, zeroes the rest.

    Attributes: ``upper`` (0 or 1), ``k`` (the diagonal).
    """

    kinds = frozenset({"Trilu"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        integer(operator, "upper")
        integer(operator, "k")
        if len(shape) < 2:
            raise ValueError(f"input of shape {shape}, expected a matrix at least")
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the same box."""
        return (box,)
