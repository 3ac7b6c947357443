"""Reductions over whole axes, along one axis, and normalisations."""

from collections.abc import Mapping

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape, volume, whole
from spmilp.frontend.operators.family import (
    DIVISION,
    EXPONENTIAL,
    Fusion,
    Inputs,
    Part,
    Reads,
    Tensors,
    VectorOperator,
    axis_of,
    elements,
    input_shape,
    integer,
    integers,
    number,
    required,
)
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
        shape = required(operator, inputs, 0).shape
        axes = integers(operator, "axes")
        if any(not 0 <= axis < len(shape) for axis in axes):
            raise ValueError(f"axes are {axes}, expected 0 to {len(shape) - 1}")
        if integer(operator, "keepdims"):
            return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
        return tuple(length for axis, length in enumerate(shape) if axis not in axes)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape, axes = input_shape(operator, tensors, 0), integers(operator, "axes")
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        own = [(0, length) for length in shape]
        positions = kept if integer(operator, "keepdims") else range(len(kept))
        for axis, position in zip(kept, positions, strict=True):
            own[axis] = box[position]
        return (tuple(own),)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        each = EACH.get(operator.kind) or POSITIONS[operator.kind]
        return each * elements(reads) + LAST.get(operator.kind, 0) * volume(box)


class AlongAxis(VectorOperator):
    """Softmax, LogSoftmax, CumSum, TopK: each element depends on its whole line along ``axis``.

    Input: X. Attribute ``axis``, not negative; that axis is not tiled.

    - Softmax, LogSoftmax (the meaning since opset 13): per element of the whole axis maximum,
      subtraction, exponential, sum (7), then a division (Softmax) or a subtraction (LogSoftmax);
      the logarithm of the sum is left out.
    - CumSum: attributes ``exclusive``, ``reverse`` (0 or 1). Costs 1 per element read.
    - TopK, the ``k`` greatest or least elements in order, or their positions: attributes ``k``,
      ``largest`` (0 or 1), ``positions`` (1 for the second output of ONNX's TopK, 0 for the first).
      Of equal elements the first comes first. Costs the comparisons of a heap of ``k``, per element
      read.
    """

    kinds = frozenset({"CumSum", "LogSoftmax", "Softmax", "TopK"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        axis = axis_of(operator, len(shape))
        for name in _INTEGERS_OF.get(operator.kind, ()):
            integer(operator, name)
        if operator.kind != "TopK":
            return shape
        k = integer(operator, "k")
        if not 1 <= k <= shape[axis]:
            raise ValueError(f"k is {k}, expected 1 to {shape[axis]}")
        return (*shape[:axis], k, *shape[axis + 1 :])

    def tiled_axes(self, operator: Operator, tensors: Tensors) -> tuple[bool, ...]:
        own = integer(operator, "axis")
        return tuple(axis != own for axis in range(len(tensors[operator.output].shape)))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        axis = integer(operator, "axis")
        length = input_shape(operator, tensors, 0)[axis]
        return ((*box[:axis], (0, length), *box[axis + 1 :]),)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        match operator.kind:
            case "CumSum":
                each = 1
            case "TopK":
                each = 1 + integer(operator, "k").bit_length()
            case kind:
                each = EXPONENTIAL + 3 + (DIVISION if kind == "Softmax" else 1)
        return each * elements(reads)


_INTEGERS_OF = {"CumSum": ("exclusive", "reverse"), "TopK": ("k", "largest", "positions")}


class BatchNormalization(VectorOperator):
    """BatchNormalization at inference: ``(x - mean) / sqrt(var + epsilon) * scale + bias``.

    Inputs: X ``(N, C, ...)``, scale, bias, mean, var, each ``(C)``. Attributes: ``epsilon``.

    Costs 2 per element and 12 per channel.
    """

    kinds = frozenset({"BatchNormalization"})
    fusion = Fusion.ELEMENTWISE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        return _shape_with_parameters(operator, inputs, 4)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        return (box, *((box[1],) for _ in range(4)))

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        return 2 * volume(box) + (2 * DIVISION + 4) * (box[1][1] - box[1][0])


def _shape_with_parameters(operator: Operator, inputs: Inputs, count: int) -> Extents:
    """Return the shape of X ``(N, C, ...)``, which ``count`` inputs of shape ``(C)`` follow."""
    shape = required(operator, inputs, 0).shape
    number(operator, "epsilon")
    for position in range(1, count + 1):
        given = required(operator, inputs, position).shape
        if len(shape) < 2 or given != (shape[1],):
            raise ValueError(f"input {position} of shape {given} for data of shape {shape}")
    return shape


class GroupNormalization(VectorOperator):
    """InstanceNormalization, GroupNormalization (opset 21: scale and bias per channel).

    Inputs: X ``(N, C, ...)``, scale ``(C)``, bias ``(C)``. Attributes: ``epsilon``;
    GroupNormalization ``num_groups``. Statistics are in float32.

    The spatial axes are not tiled, the channels only where each is a group of its own. Costs 7 per
    element and 8 per group.
    """

    kinds = frozenset({"InstanceNormalization", "GroupNormalization"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = _shape_with_parameters(operator, inputs, 2)
        if shape[1] % self._groups(operator, shape) != 0:
            raise ValueError(f"{shape[1]} channels in {self._groups(operator, shape)} groups")
        return shape

    def tiled_axes(self, operator: Operator, tensors: Tensors) -> tuple[bool, ...]:
        shape = tensors[operator.output].shape
        alone = self._groups(operator, shape) == shape[1]
        return (True, alone, *(False for _ in shape[2:]))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape = input_shape(operator, tensors, 0)
        size = shape[1] // self._groups(operator, shape)
        channels = (box[1][0] // size * size, -(-box[1][1] // size) * size)
        return (box[0], channels, *whole(shape)[2:]), (box[1],), (box[1],)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        data = reads[0] or box
        shape = input_shape(operator, tensors, 0)
        size = shape[1] // self._groups(operator, shape)
        groups = (data[0][1] - data[0][0]) * (data[1][1] - data[1][0]) // size
        return EACH_NORMALISED * volume(data) + 2 * DIVISION * groups

    def _groups(self, operator: Operator, shape: Extents) -> int:
        if operator.kind == "InstanceNormalization":
            return shape[1]
        return integer(operator, "num_groups")


EACH_NORMALISED = 7
"""Element operations: mean, difference, square and its sum, division, scale, bias."""


class LayerNormalization(VectorOperator):
    """LayerNormalization and RMSNormalization over the axes from ``axis`` on.

    Inputs: X, scale, and for LayerNormalization an optional bias; both broadcast to X.
    Attributes: ``axis`` (not negative), ``epsilon``. Statistics are in float32.

    Costs 7 per element and 8 per normalised row.
    """

    kinds = frozenset({"LayerNormalization", "RMSNormalization"})
    fusion = Fusion.REDUCTION

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        axis_of(operator, len(shape))
        number(operator, "epsilon")
        others = [tensor.shape for tensor in inputs[1:] if tensor is not None]
        required(operator, inputs, 1)
        if broadcast_shape((shape, *others)) != shape:
            raise ValueError(f"scale or bias of shapes {others} do not broadcast to {shape}")
        return shape

    def tiled_axes(self, operator: Operator, tensors: Tensors) -> tuple[bool, ...]:
        first = integer(operator, "axis")
        return tuple(axis < first for axis in range(len(tensors[operator.output].shape)))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        axis = integer(operator, "axis")
        shape = input_shape(operator, tensors, 0)
        others = (
            broadcast_box(tensors[name].shape, box) if name else None
            for name in operator.inputs[1:]
        )
        return ((*box[:axis], *whole(shape)[axis:]), *others)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        rows = volume(box[: integer(operator, "axis")])
        return EACH_NORMALISED * elements(reads[:1]) + 2 * DIVISION * rows


class LRN(VectorOperator):
    """LRN across channels; attributes ``size``, ``alpha``, ``beta``, ``bias``.

    Each channel reads ``floor((size - 1) / 2)`` channels before it and ``ceil((size - 1) / 2)``
    behind it. Costs 1 per element read for its square, and per output element ``size`` additions,
    a power, a division and 2.
    """

    kinds = frozenset({"LRN"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        integer(operator, "size")
        for name in ("alpha", "beta", "bias"):
            number(operator, name)
        if len(shape) < 2:
            raise ValueError(f"input of shape {shape}, expected batch and channels at least")
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        size, channels = integer(operator, "size"), input_shape(operator, tensors, 0)[1]
        start, stop = box[1]
        wider = (max(0, start - (size - 1) // 2), min(channels, stop + size // 2))
        return ((box[0], wider, *box[2:]),)

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        each = integer(operator, "size") + 2 * EXPONENTIAL + DIVISION + 2
        return elements(reads) + each * volume(box)


FAMILIES = AlongAxis, BatchNormalization, GroupNormalization, LayerNormalization, LRN, Reduce
