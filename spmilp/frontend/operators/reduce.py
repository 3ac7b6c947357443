"""Reductions over whole axes; the running sum and the greatest elements along one."""

from collections.abc import Mapping

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.attributes import axis_of, integer, integers
from spmilp.frontend.operators.base import (
    DIVISION,
    EXPONENTIAL,
    AlongAxis,
    VectorOperator,
    elements,
    input_shape,
    required,
)
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.family import Fusion, Inputs, Part, Reads, Tensors
from spmilp.units import Box, Extents

EACH: Mapping[str, int] = {
    "ReduceL1": 2,
    "ReduceL2": 2,
    "ReduceLogSum": 1,
    "ReduceLogSumExp": EXPONENTIAL + 3,
    "ReduceMax": 1,
    "ReduceMean": 1,
    "ReduceMin": 1,
    "ReduceProd": 1,
    "ReduceSum": 1,
    "ReduceSumSquare": 2,
}
"""Element operations per input element."""

POSITIONS: Mapping[str, int] = {"ArgMax": 2, "ArgMin": 2}
"""Element operations per input element of those that give the position of an element."""

LAST: Mapping[str, int] = {
    "ReduceL2": DIVISION,
    "ReduceLogSum": EXPONENTIAL,
    "ReduceLogSumExp": EXPONENTIAL + 1,
    "ReduceMean": DIVISION,
}
"""Element operations per output element, where there are any."""


class Reduce(VectorOperator):
    """ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1 and their like, ArgMax.

    Input: X. Attributes: ``axes`` (all of the reduced axes, not negative, sorted; none for a copy),
    ``keepdims`` (0 or 1); ArgMax and ArgMin have one axis and ``select_last_index`` (0 or 1).
    Integer inputs of ReduceMean are divided as integers, toward zero.

    Reduced axes are not tiled.
    """

    kinds = frozenset({*EACH, *POSITIONS})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape without the reduced axes, or with length 1 there."""
        shape = required(operator, inputs, 0).shape
        axes = integers(operator, "axes")
        if any(not 0 <= axis < len(shape) for axis in axes):
            raise ValueError(f"axes are {axes}, expected 0 to {len(shape) - 1}")
        if integer(operator, "keepdims"):
            return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
        return tuple(length for axis, length in enumerate(shape) if axis not in axes)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the box with the reduced axes whole."""
        shape, axes = input_shape(operator, tensors, 0), integers(operator, "axes")
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        own = [(0, length) for length in shape]
        positions = kept if integer(operator, "keepdims") else range(len(kept))
        for axis, position in zip(kept, positions, strict=True):
            own[axis] = box[position]
        return (tuple(own),)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        """Return the element operations."""
        each = EACH.get(operator.kind) or POSITIONS[operator.kind]
        return each * elements(reads) + LAST.get(operator.kind, 0) * volume(box)


class CumSum(AlongAxis):
    """CumSum; attributes ``axis`` (not negative), ``exclusive``, ``reverse`` (0 or 1).

    The axis is not tiled. Costs 1 per element read.
    """

    kinds = frozenset({"CumSum"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of X."""
        shape = required(operator, inputs, 0).shape
        axis_of(operator, len(shape))
        integer(operator, "exclusive")
        integer(operator, "reverse")
        return shape

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        """Return the element operations."""
        return elements(reads)


class TopK(AlongAxis):
    """TopK: the ``k`` greatest or least elements along an axis in order, or their positions.

    Input: X. Attributes: ``axis`` (not negative), ``k``, ``largest`` (0 or 1), ``positions`` (1 for
    the second output of ONNX's TopK, 0 for the first). Of equal elements the first comes first.

    The axis is not tiled. Costs the comparisons of a heap of ``k``, per element read.
    """

    kinds = frozenset({"TopK"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of X with ``k`` elements along the axis."""
        shape = required(operator, inputs, 0).shape
        axis, k = axis_of(operator, len(shape)), integer(operator, "k")
        integer(operator, "largest")
        integer(operator, "positions")
        if not 1 <= k <= shape[axis]:
            raise ValueError(f"k is {k}, expected 1 to {shape[axis]}")
        return (*shape[:axis], k, *shape[axis + 1 :])

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        """Return the element operations."""
        return (1 + integer(operator, "k").bit_length()) * elements(reads)
