"""Pooling over windows."""

from collections.abc import Mapping, Sequence
from math import prod

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer
from spmilp.frontend.operators.base import DIVISION, Base, input_shape, required, vector_work
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Work
from spmilp.frontend.operators.windows import window_reads, windows_fit, windows_of
from spmilp.units import Box, Extents


class Pool(Base):
    """MaxPool (values only), AveragePool, LpPool.

    Input: X ``(N, C, spatial...)``.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (``auto_pad`` resolved),
    ``ceil_mode`` (0 or 1); AveragePool ``count_include_pad`` (0 or 1); LpPool ``p``.

    Costs 1 per position of each window, 4 more per output element of AveragePool and LpPool.
    """

    kinds = frozenset({"MaxPool", "AveragePool", "LpPool"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return ``(N, C, spatial...)``."""
        shape = required(operator, inputs, 0).shape
        if len(shape) < 3:
            raise ValueError(f"input of shape {shape}, expected batch, channels and spatial axes")
        ceil = bool(integer(operator, "ceil_mode"))
        windows = windows_of(operator, len(shape) - 2)
        counts = [
            windows_fit(window, length, ceil)
            for window, length in zip(windows, shape[2:], strict=True)
        ]
        return (shape[0], shape[1], *counts)

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the box of the input."""
        shape = input_shape(operator, tensors, 0)
        intervals = [
            window_reads(window, outputs, length)
            for window, outputs, length in zip(
                windows_of(operator, len(shape) - 2), box[2:], shape[2:], strict=True
            )
        ]
        found = tuple(interval for interval in intervals if interval is not None)
        return ((*box[:2], *found) if len(found) == len(intervals) else None,)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        windows = windows_of(operator, len(box) - 2)
        each = prod(window.kernel for window in windows)
        each += 0 if operator.kind == "MaxPool" else DIVISION
        reads = self.reads(operator, tensors, box)
        return vector_work(operator, tensors, box, reads, each * volume(box))


class GlobalPool(Base):
    """GlobalAveragePool, GlobalMaxPool: X ``(N, C, spatial...)`` to ``(N, C, 1...)``.

    No attributes. Costs 1 per input element, 4 more per output element of the average.
    """

    kinds = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Sequence[Tensor | None]) -> Extents:
        """Return ``(N, C, 1...)``."""
        shape = required(operator, inputs, 0).shape
        if len(shape) < 2:
            raise ValueError(f"input of shape {shape}, expected batch and channels at least")
        return (*shape[:2], *(1 for _ in shape[2:]))

    def reads(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> tuple[Box | None, ...]:
        """Return the box of the input: all of its spatial axes."""
        shape = input_shape(operator, tensors, 0)
        return ((*box[:2], *((0, length) for length in shape[2:])),)

    def work(
        self,
        operator: Operator,
        tensors: Mapping[str, Tensor],
        box: Box,
        reduction: tuple[int, int] | None = None,
    ) -> Work:
        """Return the vector work."""
        reads = self.reads(operator, tensors, box)
        count = sum(volume(read) for read in reads if read is not None)
        count += DIVISION * volume(box) if operator.kind == "GlobalAveragePool" else 0
        return vector_work(operator, tensors, box, reads, count)
