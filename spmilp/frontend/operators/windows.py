"""Sliding windows along one axis, which inputs a range of outputs depends on, and pooling."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.geometry import DIVISION, Fusion, Geometry, Part, Reads, elements
from spmilp.units import Box, Extents


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one axis: output ``o`` reads inputs ``o * stride - pad + k * dilation``.

    It has ``kernel`` positions ``k``; ``pad`` and ``pad_end`` are the elements of padding before
    the first and behind the last input.
    """

    kernel: int
    stride: int
    dilation: int
    pad: int
    pad_end: int

    @property
    def span(self) -> int:
        """Elements from the first to the last position of the window."""
        return (self.kernel - 1) * self.dilation + 1

    def outputs(self, length: int, ceil: bool = False) -> int:
        """Return how many outputs there are along an axis of ``length`` inputs.

        With ``ceil`` a last window that is only partly there counts too, unless it would begin in
        the padding at the end (ONNX AveragePool, opset 19).
        """
        padded = length + self.pad + self.pad_end
        if padded < self.span:
            raise ValueError(
                f"a window of {self.span} elements exceeds the {padded} elements of a padded axis"
            )
        room = padded - self.span
        count = (-(-room // self.stride) if ceil else room // self.stride) + 1
        begins_in_padding = ceil and (count - 1) * self.stride >= length + self.pad
        return count - begins_in_padding


WindowReads: TypeAlias = Callable[[Window, tuple[int, int], int], tuple[int, int] | None]
"""The range of inputs of a range of outputs along an axis of so many inputs."""


def windows_of(operator: Operator, rank: int) -> tuple[Window, ...]:
    """Return the windows along the ``rank`` spatial axes of a convolution or pooling.

    Raises a ``ValueError`` if an attribute is missing or has the wrong length or sign.
    """
    names = ("kernel_shape", "strides", "dilations")
    sizes = [operator.integers(name, rank) for name in names]
    pads = operator.integers("pads", 2 * rank)
    for name, values in zip(names, sizes, strict=True):
        if min(values, default=1) < 1:
            raise ValueError(f"attribute {name} is {values}, expected positive integers")
    return tuple(map(Window, *sizes, pads[:rank], pads[rank:]))


@lru_cache(maxsize=1 << 16)
def window_reads(window: Window, outputs: tuple[int, int], length: int) -> tuple[int, int] | None:
    """Return the least range of the ``length`` inputs that a range of outputs depends on.

    ``None`` when all positions of the windows fall on padding.
    """
    first, last = outputs[0], outputs[1] - 1
    low, high = length, -1
    for k in range(window.kernel):
        shift = k * window.dilation - window.pad
        earliest = max(first, -(shift // window.stride))
        latest = min(last, (length - 1 - shift) // window.stride)
        if earliest <= latest:
            low = min(low, earliest * window.stride + shift)
            high = max(high, latest * window.stride + shift)
    return (low, high + 1) if low <= high else None


def _transposed(window: Window, outputs: tuple[int, int], length: int) -> Iterator[tuple[int, int]]:
    """Yield, by position of the window, the half-open range of inputs that meet the outputs.

    Input ``i`` of a transposed convolution adds to the outputs ``i * stride - pad + k * dilation``.
    """
    for k in range(window.kernel):
        shift = k * window.dilation - window.pad
        earliest = max(0, -((shift - outputs[0]) // window.stride))
        latest = min(length - 1, (outputs[1] - 1 - shift) // window.stride)
        if earliest <= latest:
            yield earliest, latest + 1


@lru_cache(maxsize=1 << 16)
def transposed_reads(window: Window, outputs: tuple[int, int], size: int) -> tuple[int, int] | None:
    """Return what a range of outputs of a transposed convolution depends on, if on anything."""
    met = list(_transposed(window, outputs, size))
    return (min(start for start, _ in met), max(stop for _, stop in met)) if met else None


@lru_cache(maxsize=1 << 16)
def transposed_pairs(window: Window, outputs: tuple[int, int], length: int) -> int:
    """Return how many pairs of an output and a position of the window meet an input."""
    return sum(stop - start for start, stop in _transposed(window, outputs, length))


def data_box(
    windows: Sequence[Window], shape: Extents, leading: Box, outputs: Box, reads: WindowReads
) -> Box | None:
    """Return what windows over data of ``shape`` read; ``None`` where all fall on padding.

    The box of the data is ``leading`` before the spatial axes; ``outputs`` is of the spatial axes
    of the result, and ``reads`` says what a range of them depends on along one axis.
    """
    intervals = list(map(reads, windows, outputs, shape[2:]))
    found = tuple(interval for interval in intervals if interval is not None)
    return (*leading, *found) if len(found) == len(intervals) else None


class Pool(Geometry):
    """MaxPool (values only), AveragePool, LpPool.

    Input: X ``(N, C, spatial...)``.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (``auto_pad`` resolved),
    ``ceil_mode`` (0 or 1); AveragePool ``count_include_pad`` (0 or 1); LpPool ``p``.

    Costs 1 per position of each window, 4 more per output element of AveragePool and LpPool.
    """

    kinds = frozenset({"MaxPool", "AveragePool", "LpPool"})
    fusion = Fusion.COMPLEX

    def prepare(self, data: Extents) -> Extents:
        if len(data) < 3:
            raise ValueError(f"input of shape {data}, expected batch, channels and spatial axes")
        ceil = bool(self.operator.integer("ceil_mode"))
        self.data, self.windows = data, windows_of(self.operator, len(data) - 2)
        counts = zip(self.windows, data[2:], strict=True)
        return (*data[:2], *(window.outputs(length, ceil) for window, length in counts))

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (data_box(self.windows, self.data, box[:2], box[2:], window_reads),)

    def count(self, box: Box, reads: Reads) -> int:
        last = 0 if self.operator.kind == "MaxPool" else DIVISION
        return (prod(window.kernel for window in self.windows) + last) * volume(box)


class GlobalPool(Geometry):
    """GlobalAveragePool, GlobalMaxPool: X ``(N, C, spatial...)`` to ``(N, C, 1...)``.

    No attributes. Costs 1 per input element, 4 more per output element of the average.
    """

    kinds = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
    fusion = Fusion.COMPLEX

    def prepare(self, data: Extents) -> Extents:
        if len(data) < 2:
            raise ValueError(f"input of shape {data}, expected batch and channels at least")
        self.spatial = whole(data[2:])
        return (*data[:2], *(1 for _ in data[2:]))

    def reads(self, box: Box, part: Part = None) -> Reads:
        return ((*box[:2], *self.spatial),)

    def count(self, box: Box, reads: Reads) -> int:
        last = DIVISION * (self.operator.kind == "GlobalAveragePool")
        return elements(reads) + last * volume(box)


FAMILIES = GlobalPool, Pool
