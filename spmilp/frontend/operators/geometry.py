"""The geometry of an operator: its shape, what a box of its output reads, and the work.

Lowering, costs and value replay all ask it; none of them knows an operator by name.

Costs in element operations of the vector lanes, per element, used by every family: an addition,
multiplication, comparison, copy or conversion 1; a division, square root, exponential, logarithm,
sine or cosine 4; an error function 8. A quantised operator without MACs works on reals: each
integer read costs 2 more (subtract, multiply), and each integer written costs 3 more (multiply,
round, clamp) in every quantised operator.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from math import prod
from typing import ClassVar, TypeAlias

import numpy as np

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.boxes import volume
from spmilp.units import Box, Extents

Reads: TypeAlias = tuple[Box | None, ...]
"""For each input, what is read of it; ``None`` for nothing."""

Part: TypeAlias = tuple[int, int] | None
"""A part of a reduction, half-open; ``None`` for all of it."""

# Element operations that one element of each of these counts as; an addition counts as 1.
DIVISION = 4
EXPONENTIAL = 4
ERROR_FUNCTION = 8
DEQUANTISE = 2
REQUANTISE = 3


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

    ``loops`` are ``(loop, trip count)`` of the multiply-accumulates, loops as in
    ``MacArray.unroll``; the product is the number of MACs; empty when there are none. ``vector``
    counts element operations for the lanes (one addition counts 1; an exponential what its family's
    docstring says). ``dtype`` is the operands': ``float32``, ``float16``, ``int8``.
    """

    loops: tuple[tuple[str, int], ...] = ()
    vector: int = 0
    dtype: str = "float32"

    @property
    def macs(self) -> int:
        """Multiply-accumulates; positions on padding count, as is usual."""
        return prod(trips for _, trips in self.loops) if self.loops else 0


class Geometry(ABC):
    """How an operator's output depends on its inputs. Boxes are half-open and never empty.

    A subclass is a family of operators. Its ``prepare`` gets the shapes of the first ``needs``
    inputs and returns that of the output; the docstring says which attributes there are. ``shape``
    and ``inputs`` are the shape of the output, and those of the inputs, ``None`` for one that is
    left out. Tiles may not split the ``untiled`` axes of the output; ``reduction`` is the length of
    the one that tasks may split into partial sums, 1 for none. A ``ValueError`` says why the
    operator cannot be lowered with these inputs.
    """

    kinds: ClassVar[frozenset[str]]
    fusion: ClassVar[Fusion]
    needs: ClassVar[int] = 1
    prepare: Callable[..., Extents]
    untiled: Iterable[int] = ()
    reduction: int = 1

    def __init__(self, operator: Operator, inputs: Sequence[Tensor | None]) -> None:
        for position in range(self.needs):
            if position >= len(inputs) or inputs[position] is None:
                raise ValueError(f"input {position} of {operator.kind} is left out")
        self.operator = operator
        self.dtypes = tuple(None if tensor is None else tensor.dtype for tensor in inputs)
        self.inputs = tuple(None if tensor is None else tensor.shape for tensor in inputs)
        self.shape = self.prepare(*self.inputs[: self.needs])

    @abstractmethod
    def reads(self, box: Box, part: Part = None) -> Reads:
        """For each input, the box that the output's ``box`` depends on.

        The box is exact wherever the dependence is a box, else the least box that covers it; it is
        clipped to the tensor (padding is not read). ``None`` for an input that is left out or of
        which nothing is read. ``part`` limits the reads to a part of the reduction.
        """

    @abstractmethod
    def count(self, box: Box, reads: Reads) -> int:
        """Return the element operations for ``box``, without what quantisation adds."""

    def work(self, box: Box, part: Part = None) -> Work:
        """Return the work to compute ``box`` of the output, or a part of its reduction."""
        reads = self.reads(box)
        vector = self.count(box, reads) + self.requantisation(box)
        if self.operator.quantisation is not None:
            scales = zip(reads, self.operator.quantisation.inputs, strict=False)
            vector += DEQUANTISE * elements(read for read, scale in scales if scale is not None)
        return Work(vector=vector, dtype=self.dtype)

    def requantisation(self, box: Box) -> int:
        """Return the element operations that turn the results of ``box`` into integers."""
        quantisation = self.operator.quantisation
        written = quantisation is not None and quantisation.output is not None
        return REQUANTISE * volume(box) * written

    @cached_property
    def dtype(self) -> str:
        """The data type in which a core works: ``float32``, ``float16`` or ``int8``.

        Types of one byte count as ``int8``, all others but the 16-bit floats as ``float32``.
        """
        dtype = next(dtype for dtype in self.dtypes if dtype is not None)
        if dtype.itemsize == 1:
            return "int8"
        is_half = dtype.itemsize == 2 and not np.issubdtype(dtype, np.integer)
        return "float16" if is_half else "float32"

    def input(self, position: int) -> Extents | None:
        """Return the shape of an optional input."""
        return self.inputs[position] if position < len(self.inputs) else None


def elements(reads: Iterable[Box | None]) -> int:
    """Return how many elements are read."""
    return sum(volume(read) for read in reads if read is not None)
