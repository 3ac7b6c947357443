"""Knowledge of an operator: shapes, regions, work. One family per kind of operator.

Lowering, costs and value replay all ask the families; none of them knows an operator by name.

Costs in element operations of the vector lanes, per element, used by every family: an addition,
multiplication, comparison, copy or conversion 1; a division, square root, exponential, logarithm,
sine or cosine 4; an error function 8. A quantised operator without MACs works on reals: each
integer read costs 2 more (subtract, multiply), and each integer written costs 3 more (multiply,
round, clamp) in every quantised operator.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

import numpy as np

from spmilp.frontend.graph import Attribute, Operator, Tensor
from spmilp.frontend.operators.boxes import volume
from spmilp.units import Box, Extents

Tensors: TypeAlias = Mapping[str, Tensor]
"""Tensors by their names."""

Inputs: TypeAlias = Sequence[Tensor | None]
"""The inputs of an operator; ``None`` for one that is left out."""

Reads: TypeAlias = tuple[Box | None, ...]
"""For each input, what is read of it; ``None`` for nothing."""

Part: TypeAlias = tuple[int, int] | None
"""A part of a reduction, half-open; ``None`` for all of it."""


class Fusion(Enum):
    """How an operator may be fused (TVM's classes; Chen et al., OSDI 2018, section 3)."""

    VIEW = auto()
    """Moves no bytes: its output is its inputs, seen differently."""
    ELEMENTWISE = auto()
    """One output element from the same element of each input, or from a broadcast one."""
    INJECTIVE = auto()
    """Each output element is a copy of one input element (Transpose, Pad, Gather, Resize)."""
    REDUCTION = auto()
    """Reduces axes of its input; element-wise operators follow it, injective ones precede it."""
    COMPLEX = auto()
    """Convolutions, matrix products, pooling: element-wise operators may follow."""
    OPAQUE = auto()
    """Stays alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work of a tile, independent of any core.

    Parameters
    ----------
    loops
        ``(loop, trip count)`` of the multiply-accumulates, loops as in ``MacArray.unroll``; the
        product is the number of MACs. Empty when there are none.
    vector
        Element operations for the vector lanes (one addition counts 1; an exponential counts what
        its family's docstring says).
    dtype
        Of the operands: ``float32``, ``float16``, ``int8``.
    """

    loops: tuple[tuple[str, int], ...] = ()
    vector: int = 0
    dtype: str = "float32"


class Family(ABC):
    """Knowledge of one family of operators. Stateless; boxes are half-open and never empty.

    Unless a family says otherwise, every axis may be tiled and there is no reduction to split.
    """

    kinds: frozenset[str]
    fusion: Fusion

    @abstractmethod
    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of the output.

        Raises
        ------
        ValueError
            If the operator cannot be lowered with these inputs; the message is the reason.
        """

    def tiled_axes(self, operator: Operator, tensors: Tensors) -> tuple[bool, ...]:
        """For each axis of the output, whether tiles may split it."""
        return (True,) * len(tensors[operator.output].shape)

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        """Length of the reduction that tasks may split into partial sums; 1 if none."""
        return 1

    @abstractmethod
    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """For each input, the box that the output's ``box`` depends on.

        The box is exact wherever the dependence is a box, else the least box that covers it; it is
        clipped to the tensor (padding is not read). ``None`` for an input that is left out or of
        which nothing is read. ``part`` limits the reads to a part of the reduction.
        """

    @abstractmethod
    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        """Return the work to compute ``box`` of the output, or a part of its reduction."""


class VectorOperator(Family):
    """A family without products: all of its work is of the vector lanes."""

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


DIVISION = 4
EXPONENTIAL = 4
ERROR_FUNCTION = 8
DEQUANTISE = 2
REQUANTISE = 3


def integer(operator: Operator, name: str) -> int:
    """Return an attribute that is one integer."""
    value = _value(operator, name)
    if not isinstance(value, int):
        raise _wrong(operator, name, value, "an integer")
    return value


def number(operator: Operator, name: str) -> float:
    """Return an attribute that is one number."""
    value = _value(operator, name)
    if not isinstance(value, int | float):
        raise _wrong(operator, name, value, "a number")
    return float(value)


def text(operator: Operator, name: str) -> str:
    """Return an attribute that is a text."""
    value = _value(operator, name)
    if not isinstance(value, str):
        raise _wrong(operator, name, value, "a text")
    return value


def integers(operator: Operator, name: str, count: int | None = None) -> tuple[int, ...]:
    """Return an attribute that is a tuple of integers, ``count`` of them where given."""
    values = _tuple(operator, name, count)
    return _as_integers(operator, name, values)


def integers_at(operator: Operator, name: str, positions: Sequence[int]) -> tuple[int, ...]:
    """Return some values of an attribute that is a tuple of integers; no others are looked at."""
    values = _tuple(operator, name, None)
    return _as_integers(operator, name, tuple(values[position] for position in positions))


def _as_integers(operator: Operator, name: str, values: tuple[float, ...]) -> tuple[int, ...]:
    found = tuple(value for value in values if isinstance(value, int))
    if len(found) < len(values):
        raise _wrong(operator, name, values, "integers")
    return found


def numbers(operator: Operator, name: str, count: int | None = None) -> tuple[float, ...]:
    """Return an attribute that is a tuple of numbers, ``count`` of them where given."""
    return tuple(float(value) for value in _tuple(operator, name, count))


def has(operator: Operator, name: str) -> bool:
    """Return whether an attribute is present."""
    return name in operator.attributes


def axis_of(operator: Operator, rank: int, name: str = "axis") -> int:
    """Return an attribute that is an axis of a tensor of ``rank`` axes."""
    axis = integer(operator, name)
    if not 0 <= axis < rank:
        raise ValueError(f"{name} is {axis}, expected 0 to {rank - 1}")
    return axis


def _value(operator: Operator, name: str) -> Attribute:
    if name not in operator.attributes:
        raise ValueError(f"attribute {name} of {operator.kind} is missing")
    return operator.attributes[name]


def _tuple(operator: Operator, name: str, count: int | None) -> tuple[int, ...] | tuple[float, ...]:
    value = _value(operator, name)
    if not isinstance(value, tuple):
        raise _wrong(operator, name, value, "a tuple")
    if count is not None and len(value) != count:
        raise _wrong(operator, name, value, f"{count} values")
    return value


def _wrong(operator: Operator, name: str, value: Attribute, expected: str) -> ValueError:
    return ValueError(f"attribute {name} of {operator.kind} is {value!r}, expected {expected}")


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
