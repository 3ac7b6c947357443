"""Helpers of all families: access to shapes, and defaults of the protocol.

Costs in element operations of the vector lanes, per element, used by every family: an addition,
multiplication, comparison, copy or conversion 1; a division, square root, exponential, logarithm,
sine or cosine 4; an error function 8. A quantised operator without MACs works on reals: each
integer read costs 2 more (subtract, multiply), and each integer written costs 3 more (multiply,
round, clamp) in every quantised operator.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Work
from spmilp.units import Box, Extents

DIVISION = 4
EXPONENTIAL = 4
ERROR_FUNCTION = 8
DEQUANTISE = 2
REQUANTISE = 3


class Base:
    """Defaults of a family: every axis may be tiled and there is no reduction to split."""

    def tiled_axes(self, operator: Operator, tensors: Mapping[str, Tensor]) -> tuple[bool, ...]:
        """For each axis of the output, whether tiles may split it: all."""
        return (True,) * len(tensors[operator.output].shape)

    def reduction(self, operator: Operator, tensors: Mapping[str, Tensor]) -> int:
        """Length of the reduction that tasks may split: none."""
        return 1


def required(operator: Operator, inputs: Sequence[Tensor | None], position: int) -> Tensor:
    """Return an input that must be there.

    Raises
    ------
    ValueError
        If it is left out.
    """
    tensor = inputs[position] if position < len(inputs) else None
    if tensor is None:
        raise ValueError(f"input {position} of {operator.kind} is left out")
    return tensor


def has_input(operator: Operator, position: int) -> bool:
    """Return whether an optional input is there."""
    return position < len(operator.inputs) and operator.inputs[position] != ""


def input_shape(operator: Operator, tensors: Mapping[str, Tensor], position: int) -> Extents:
    """Return the shape of an input."""
    return tensors[operator.inputs[position]].shape


def output_shape_of(operator: Operator, tensors: Mapping[str, Tensor]) -> Extents:
    """Return the shape of the output."""
    return tensors[operator.output].shape


def work_dtype(operator: Operator, tensors: Mapping[str, Tensor]) -> str:
    """Return the data type in which a core works: ``float32``, ``float16`` or ``int8``.

    Types of one byte count as ``int8``, all others but the 16-bit floats as ``float32``.
    """
    dtype = tensors[next(name for name in operator.inputs if name)].dtype
    if dtype.itemsize == 1:
        return "int8"
    if dtype.itemsize == 2 and not np.issubdtype(dtype, np.integer):
        return "float16"
    return "float32"


def requantisation(operator: Operator, box: Box) -> int:
    """Return the element operations that turn the results of ``box`` into integers."""
    if operator.quantisation is None or operator.quantisation.output is None:
        return 0
    return REQUANTISE * volume(box)


def vector_work(
    operator: Operator,
    tensors: Mapping[str, Tensor],
    box: Box,
    reads: Sequence[Box | None],
    count: int,
) -> Work:
    """Return work without MACs: ``count`` element operations and what quantisation adds."""
    if operator.quantisation is not None:
        scales = operator.quantisation.inputs
        quantised = (read for read, scale in zip(reads, scales, strict=False) if scale is not None)
        count += DEQUANTISE * sum(volume(read) for read in quantised if read is not None)
        count += requantisation(operator, box)
    return Work(vector=count, dtype=work_dtype(operator, tensors))
