"""Transposed convolutions."""

from collections.abc import Mapping, Sequence
from math import prod

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer, integers
from spmilp.frontend.operators.base import (
    Base,
    has_input,
    input_shape,
    requantisation,
    required,
    work_dtype,
)
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.frontend.operators.windows import transposed_pairs, transposed_reads, windows_of
from spmilp.units import Box, Extents


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

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return ``(N, M, spatial...)``."""
        data = required(operator, inputs, 0).shape
        weight = required(operator, inputs, 1).shape
        group = integer(operator, "group")
        if len(data) < 3 or len(weight) != len(data):
            raise ValueError(f"input of shape {data}, weight of shape {weight}: ranks do not fit")
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

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the boxes of data, weight and bias."""
        shape, weight = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        spatial = [
            transposed_reads(window, outputs, length)
            for window, outputs, length in zip(
                windows_of(operator, len(shape) - 2), box[2:], shape[2:], strict=True
            )
        ]
        first, last = self._groups(operator, weight, box[1])
        size = weight[0] // integer(operator, "group")
        channels = (first * size, (last + 1) * size)
        own = (0, weight[1])
        if first == last:
            own = (box[1][0] - first * weight[1], box[1][1] - first * weight[1])
        found = tuple(interval for interval in spatial if interval is not None)
        data = (box[0], channels, *found) if len(found) == len(spatial) else None
        boxes = [data, (channels, own, *whole(weight[2:]))]
        return (*boxes, (box[1],)) if has_input(operator, 2) else tuple(boxes)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
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
