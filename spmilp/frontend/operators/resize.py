"""Resize."""

from collections.abc import Mapping, Sequence
from math import prod

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer, integers, number, numbers, text
from spmilp.frontend.operators.base import Base, input_shape, required, vector_work
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.frontend.operators.resize_axis import COORDINATES, NEAREST, Axis, taps
from spmilp.units import Box, Extents


class Resize(Base):
    """Resize (an Upsample is one with ``asymmetric`` coordinates).

    Input: X. Attributes: ``sizes`` (lengths of the result, all axes), ``scales`` (all axes: those
    of the model, else ``sizes / lengths``), ``mode`` (``nearest``, ``linear``, ``cubic``),
    ``coordinate_transformation_mode``, ``nearest_mode``, ``cubic_coeff_a``, ``exclude_outside``
    (0 or 1), ``antialias`` (must be 0), ``extrapolation_value``; ``roi`` (all beginnings, then all
    ends) for ``tf_crop_and_resize``.

    Every axis is interpolated on its own. Reads are the range of the positions with a weight other
    than zero. Costs 1 per output element for ``nearest``, else 2 for each position used.
    """

    kinds = frozenset({"Resize"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return ``sizes``."""
        shape = required(operator, inputs, 0).shape
        sizes = integers(operator, "sizes", len(shape))
        if integer(operator, "antialias"):
            raise ValueError("antialias of Resize is not supported")
        for name, known in (
            ("mode", ("nearest", "linear", "cubic")),
            ("coordinate_transformation_mode", COORDINATES),
            ("nearest_mode", NEAREST),
        ):
            if text(operator, name) not in known:
                raise ValueError(f"{name} {text(operator, name)} of Resize is not supported")
        for axis in range(len(shape)):
            axis_rule(operator, shape, axis)
        if min(sizes, default=1) < 1:
            raise ValueError(f"sizes are {sizes}, expected positive integers")
        return sizes

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the range of the positions that have a weight, along each axis."""
        shape = input_shape(operator, tensors, 0)
        ranges = []
        for axis, interval in enumerate(box):
            used = taps(axis_rule(operator, shape, axis), interval)
            positions = used.positions[used.weights != 0]
            if positions.size == 0:
                return (None,)
            ranges.append((int(positions.min()), int(positions.max()) + 1))
        return (tuple(ranges),)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        shape = input_shape(operator, tensors, 0)
        used = [
            taps(axis_rule(operator, shape, axis), interval).positions.shape[0]
            for axis, interval in enumerate(box)
        ]
        each = 1 if text(operator, "mode") == "nearest" else 2 * prod(used)
        reads = self.reads(operator, tensors, box)
        return vector_work(operator, tensors, box, reads, each * volume(box))


def axis_rule(operator: Operator, shape: Extents, axis: int) -> Axis:
    """Return how a Resize interpolates along one axis."""
    rank = len(shape)
    coordinates = text(operator, "coordinate_transformation_mode")
    roi = (0.0, 1.0)
    if coordinates == "tf_crop_and_resize":
        given = numbers(operator, "roi", 2 * rank)
        roi = (given[axis], given[axis + rank])
    return Axis(
        length=shape[axis],
        size=integers(operator, "sizes", rank)[axis],
        scale=numbers(operator, "scales", rank)[axis],
        mode=text(operator, "mode"),
        coordinates=coordinates,
        nearest=text(operator, "nearest_mode"),
        coefficient=number(operator, "cubic_coeff_a"),
        exclude_outside=bool(integer(operator, "exclude_outside")),
        roi=roi,
    )
