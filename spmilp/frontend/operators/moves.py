"""Operators that only move elements: other axes, parts, copies, positions that indices name."""

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.boxes import broadcast_box, covering_ranges, intersect, volume, whole
from spmilp.frontend.operators.geometry import Fusion, Geometry, Part, Reads, elements
from spmilp.units import Box, Extents, Interval


class Moves(Geometry):
    """Moves elements without arithmetic: a view costs nothing, else 1 per output element."""

    def count(self, box: Box, reads: Reads) -> int:
        return 0 if self.fusion is Fusion.VIEW else volume(box)


class Concat(Moves):
    """Concat along ``axis`` (not negative); any number of inputs."""

    kinds = frozenset({"Concat"})
    fusion = Fusion.VIEW

    def prepare(self, first: Extents) -> Extents:
        if None in self.inputs:
            raise ValueError(f"input {self.inputs.index(None)} of Concat is left out")
        shapes = [shape for shape in self.inputs if shape is not None]
        self.along = axis = self.operator.axis(len(first))
        if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1:
            raise ValueError(f"shapes {shapes} differ along other axes than {axis}")
        self.lengths = [shape[axis] for shape in shapes]
        return (*first[:axis], sum(self.lengths), *first[axis + 1 :])

    def reads(self, box: Box, part: Part = None) -> Reads:
        axis = self.along
        boxes: list[Box | None] = []
        low, high = box[axis]
        for length in self.lengths:
            inside = (max(low, 0), min(high, length))
            boxes.append((*box[:axis], inside, *box[axis + 1 :]) if inside[0] < inside[1] else None)
            low, high = low - length, high - length
        return tuple(boxes)


class Expand(Moves):
    """Expand; attribute ``shape``, with which the input's shape broadcasts to the result's."""

    kinds = frozenset({"Expand"})
    fusion = Fusion.VIEW

    def prepare(self, data: Extents) -> Extents:
        self.data = data
        return np.broadcast_shapes(data, self.operator.integers("shape"))

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (broadcast_box(self.data, box),)


class Tile(Moves):
    """Tile; attribute ``repeats``, one positive integer per axis."""

    kinds = frozenset({"Tile"})
    fusion = Fusion.INJECTIVE

    def prepare(self, data: Extents) -> Extents:
        self.data, repeats = data, self.operator.integers("repeats", len(data))
        if min(repeats, default=1) < 1:
            raise ValueError(f"repeats are {repeats}, expected positive integers")
        return tuple(length * count for length, count in zip(data, repeats, strict=True))

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (tuple(map(_in_one_copy, self.data, box)),)


def _in_one_copy(length: int, interval: Interval) -> Interval:
    start, last = interval[0], interval[1] - 1
    one = start // length == last // length
    return (start % length, last % length + 1) if one else (0, length)


class Trilu(Moves):
    """Trilu: keeps the upper or lower triangle of the last two axes, zeroes the rest.

    Attributes: ``upper`` (0 or 1), ``k`` (the diagonal).
    """

    kinds = frozenset({"Trilu"})
    fusion = Fusion.INJECTIVE

    def prepare(self, data: Extents) -> Extents:
        if len(data) < 2:
            raise ValueError(f"input of shape {data}, expected a matrix at least")
        return data

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (box,)


class Slice(Moves):
    """Slice; a Split is several of these.

    Input: X. Attributes: ``starts``, ``ends``, ``axes`` (not negative), ``steps``, of one length;
    starts and ends as in ONNX (negative ones count from the end, those outside are clamped). Steps
    may be negative; what is read is then the covering range.
    """

    kinds = frozenset({"Slice"})
    fusion = Fusion.VIEW

    def prepare(self, data: Extents) -> Extents:
        own, self.ranges = self.operator, [range(length) for length in data]
        axes = own.integers("axes")
        ends = (own.integers(name, len(axes)) for name in ("starts", "ends", "steps"))
        for axis, start, end, step in zip(axes, *ends, strict=True):
            if not 0 <= axis < len(data) or step == 0:
                raise ValueError(f"axis {axis} with step {step} of a tensor of shape {data}")
            # Python counts from the end and clamps as ONNX does.
            self.ranges[axis] = range(data[axis])[start:end:step]
        taken = tuple(map(len, self.ranges))
        if 0 in taken:
            raise ValueError(f"the result of shape {taken} is empty")
        return taken

    def reads(self, box: Box, part: Part = None) -> Reads:
        ends = (
            sorted((positions[start], positions[stop - 1]))
            for positions, (start, stop) in zip(self.ranges, box, strict=True)
        )
        return (tuple([(low, high + 1) for low, high in ends]),)


class Gather(Moves):
    """Gather along one axis.

    Inputs: table X, and integer indices unless they are constant. Attributes: ``axis`` (not
    negative); constant indices as ``indices`` (flat, not negative) and ``indices_shape``.

    Of a table with indices that are only known at run time the whole axis is read; with constant
    ones the range from the least to the greatest index that the box needs. Negative indices at run
    time count from the end.
    """

    kinds = frozenset({"Gather"})
    fusion = Fusion.INJECTIVE

    def prepare(self, data: Extents) -> Extents:
        self.along, taken = self.operator.axis(len(data)), self.input(1)
        self.length = data[self.along]
        if "indices" in self.operator.attributes:
            taken = self.operator.integers("indices_shape")
            indices = self.operator.integers("indices")
            if any(not 0 <= index < self.length for index in indices):
                raise ValueError(
                    f"indices from {min(indices)} to {max(indices)} for an axis of {self.length}"
                )
        elif taken is None:
            raise ValueError("input 1 of Gather is left out")
        self.rank = len(taken)
        return (*data[: self.along], *taken, *data[self.along + 1 :])

    def reads(self, box: Box, part: Part = None) -> Reads:
        before, behind = box[: self.along], box[self.along + self.rank :]
        taken = box[self.along : self.along + self.rank]
        if self.input(1) is None:
            chosen = constant_indices(self.operator, taken)
            return ((*before, (min(chosen), max(chosen) + 1), *behind),)
        return (*before, (0, self.length), *behind), taken


def constant_indices(operator: Operator, box: Box) -> tuple[int, ...]:
    """Return the constant indices in a box of them, in row-major order."""
    shape = operator.integers("indices_shape", len(box))
    positions = [0]
    for length, (start, stop) in zip(shape, box, strict=True):
        positions = [p * length + q for p in positions for q in range(start, stop)]
    indices = operator.numbers("indices")
    return tuple([int(indices[position]) for position in positions])


class Pad(Moves):
    """Pad.

    Input: X. Attributes: ``pads`` (of all axes: beginnings, then ends; negative ones cut), ``mode``
    (``constant``, ``reflect``, ``edge``, ``wrap``), ``value`` (a number, used by ``constant``).
    """

    kinds = frozenset({"Pad"})
    fusion = Fusion.INJECTIVE

    def prepare(self, data: Extents) -> Extents:
        self.data, rank = data, len(data)
        pads, mode = self.operator.integers("pads", 2 * rank), self.operator.text("mode")
        if mode not in ("constant", "reflect", "edge", "wrap"):
            raise ValueError(f"mode {mode} of Pad is not known")
        self.before = pads[:rank]
        sides = [*zip(data, self.before, pads[rank:], strict=True)]
        for length, before, behind in sides:
            if mode == "reflect" and max(before, behind) >= max(length, 1):
                raise ValueError(f"reflection by {max(before, behind)} exceeds an axis of {length}")
        result = tuple(map(sum, sides))
        if min(result, default=1) < 1:
            raise ValueError(f"the result of shape {result} is empty")
        return result

    def reads(self, box: Box, part: Part = None) -> Reads:
        inside = [
            self._positions(length, range(start - shift, stop - shift))
            for length, shift, (start, stop) in zip(self.data, self.before, box, strict=True)
        ]
        return (covering_ranges(inside),)

    def _positions(self, length: int, wanted: range) -> list[int]:
        """Return the input position of each output position of an axis that has one."""
        match self.operator.text("mode"):
            case "edge":
                return [min(max(position, 0), length - 1) for position in wanted]
            case "wrap":
                return [position % length for position in wanted]
            case "reflect":
                last = length - 1
                return [last - abs(last - abs(position)) for position in wanted]
            case _:
                return [position for position in wanted if 0 <= position < length]


class GatherND(Moves):
    """GatherND: slices of X at positions that are the last axis of the indices.

    Inputs: X, integer indices. Attribute: ``batch_dims``, leading axes that both share.

    The axes of X that are indexed are read whole. Negative indices count from the end.
    """

    kinds = frozenset({"GatherND"})
    fusion = Fusion.INJECTIVE
    needs = 2

    def prepare(self, data: Extents, indices: Extents) -> Extents:
        self.batch = batch = self.operator.integer("batch_dims")
        self.leading, self.indexed = len(indices) - 1, _index_axes_of(data, indices, batch)
        if data[:batch] != indices[:batch] or batch >= len(indices):
            raise ValueError(f"{batch} leading axes of {data} and of indices {indices} differ")
        self.table = whole(data)[batch : batch + self.indexed]
        return (*indices[:-1], *data[batch + self.indexed :])

    def reads(self, box: Box, part: Part = None) -> Reads:
        taken = (*box[: self.leading], (0, self.indexed))
        return (*box[: self.batch], *self.table, *box[self.leading :]), taken


class GatherElements(Moves):
    """GatherElements: for each index the element of X at it along one axis, else at its own place.

    Inputs: X, integer indices (no longer than X along the other axes). Attribute: ``axis``.

    X is read whole along the axis. Negative indices count from the end.
    """

    kinds = frozenset({"GatherElements"})
    fusion = Fusion.INJECTIVE
    needs = 2

    def prepare(self, data: Extents, indices: Extents) -> Extents:
        self.along = _axis_of_elements(self.operator, data, indices)
        self.length = data[self.along]
        return indices

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (*box[: self.along], (0, self.length), *box[self.along + 1 :]), box


def _axis_of_elements(operator: Operator, data: Extents, indices: Extents) -> int:
    """Return along which axis of ``data`` indices are; they must fit into the others."""
    axis = operator.axis(len(data))
    others = (*data[:axis], indices[axis] if axis < len(indices) else 0, *data[axis + 1 :])
    if len(indices) != len(data) or any(map(int.__gt__, indices, others)):
        raise ValueError(f"indices of shape {indices} along axis {axis} of {data}")
    return axis


class ScatterND(Moves):
    """ScatterND: X with other slices at the positions that the indices name.

    Inputs: X, integer indices (positions are their last axis), updates. Attribute: ``reduction``
    (``none``, ``add``, ``mul``, ``max``, ``min``).

    All indices are read, and all updates within the axes that are not indexed: every tile takes
    those that fall into it. Costs 1 per output element and per element of updates read.
    """

    kinds = frozenset({"ScatterND"})
    fusion = Fusion.OPAQUE
    needs = 3

    def prepare(self, data: Extents, indices: Extents, updates: Extents) -> Extents:
        expected = (*indices[:-1], *data[_index_axes_of(data, indices, 0) :])
        return self.updated(data, indices, updates, expected)

    def updated(
        self, data: Extents, indices: Extents, updates: Extents, expected: Extents
    ) -> Extents:
        """Take note of the indices; return the shape of the result."""
        if updates != expected:
            raise ValueError(f"updates of shape {updates}, expected {expected}")
        if (how := self.operator.text("reduction")) not in ("none", "add", "mul", "max", "min"):
            raise ValueError(f"reduction {how} is not known")
        self.indices = indices
        return data

    def reads(self, box: Box, part: Part = None) -> Reads:
        return box, whole(self.indices), (*whole(self.indices[:-1]), *box[self.indices[-1] :])

    def count(self, box: Box, reads: Reads) -> int:
        return volume(box) + elements(reads[2:])


class ScatterElements(ScatterND):
    """ScatterElements: X with other elements where the indices say, along one axis.

    Inputs: X, integer indices, updates, one for each. Attributes: ``axis``; ``reduction``, as of
    ScatterND. Costs the same; read are indices and updates at the places of the box, along the axis
    all of them.
    """

    kinds = frozenset({"ScatterElements"})

    def prepare(self, data: Extents, indices: Extents, updates: Extents) -> Extents:
        self.along = _axis_of_elements(self.operator, data, indices)
        return self.updated(data, indices, updates, indices)

    def reads(self, box: Box, part: Part = None) -> Reads:
        own, axis = whole(self.indices), self.along
        changed = intersect((*box[:axis], own[axis], *box[axis + 1 :]), own)
        return box, changed, changed


def _index_axes_of(shape: Extents, indices: Extents, batch: int) -> int:
    """Return how many axes behind the ``batch`` leading ones the last axis of indices names."""
    if not indices or not 1 <= indices[-1] <= len(shape) - batch:
        raise ValueError(f"indices of shape {indices} for a tensor of shape {shape}")
    return indices[-1]


class Reshape(Moves):
    """Reshape, Flatten, Squeeze, Unsqueeze.

    Input: X. Attributes: Reshape ``shape`` (the lengths of the result; 0 and -1 resolved); Flatten
    ``axis`` (0 to the rank); Squeeze ``axes`` (all of them, not negative); Unsqueeze ``axes`` (of
    the result, not negative).

    What is read is exact along axes that the two shapes share, and along a group of axes that is
    merged or split it is the least box that covers the elements.
    """

    kinds = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})
    fusion = Fusion.VIEW

    def prepare(self, data: Extents) -> Extents:
        self.data, result = data, _reshaped(self.operator, data)
        if prod(result) != prod(data) or min(result, default=1) < 1:
            raise ValueError(f"{data} cannot be reshaped to {result}")
        return result

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (covering_box(self.data, self.shape, box),)


def _reshaped(operator: Operator, shape: Extents) -> Extents:
    """Return the shape of the result."""
    if operator.kind == "Reshape":
        return operator.integers("shape")
    if operator.kind == "Flatten":
        axis = operator.integer("axis")
        return (prod(shape[:axis]), prod(shape[axis:]))
    axes, rest = operator.integers("axes"), iter(shape)
    if operator.kind == "Squeeze":
        if any(not 0 <= axis < len(shape) or shape[axis] != 1 for axis in axes):
            raise ValueError(f"axes {axes} of {shape} are not all of length 1")
        return tuple(length for axis, length in enumerate(shape) if axis not in axes)
    rank = len(shape) + len(axes)
    if len(set(axes)) < len(axes) or any(not 0 <= axis < rank for axis in axes):
        raise ValueError(f"axes {axes} for a result of {rank} axes")
    return tuple(1 if axis in axes else next(rest) for axis in range(rank))


def shows_all(operator: Operator) -> bool:
    """Return whether an operator only gives another shape to the bytes of its input."""
    return operator.kind in Reshape.kinds and operator.quantisation is None


def without_ones(shape: Extents) -> Extents:
    """Return the axes that are longer than 1."""
    return tuple(length for length in shape if length > 1)


def keeps_boxes(operator: Operator, tensors: Mapping[str, Tensor]) -> bool:
    """Return whether an operator only adds or drops axes of length 1."""
    if operator.kind not in Reshape.kinds:
        return False
    before, after = tensors[operator.inputs[0]].shape, tensors[operator.output].shape
    return without_ones(before) == without_ones(after) and prod(before) == prod(after)


def covering_box(source: Extents, target: Extents, box: Box) -> Box:
    """Return the least box of a tensor that covers a box of its reshaped self.

    ``source`` is the shape of the tensor, ``target`` that after reshaping, of as many elements.
    """
    result: list[Interval] = []
    for (first, last), (begin, end) in _matching_axes(source, target):
        result.extend(_cover(source[first:last], target[begin:end], box[begin:end]))
    return tuple(result)


@lru_cache(maxsize=4096)
def _matching_axes(source: Extents, target: Extents) -> tuple[tuple[Interval, Interval], ...]:
    """Cut both shapes into the shortest runs of axes that hold the same number of elements."""
    runs = []
    i = j = 0
    while i < len(source) or j < len(target):
        first, begin, own, other = i, j, 1, 1
        while own != other or (i == first and j == begin):
            if i < len(source) and (own <= other or j == len(target)):
                own *= source[i]
                i += 1
            else:
                other *= target[j]
                j += 1
        runs.append(((first, i), (begin, j)))
    return tuple(runs)


@lru_cache(maxsize=1 << 16)
def _cover(source: Extents, target: Extents, box: Box) -> Box:
    """Return the least box of ``source`` that covers ``box`` of ``target``, axis by axis."""
    if source == target:
        return box
    begins, run = _runs(target, box)
    cover = []
    inner = prod(source)
    for length in source:
        inner //= length
        first, last = begins // inner, (begins + run - 1) // inner
        wraps = first // length != last // length
        low = np.where(wraps, 0, first % length)
        high = np.where(wraps, length - 1, last % length)
        cover.append((int(low.min()), int(high.max()) + 1))
    return tuple(cover)


def _runs(shape: Extents, box: Box) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int]:
    """Return the flat positions where contiguous runs of a box begin, and their length."""
    # Behind this axis all others are whole.
    last = max((axis for axis, length in enumerate(shape) if box[axis] != (0, length)), default=0)
    begins = np.zeros(1, dtype=np.int64)
    for axis, (length, (start, stop)) in enumerate(zip(shape, box, strict=True)):
        offsets = np.arange(start, stop if axis < last else start + 1)
        begins = np.add.outer(begins * length, offsets).reshape(-1)
    return begins, volume(box[last:])


class Transpose(Moves):
    """Transpose; attribute ``perm``: the input's axis that each output axis is."""

    kinds = frozenset({"Transpose"})
    fusion = Fusion.INJECTIVE

    def prepare(self, data: Extents) -> Extents:
        perm = self.operator.integers("perm", len(data))
        if sorted(perm) != list(range(len(data))):
            raise ValueError(f"perm is {perm}, no permutation of {len(data)} axes")
        self.back = [perm.index(axis) for axis in range(len(data))]
        return tuple(data[axis] for axis in perm)

    def reads(self, box: Box, part: Part = None) -> Reads:
        return (tuple([box[axis] for axis in self.back]),)


class DepthToSpace(Moves):
    """DepthToSpace, SpaceToDepth.

    Input: X ``(N, C, H, W)``. Attributes: ``blocksize``; DepthToSpace ``mode``, ``DCR`` or ``CRD``.

    Both are a reshape to six axes, a transposition and a reshape back; what is read is the least
    box that covers what each of the three needs.
    """

    kinds = frozenset({"DepthToSpace", "SpaceToDepth"})
    fusion = Fusion.INJECTIVE

    def prepare(self, data: Extents) -> Extents:
        self.data, block = data, self.operator.integer("blocksize")
        if len(data) != 4:
            raise ValueError(f"input of shape {data}, expected four axes")
        batch, channels, rows, columns = data
        depth = channels // (block * block)
        if self.operator.kind == "SpaceToDepth":
            if rows % block or columns % block:
                raise ValueError(f"{rows} x {columns} elements in blocks of {block}")
            self.split = (batch, channels, rows // block, block, columns // block, block)
            self.perm = (0, 3, 5, 1, 2, 4)
            return (batch, channels * block * block, rows // block, columns // block)
        if channels % (block * block):
            raise ValueError(f"{channels} channels in blocks of {block} x {block}")
        if self.operator.text("mode") == "DCR":
            self.split, self.perm = (batch, block, block, depth, rows, columns), (0, 3, 4, 1, 5, 2)
        else:
            self.split, self.perm = (batch, depth, block, block, rows, columns), (0, 1, 4, 2, 5, 3)
        return (batch, depth, rows * block, columns * block)

    def reads(self, box: Box, part: Part = None) -> Reads:
        inner = covering_box(tuple(self.split[axis] for axis in self.perm), self.shape, box)
        before = tuple(inner[self.perm.index(axis)] for axis in range(6))
        return (covering_box(self.data, self.split, before),)


FAMILIES = (
    *(Concat, DepthToSpace, Expand, Gather, GatherElements, GatherND, Pad, Reshape),
    *(ScatterElements, ScatterND, Slice, Tile, Transpose, Trilu),
)
