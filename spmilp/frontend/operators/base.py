"""Helpers of all families: access to shapes, and what many of them have in common.

Costs in element operations of the vector lanes, per element, used by every family: an addition,
multiplication, comparison, copy or conversion 1; a division, square root, exponential, logarithm,
sine or cosine 4; an error function 8. A quantised operator without MACs works on reals: each
integer read costs 2 more (subtract, multiply), and each integer written costs 3 more (multiply,
round, clamp) in every quantised operator.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.attributes import integer
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Inputs, Part, Reads, Tensors, Work
from spmilp.units import Box, Extents

DIVISION = 4
EXPONENTIAL = 4
ERROR_FUNCTION = 8
DEQUANTISE = 2
REQUANTISE = 3


class Base:
    """Defaults of a family: every axis may be tiled and there is no reduction to split."""

    def tiled_axes(self, operator: Operator, tensors: Tensors) -> tuple[bool, ...]:
        """For each axis of the output, whether tiles may split it: all."""
        return (True,) * len(tensors[operator.output].shape)

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        """Length of the reduction that tasks may split: none."""
        return 1


class VectorOperator(Base, ABC):
    """A family without products: all of its work is of the vector lanes."""

    @abstractmethod
    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """For each input, the least box that holds what ``box`` of the output needs."""

    @abstractmethod
    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        """Return the element operations for ``box``, without what quantisation adds."""

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        """Return the element operations, and those that quantisation adds."""
        reads = self.reads(operator, tensors, box)
        count = self.count(operator, tensors, box, reads)
        if operator.quantisation is not None:
            scales = zip(reads, operator.quantisation.inputs, strict=False)
            count += DEQUANTISE * elements(read for read, scale in scales if scale is not None)
            count += requantisation(operator, box)
        return Work(vector=count, dtype=work_dtype(operator, tensors))


class AlongAxis(VectorOperator):
    """Every output element depends on the whole of its line along ``axis``, which is not tiled.

    Attribute ``axis``, not negative; along the other axes the output is as long as the first input.
    """

    def tiled_axes(self, operator: Operator, tensors: Tensors) -> tuple[bool, ...]:
        """All axes but the one."""
        own = integer(operator, "axis")
        return tuple(axis != own for axis in range(len(output_shape_of(operator, tensors))))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the box with the whole of the axis."""
        axis = integer(operator, "axis")
        length = input_shape(operator, tensors, 0)[axis]
        return ((*box[:axis], (0, length), *box[axis + 1 :]),)


def required(operator: Operator, inputs: Inputs, position: int) -> Tensor:
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


def input_shape(operator: Operator, tensors: Tensors, position: int) -> Extents:
    """Return the shape of an input."""
    return tensors[operator.inputs[position]].shape


def output_shape_of(operator: Operator, tensors: Tensors) -> Extents:
    """Return the shape of the output."""
    return tensors[operator.output].shape


def work_dtype(operator: Operator, tensors: Tensors) -> str:
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


def elements(reads: Iterable[Box | None]) -> int:
    """Return how many elements are read."""
    return sum(volume(read) for read in reads if read is not None)
