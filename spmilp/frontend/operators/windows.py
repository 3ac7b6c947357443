"""Sliding windows along one axis, which inputs a range of outputs depends on, and pooling."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import (
    DIVISION,
    Fusion,
    Inputs,
    Part,
    Reads,
    Tensors,
    VectorOperator,
    elements,
    input_shape,
    integer,
    integers,
    required,
)
from spmilp.units import Box, Extents


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one axis: output ``o`` reads inputs ``o * stride - pad + k * dilation``.

    Parameters
    ----------
    kernel
        Positions ``k`` of the window.
    pad, pad_end
        Elements of padding before the first and behind the last input.
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


WindowReads: TypeAlias = Callable[[Window, tuple[int, int], int], tuple[int, int] | None]
"""The range of inputs of a range of outputs along an axis of so many inputs."""


@lru_cache(maxsize=1 << 10)
def windows_of(operator: Operator, rank: int) -> tuple[Window, ...]:
    """Return the windows along the ``rank`` spatial axes of a convolution or pooling.

    Raises
    ------
    ValueError
        If an attribute is missing or has the wrong length or sign.
    """
    kernel = integers(operator, "kernel_shape", rank)
    strides = integers(operator, "strides", rank)
    dilations = integers(operator, "dilations", rank)
    pads = integers(operator, "pads", 2 * rank)
    for name, values in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
        if min(values, default=1) < 1:
            raise ValueError(f"attribute {name} is {values}, expected positive integers")
    return tuple(map(Window, kernel, strides, dilations, pads[:rank], pads[rank:]))


def windows_fit(window: Window, length: int, ceil: bool = False) -> int:
    """Return how many outputs a window gives along an axis of ``length`` inputs.

    With ``ceil`` a last window that is only partly there counts too, unless it would begin in the
    padding at the end (ONNX AveragePool, opset 19).
    """
    room = length + window.pad + window.pad_end - window.span
    if room < 0:
        raise ValueError(
            f"a window of {window.span} elements exceeds the {length + window.pad + window.pad_end}"
            " elements of a padded axis"
        )
    count = (-(-room // window.stride) if ceil else room // window.stride) + 1
    if ceil and (count - 1) * window.stride >= length + window.pad:
        count -= 1
    return count


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
def transposed_reads(
    window: Window, outputs: tuple[int, int], length: int
) -> tuple[int, int] | None:
    """Return what a range of outputs of a transposed convolution depends on, if on anything."""
    met = list(_transposed(window, outputs, length))
    return (min(start for start, _ in met), max(stop for _, stop in met)) if met else None


@lru_cache(maxsize=1 << 16)
def transposed_pairs(window: Window, outputs: tuple[int, int], length: int) -> int:
    """Return how many pairs of an output and a position of the window meet an input."""
    return sum(stop - start for start, stop in _transposed(window, outputs, length))


def data_box(
    operator: Operator, shape: Extents, leading: Box, outputs: Box, reads: WindowReads
) -> Box | None:
    """Return what windows over data of ``shape`` read; ``None`` where all fall on padding.

    The box of the data is ``leading`` before the spatial axes; ``outputs`` is of the spatial axes
    of the result, and ``reads`` says what a range of them depends on along one axis.
    """
    intervals = list(map(reads, windows_of(operator, len(outputs)), outputs, shape[2:]))
    found = tuple(interval for interval in intervals if interval is not None)
    return (*leading, *found) if len(found) == len(intervals) else None


class Pool(VectorOperator):
    """MaxPool (values only), AveragePool, LpPool.

    Input: X ``(N, C, spatial...)``.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (``auto_pad`` resolved),
    ``ceil_mode`` (0 or 1); AveragePool ``count_include_pad`` (0 or 1); LpPool ``p``.

    Costs 1 per position of each window, 4 more per output element of AveragePool and LpPool.
    """

    kinds = frozenset({"MaxPool", "AveragePool", "LpPool"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        if len(shape) < 3:
            raise ValueError(f"input of shape {shape}, expected batch, channels and spatial axes")
        ceil = bool(integer(operator, "ceil_mode"))
        windows = windows_of(operator, len(shape) - 2)
        counts = (windows_fit(*one, ceil) for one in zip(windows, shape[2:], strict=True))
        return (*shape[:2], *counts)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape = input_shape(operator, tensors, 0)
        return (data_box(operator, shape, box[:2], box[2:], window_reads),)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        windows = windows_of(operator, len(box) - 2)
        each = prod(window.kernel for window in windows)
        each += 0 if operator.kind == "MaxPool" else DIVISION
        return each * volume(box)


class GlobalPool(VectorOperator):
    """GlobalAveragePool, GlobalMaxPool: X ``(N, C, spatial...)`` to ``(N, C, 1...)``.

    No attributes. Costs 1 per input element, 4 more per output element of the average.
    """

    kinds = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        if len(shape) < 2:
            raise ValueError(f"input of shape {shape}, expected batch and channels at least")
        return (*shape[:2], *(1 for _ in shape[2:]))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape = input_shape(operator, tensors, 0)
        return ((*box[:2], *((0, length) for length in shape[2:])),)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        last = DIVISION if operator.kind == "GlobalAveragePool" else 0
        return elements(reads) + last * volume(box)


FAMILIES = GlobalPool, Pool
