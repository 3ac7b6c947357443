"""Knowledge of an operator: shapes, regions, work. One family per kind of operator.

Lowering, costs and value replay all ask the families; none of them knows an operator by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol, TypeAlias

from spmilp.frontend.graph import Operator, Tensor
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


class Family(Protocol):
    """Knowledge of one family of operators. Stateless; boxes are half-open and never empty."""

    kinds: frozenset[str]
    fusion: Fusion

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of the output.

        Raises
        ------
        ValueError
            If the operator cannot be lowered with these inputs; the message is the reason.
        """
        ...

    def tiled_axes(self, operator: Operator, tensors: Tensors) -> tuple[bool, ...]:
        """For each axis of the output, whether tiles may split it."""
        ...

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        """Length of the reduction that tasks may split into partial sums; 1 if none."""
        ...

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """For each input, the box that the output's ``box`` depends on.

        The box is exact wherever the dependence is a box, else the least box that covers it; it is
        clipped to the tensor (padding is not read). ``None`` for an input that is left out or of
        which nothing is read. ``part`` limits the reads to a part of the reduction.
        """
        ...

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        """Return the work to compute ``box`` of the output, or a part of its reduction."""
        ...
