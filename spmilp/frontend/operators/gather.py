"""Gather."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import axis_of, has, integer, integers
from spmilp.frontend.operators.base import has_input, input_shape, required
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Gather(Moves):
    """Gather along one axis.

    Inputs: table X, and integer indices unless they are constant. Attributes: ``axis`` (not
    negative); constant indices as ``indices`` (flat, not negative) and ``indices_shape``.

    Of a table with indices that are only known at run time the whole axis is read; with constant
    ones the range from the least to the greatest index that the box needs. Negative indices at run
    time count from the end.
    """

    kinds = frozenset({"Gather"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the shape of X with the axis replaced by the shape of the indices."""
        shape = required(operator, inputs, 0).shape
        axis = axis_of(operator, len(shape))
        if has(operator, "indices"):
            indices = integers(operator, "indices")
            taken = integers(operator, "indices_shape")
            if any(not 0 <= index < shape[axis] for index in indices):
                raise ValueError(
                    f"indices from {min(indices)} to {max(indices)} for an axis of {shape[axis]}"
                )
        else:
            taken = required(operator, inputs, 1).shape
        return (*shape[:axis], *taken, *shape[axis + 1 :])

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the boxes of the table and of the indices."""
        shape, axis = input_shape(operator, tensors, 0), integer(operator, "axis")
        rank = len(box) - len(shape) + 1
        taken = box[axis : axis + rank]
        if not has_input(operator, 1):
            chosen = constant_indices(operator, taken)
            along = (min(chosen), max(chosen) + 1)
            return ((*box[:axis], along, *box[axis + rank :]),)
        return (*box[:axis], (0, shape[axis]), *box[axis + rank :]), taken


def constant_indices(operator: Operator, box: Box) -> tuple[int, ...]:
    """Return the constant indices in a box of them, in row-major order."""
    indices = integers(operator, "indices")
    shape = integers(operator, "indices_shape", len(box))
    positions = [0]
    for length, (start, stop) in zip(shape, box, strict=True):
        positions = [p * length + q for p in positions for q in range(start, stop)]
    return tuple(indices[position] for position in positions)
