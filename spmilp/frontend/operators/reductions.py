"""Reductions over whole axes, along one axis, and normalisations."""

from collections.abc import Mapping

import numpy as np

from spmilp.frontend.operators.boxes import broadcast_box, volume, whole
from spmilp.frontend.operators.geometry import (
    DIVISION,
    EXPONENTIAL,
    Fusion,
    Geometry,
    Part,
    Reads,
    elements,
)
from spmilp.units import Box, Extents

EACH: Mapping[str, int] = {
    **dict.fromkeys(("ReduceLogSum", "ReduceMax", "ReduceMean", "ReduceMin"), 1),
    **dict.fromkeys(("ReduceProd", "ReduceSum"), 1),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare"), 2),
    "ReduceLogSumExp": EXPONENTIAL + 3,
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

EACH_NORMALISED = 7
"""Element operations: mean, difference, square and its sum, division, scale, bias."""


class Reduce(Geometry):
    """ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1 and their like, ArgMax.

    Input: X. Attributes: ``axes`` (all of the reduced axes, not negative, sorted; none for a copy),
    ``keepdims`` (0 or 1); ArgMax and ArgMin have one axis and ``select_last_index`` (0 or 1).
    Integer inputs of ReduceMean are divided as integers, toward zero.

    Reduced axes are not tiled.
    """

    kinds = frozenset({*EACH, *POSITIONS})
    fusion = Fusion.REDUCTION

    def prepare(self, data: Extents) -> Extents:
        axes = self.operator.integers("axes")
        if any(not 0 <= axis < len(data) for axis in axes):
            raise ValueError(f"axes are {axes}, expected 0 to {len(data) - 1}")
        self.whole, self.kept = whole(data), [a for a in range(len(data)) if a not in axes]
        # Where each axis that is kept lies in the result.
        self.positions = [*range(len(self.kept))]
        if self.operator.integer("keepdims"):
            self.positions = self.kept
            return tuple(1 if axis in axes else length for axis, length in enumerate(data))
        return tuple(data[axis] for axis in self.kept)

    def reads(self, box: Box, part: Part = None) -> Reads:
        own = [*self.whole]
        for axis, position in zip(self.kept, self.positions, strict=True):
            own[axis] = box[position]
        return (tuple(own),)

    def count(self, box: Box, reads: Reads) -> int:
        kind = self.operator.kind
        each = EACH.get(kind) or POSITIONS[kind]
        return each * elements(reads) + LAST.get(kind, 0) * volume(box)


class AlongAxis(Geometry):
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

    integers: Mapping[str, tuple[str, ...]] = {
        "CumSum": ("exclusive", "reverse"),
        "LogSoftmax": (),
        "Softmax": (),
        "TopK": ("k", "largest", "positions"),
    }
    kinds = frozenset(integers)
    fusion = Fusion.REDUCTION

    def prepare(self, data: Extents) -> Extents:
        axis, kind = self.operator.axis(len(data)), self.operator.kind
        self.untiled, self.length = (axis,), data[axis]
        given = [self.operator.integer(name) for name in self.integers[kind]]
        self.each = {"CumSum": 1, "LogSoftmax": EXPONENTIAL + 4}.get(kind, EXPONENTIAL + 7)
        if kind != "TopK":
            return data
        k = given[0]
        if not 1 <= k <= self.length:
            raise ValueError(f"k is {k}, expected 1 to {self.length}")
        self.each = 1 + k.bit_length()
        return (*data[:axis], k, *data[axis + 1 :])

    def reads(self, box: Box, part: Part = None) -> Reads:
        (axis,) = self.untiled
        return ((*box[:axis], (0, self.length), *box[axis + 1 :]),)

    def count(self, box: Box, reads: Reads) -> int:
        return self.each * elements(reads)


class ByChannel(Geometry):
    """BatchNormalization, InstanceNormalization, GroupNormalization (opset 21) at inference.

    Inputs: X ``(N, C, ...)``, then one number per channel: scale, bias, and for BatchNormalization
    mean and variance. Attributes: ``epsilon``; GroupNormalization ``num_groups``.

    BatchNormalization, ``(x - mean) / sqrt(var + epsilon) * scale + bias``, costs 2 per element and
    12 per channel. The others have statistics in float32; their spatial axes are not tiled, the
    channels only where each is a group of its own. They cost 7 per element and 8 per group.
    """

    needs = 3

    def prepare(self, data: Extents, *parameters: Extents) -> Extents:
        for position, given in enumerate(parameters, start=1):
            if len(data) < 2 or given != data[1:2]:
                raise ValueError(f"input {position} of shape {given} for data of shape {data}")
        return data

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (box, *((box[1],) for _ in self.inputs[1:]))


class BatchNormalization(ByChannel):
    """Each element by itself."""

    kinds = frozenset({"BatchNormalization"})
    fusion = Fusion.ELEMENTWISE
    needs = 5

    def count(self, box: Box, reads: Reads) -> int:
        return 2 * volume(box) + (2 * DIVISION + 4) * (box[1][1] - box[1][0])


class GroupNormalization(ByChannel):
    """The elements of a group of channels together."""

    kinds = frozenset({"InstanceNormalization", "GroupNormalization"})
    fusion = Fusion.REDUCTION

    def prepare(self, data: Extents, *parameters: Extents) -> Extents:
        shape = super().prepare(data, *parameters)
        alone = self.operator.kind == "InstanceNormalization"
        groups = data[1] if alone else self.operator.integer("num_groups")
        if data[1] % groups != 0:
            raise ValueError(f"{data[1]} channels in {groups} groups")
        self.size = data[1] // groups
        self.untiled = range(2 if self.size == 1 else 1, len(data))
        return shape

    def reads(self, box: Box, part: Part = None) -> Reads:
        channels = (box[1][0] // self.size * self.size, -(-box[1][1] // self.size) * self.size)
        return ((box[0], channels, *whole(self.shape)[2:]), *super().reads(box)[1:])

    def count(self, box: Box, reads: Reads) -> int:
        data = reads[0] or box
        return EACH_NORMALISED * volume(data) + 2 * DIVISION * volume(data[:2]) // self.size


class LayerNormalization(Geometry):
    """LayerNormalization and RMSNormalization over the axes from ``axis`` on.

    Inputs: X, scale, and for LayerNormalization an optional bias; both broadcast to X.
    Attributes: ``axis`` (not negative), ``epsilon``. Statistics are in float32.

    Costs 7 per element and 8 per normalised row.
    """

    kinds = frozenset({"LayerNormalization", "RMSNormalization"})
    fusion = Fusion.REDUCTION
    needs = 2

    def prepare(self, data: Extents, scale: Extents) -> Extents:
        self.first = self.operator.axis(len(data))
        self.untiled = range(self.first, len(data))
        others = [shape for shape in self.inputs[1:] if shape is not None]
        if np.broadcast_shapes(data, *others) != data:
            raise ValueError(f"scale or bias of shapes {others} do not broadcast to {data}")
        return data

    def reads(self, box: Box, part: Part = None) -> Reads:
        others = (None if own is None else broadcast_box(own, box) for own in self.inputs[1:])
        return ((*box[: self.first], *whole(self.shape)[self.first :]), *others)

    def count(self, box: Box, reads: Reads) -> int:
        return EACH_NORMALISED * elements(reads[:1]) + 2 * DIVISION * volume(box[: self.first])


class LRN(Geometry):
    """LRN across channels; attributes ``size``, ``alpha``, ``beta``, ``bias``.

    Each channel reads ``floor((size - 1) / 2)`` channels before it and ``ceil((size - 1) / 2)``
    behind it. Costs 1 per element read for its square, and per output element ``size`` additions,
    a power, a division and 2.
    """

    kinds = frozenset({"LRN"})
    fusion = Fusion.COMPLEX

    def prepare(self, data: Extents) -> Extents:
        self.size = self.operator.integer("size")
        if len(data) < 2:
            raise ValueError(f"input of shape {data}, expected batch and channels at least")
        return data

    def reads(self, box: Box, part: Part = None) -> Reads:
        start, stop = box[1]
        first, end = max(0, start - (self.size - 1) // 2), stop + self.size // 2
        return ((box[0], (first, min(self.shape[1], end)), *box[2:]),)

    def count(self, box: Box, reads: Reads) -> int:
        return elements(reads) + (self.size + 2 * EXPONENTIAL + DIVISION + 2) * volume(box)


FAMILIES = AlongAxis, BatchNormalization, GroupNormalization, LayerNormalization, LRN, Reduce
