"""Explicit padding for windows that ONNX lets be padded automatically."""

from collections.abc import Sequence

from spmilp.frontend.graph import Attribute
from spmilp.frontend.node import Node
from spmilp.units import Extents


def window_attributes(node: Node, kernel: Extents) -> dict[str, Attribute]:
    """Return ``kernel_shape``, ``strides``, ``dilations`` and ``pads`` of a sliding window.

    Parameters
    ----------
    kernel
        Lengths of the window along the spatial axes, where the node does not say.
    """
    rank = len(node.shape(0)) - 2
    kernel = node.listed("kernel_shape", kernel)
    strides = node.listed("strides", (1,) * rank)
    dilations = node.listed("dilations", (1,) * rank)
    return {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": _window_pads(node, kernel, strides, dilations),
    }


def _window_pads(node: Node, kernel: Extents, strides: Extents, dilations: Extents) -> Extents:
    mode = node.text("auto_pad")
    rank = len(kernel)
    if mode == "NOTSET":
        return node.listed("pads", (0,) * (2 * rank))
    if mode == "VALID":
        return (0,) * (2 * rank)
    # SAME: as many outputs as strides begin in the input.
    totals = [
        max(0, (-(-length // stride) - 1) * stride + (size - 1) * dilation + 1 - length)
        for length, size, stride, dilation in zip(
            node.shape(0)[2:], kernel, strides, dilations, strict=True
        )
    ]
    return _split(totals, more_at_end=mode == "SAME_UPPER")


def transposed_pads(node: Node, padding: Extents) -> Extents:
    """Return the pads of a ConvTranspose, ``output_shape`` and ``auto_pad`` resolved.

    Parameters
    ----------
    padding
        Its ``output_padding``.
    """
    mode = node.text("auto_pad")
    lengths = node.shape(0)[2:]
    none = (0,) * len(lengths)
    strides = node.listed("strides", (1,) * len(lengths))
    sizes = node.listed("output_shape", ())[-len(lengths) :]
    if not sizes and mode == "NOTSET":
        return node.listed("pads", none + none)
    if not sizes and mode == "VALID":
        return none + none
    if not sizes:
        sizes = tuple(length * stride for length, stride in zip(lengths, strides, strict=True))
    kernel = node.listed("kernel_shape", node.shape(1)[2:])
    dilations = node.listed("dilations", (1,) * len(lengths))
    totals = [
        max(0, stride * (length - 1) + extra + (k - 1) * dilation + 1 - size)
        for stride, length, extra, k, dilation, size in zip(
            strides, lengths, padding, kernel, dilations, sizes, strict=True
        )
    ]
    return _split(totals, more_at_end=mode == "SAME_UPPER")


def _split(totals: Sequence[int], more_at_end: bool) -> Extents:
    """Return all beginnings, then all ends; an odd element goes to one side."""
    less = [total // 2 for total in totals]
    more = [total - total // 2 for total in totals]
    return (*less, *more) if more_at_end else (*more, *less)
