"""Convolutions, transposed ones too: grouped, depthwise, dilated, strided, padded; 1-D to 3-D."""

from math import prod

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.attributes import integer, integers
from spmilp.frontend.operators.base import (
    Base,
    has_input,
    input_shape,
    requantisation,
    required,
    work_dtype,
)
from spmilp.frontend.operators.boxes import extents, volume, whole
from spmilp.frontend.operators.family import Fusion, Inputs, Part, Reads, Tensors, Work
from spmilp.frontend.operators.windows import (
    data_box,
    transposed_pairs,
    transposed_reads,
    window_reads,
    windows_fit,
    windows_of,
)
from spmilp.units import Box, Extents


class Conv(Base):
    """Conv.

    Inputs: X ``(N, C, spatial...)``, W ``(M, C / group, kernel...)``, optional bias B ``(M)``.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (all beginnings, then all
    ends; ``auto_pad`` resolved), ``group``.

    The reduction is over the input channels when ``group`` is 1. Only the part that ends at the
    last channel reads (and adds) the bias.

    Positions on padding count as MACs, as is usual. Axes before the last spatial one belong to
    loops ``Y`` and ``R``. The bias costs 1 per output element.
    """

    kinds = frozenset({"Conv"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return ``(N, M, spatial...)``."""
        data, weight, group = _data_weight_and_group(operator, inputs)
        if weight[1] * group != data[1] or weight[0] % group != 0:
            raise ValueError(
                f"{data[1]} input and {weight[0]} output channels do not fit a weight of "
                f"{weight[1]} channels in {group} groups"
            )
        windows = windows_of(operator, len(data) - 2)
        if tuple(window.kernel for window in windows) != weight[2:]:
            raise ValueError(f"kernel_shape does not fit a weight of shape {weight}")
        return (data[0], weight[0], *map(windows_fit, windows, data[2:]))

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        """Length of the reduction: input channels when there is one group."""
        return input_shape(operator, tensors, 0)[1] if integer(operator, "group") == 1 else 1

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the boxes of data, weight and bias."""
        shape, weight = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        channels, slice_of_weight = self._channels(operator, tensors, box[1], part)
        data = data_box(operator, shape, (box[0], channels), box[2:], window_reads)
        boxes = [data, (box[1], slice_of_weight, *whole(weight[2:]))]
        if self.has_bias(operator):
            last = part is None or part[1] == self.reduction(operator, tensors)
            boxes.append((box[1],) if last else None)
        return tuple(boxes)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        """Return the exact number of MACs, and the bias and requantisation as vector work."""
        weight = input_shape(operator, tensors, 1)
        groups, per_group = self._groups(operator, weight[0], box[1])
        _, (first, end) = self._channels(operator, tensors, box[1], part)
        spatial, kernel = extents(box)[2:], weight[2:]
        last = part is None or part[1] == self.reduction(operator, tensors)
        each = volume(box) * self.has_bias(operator)
        vector = requantisation(operator, box) + each if last else 0
        return Work(
            loops=(
                ("B", box[0][1] - box[0][0]),
                ("G", groups),
                ("K", per_group),
                ("C", end - first),
                ("Y", prod(spatial[:-1])),
                ("X", spatial[-1]),
                ("R", prod(kernel[:-1])),
                ("S", kernel[-1]),
            ),
            vector=vector,
            dtype=work_dtype(operator, tensors),
        )

    def has_bias(self, operator: Operator) -> bool:
        """Return whether there is a bias."""
        return has_input(operator, 2)

    def _channels(
        self, operator: Operator, tensors: Tensors, outputs: tuple[int, int], part: Part
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the channels of data, and of the weight, for a range of output channels."""
        weight, group = input_shape(operator, tensors, 1), integer(operator, "group")
        if group == 1:
            channels = part or (0, weight[1])
            return channels, channels
        size = weight[0] // group
        first, last = outputs[0] // size, (outputs[1] - 1) // size
        return (first * weight[1], (last + 1) * weight[1]), (0, weight[1])

    def _groups(self, operator: Operator, channels: int, box: tuple[int, int]) -> tuple[int, int]:
        """Return loops over groups and over output channels; their product is exact."""
        size = channels // integer(operator, "group")
        count = box[1] - box[0]
        if box[0] // size == (box[1] - 1) // size:
            return 1, count
        if box[0] % size == 0 and box[1] % size == 0:
            return count // size, size
        return count, 1


def _data_weight_and_group(operator: Operator, inputs: Inputs) -> tuple[Extents, Extents, int]:
    """Return the shapes of data and weight, and the number of groups."""
    data, weight = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
    if len(data) < 3 or len(weight) != len(data):
        raise ValueError(f"input of shape {data}, weight of shape {weight}: ranks do not fit")
    return data, weight, integer(operator, "group")


class ConvTranspose(Base):
    """ConvTranspose.

    Inputs: X ``(N, C, spatial...)``, W ``(C, M / group, kernel...)``, optional bias B ``(M)``.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (``auto_pad`` and
    ``output_shape`` resolved), ``output_padding``, ``group``.

    MACs are exact: pairs of an output element and a kernel position that meets an input. The
    kernel positions are part of loops ``Y`` and ``X``. The bias costs 1 per output element.
    """

    kinds = frozenset({"ConvTranspose"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return ``(N, M, spatial...)``."""
        data, weight, group = _data_weight_and_group(operator, inputs)
        if weight[0] != data[1] or data[1] % group != 0:
            raise ValueError(
                f"{data[1]} input channels do not fit a weight of {weight[0]} in {group} groups"
            )
        extra = integers(operator, "output_padding", len(data) - 2)
        spatial = [
            (length - 1) * window.stride + window.span - window.pad - window.pad_end + more
            for length, window, more in zip(
                data[2:], windows_of(operator, len(data) - 2), extra, strict=True
            )
        ]
        if min(spatial) < 1:
            raise ValueError(f"output of spatial shape {tuple(spatial)} is empty")
        return (data[0], weight[1] * group, *spatial)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the boxes of data, weight and bias."""
        shape, weight = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        first, last = self._groups(operator, weight, box[1])
        size = weight[0] // integer(operator, "group")
        channels = (first * size, (last + 1) * size)
        own = (0, weight[1])
        if first == last:
            own = (box[1][0] - first * weight[1], box[1][1] - first * weight[1])
        data = data_box(operator, shape, (box[0], channels), box[2:], transposed_reads)
        boxes = [data, (channels, own, *whole(weight[2:]))]
        return (*boxes, (box[1],)) if has_input(operator, 2) else tuple(boxes)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        """Return MACs, and the bias and requantisation as vector work."""
        weight = input_shape(operator, tensors, 1)
        group = integer(operator, "group")
        first, last = self._groups(operator, weight, box[1])
        count = box[1][1] - box[1][0]
        aligned = count == (last + 1 - first) * weight[1]
        groups = last + 1 - first if aligned or first == last else count
        shape = input_shape(operator, tensors, 0)[2:]
        windows = windows_of(operator, len(shape))
        pairs = list(map(transposed_pairs, windows, box[2:], shape))
        return Work(
            loops=(
                ("B", box[0][1] - box[0][0]),
                ("G", groups),
                ("K", count // groups),
                ("C", weight[0] // group),
                ("Y", prod(pairs[:-1])),
                ("X", pairs[-1]),
            ),
            vector=requantisation(operator, box) + volume(box) * has_input(operator, 2),
            dtype=work_dtype(operator, tensors),
        )

    def _groups(
        self, operator: Operator, weight: Extents, channels: tuple[int, int]
    ) -> tuple[int, int]:
        """Return the first and the last group of a range of output channels."""
        return channels[0] // weight[1], (channels[1] - 1) // weight[1]
