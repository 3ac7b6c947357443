"""Pad."""

from collections.abc import Mapping, Sequence

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integers, number, text
from spmilp.frontend.operators.base import input_shape, required
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Pad(Moves):
    """Pad.

    Input: X. Attributes: ``pads`` (of all axes: all beginnings, then all ends; negative ones cut
    off), ``mode`` (``constant``, ``reflect``, ``edge``, ``wrap``), ``value`` (a number, used by
    ``constant``).
    """

    kinds = frozenset({"Pad"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return the padded shape."""
        shape = required(operator, inputs, 0).shape
        pads, rank = integers(operator, "pads", 2 * len(shape)), len(shape)
        mode = text(operator, "mode")
        number(operator, "value")
        if mode not in ("constant", "reflect", "edge", "wrap"):
            raise ValueError(f"mode {mode} of Pad is not known")
        for axis, length in enumerate(shape):
            longest = max(pads[axis], pads[axis + rank])
            if mode == "reflect" and longest >= max(length, 1):
                raise ValueError(f"reflection by {longest} exceeds an axis of {length}")
        result = tuple(length + pads[axis] + pads[axis + rank] for axis, length in enumerate(shape))
        if min(result, default=1) < 1:
            raise ValueError(f"the result of shape {result} is empty")
        return result

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the range of the source positions along each axis."""
        shape = input_shape(operator, tensors, 0)
        ranges = []
        for axis, interval in enumerate(box):
            inside = [p for p in pad_positions(operator, shape, axis, interval) if p is not None]
            if not inside:
                return (None,)
            ranges.append((min(inside), max(inside) + 1))
        return (tuple(ranges),)


def pad_positions(
    operator: Operator, shape: Extents, axis: int, interval: tuple[int, int]
) -> list[int | None]:
    """Return the input position of each output position of an axis; ``None`` for the value."""
    length = shape[axis]
    shift = integers(operator, "pads", 2 * len(shape))[axis]
    wanted = range(interval[0] - shift, interval[1] - shift)
    match text(operator, "mode"):
        case "edge":
            return [min(max(position, 0), length - 1) for position in wanted]
        case "wrap":
            return [position % length for position in wanted]
        case "reflect":
            last = length - 1
            return [last - abs(last - abs(position)) for position in wanted]
        case _:
            return [position if 0 <= position < length else None for position in wanted]
