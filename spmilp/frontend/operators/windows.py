"""Sliding windows along one axis: which inputs a range of outputs depends on."""

from dataclasses import dataclass
from functools import lru_cache

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.attributes import integers


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


@lru_cache(maxsize=1 << 16)
def transposed_reads(
    window: Window, outputs: tuple[int, int], length: int
) -> tuple[int, int] | None:
    """Return what a range of outputs of a transposed convolution depends on.

    Input ``i`` adds to the outputs ``i * stride - pad + k * dilation``. ``None`` when no input adds
    to the range.
    """
    low, high = length, -1
    for k in range(window.kernel):
        shift = k * window.dilation - window.pad
        earliest = max(0, -((shift - outputs[0]) // window.stride))
        latest = min(length - 1, (outputs[1] - 1 - shift) // window.stride)
        if earliest <= latest:
            low, high = min(low, earliest), max(high, latest)
    return (low, high + 1) if low <= high else None


@lru_cache(maxsize=1 << 16)
def transposed_pairs(window: Window, outputs: tuple[int, int], length: int) -> int:
    """Return how many pairs of an output and a position of the window meet an input."""
    pairs = 0
    for k in range(window.kernel):
        shift = k * window.dilation - window.pad
        earliest = max(0, -((shift - outputs[0]) // window.stride))
        latest = min(length - 1, (outputs[1] - 1 - shift) // window.stride)
        pairs += max(0, latest + 1 - earliest)
    return pairs
