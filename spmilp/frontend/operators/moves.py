"""Operators that only move elements: other axes, parts, copies, positions that indices name."""

from functools import lru_cache
from math import prod

import numpy as np

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.boxes import (
    broadcast_box,
    broadcast_shape,
    covering_ranges,
    volume,
    whole,
)
from spmilp.frontend.operators.family import (
    Fusion,
    Inputs,
    Part,
    Reads,
    Tensors,
    VectorOperator,
    axis_of,
    elements,
    has,
    has_input,
    input_shape,
    integer,
    integers,
    integers_at,
    number,
    required,
    text,
)
from spmilp.units import Box, Extents


class Moves(VectorOperator):
    """Moves elements without arithmetic: a view costs nothing, else 1 per output element."""

    fusion: Fusion

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        return 0 if self.fusion is Fusion.VIEW else volume(box)


class Concat(Moves):
    """Concat along ``axis`` (not negative); any number of inputs."""

    kinds = frozenset({"Concat"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shapes = [required(operator, inputs, position).shape for position in range(len(inputs))]
        axis = axis_of(operator, len(shapes[0]))
        rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
        if len(rests) > 1:
            raise ValueError(f"shapes {shapes} differ along other axes than {axis}")
        total = sum(shape[axis] for shape in shapes)
        return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        axis = integer(operator, "axis")
        boxes: list[Box | None] = []
        low, high = box[axis]
        for name in operator.inputs:
            length = tensors[name].shape[axis]
            inside = (max(low, 0), min(high, length))
            boxes.append((*box[:axis], inside, *box[axis + 1 :]) if inside[0] < inside[1] else None)
            low, high = low - length, high - length
        return tuple(boxes)


class Expand(Moves):
    """Expand; attribute ``shape``, with which the input's shape broadcasts to the result's."""

    kinds = frozenset({"Expand"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        return broadcast_shape((required(operator, inputs, 0).shape, integers(operator, "shape")))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        return (broadcast_box(input_shape(operator, tensors, 0), box),)


class Tile(Moves):
    """Tile; attribute ``repeats``, one positive integer per axis."""

    kinds = frozenset({"Tile"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        repeats = integers(operator, "repeats", len(shape))
        if min(repeats, default=1) < 1:
            raise ValueError(f"repeats are {repeats}, expected positive integers")
        return tuple(length * count for length, count in zip(shape, repeats, strict=True))

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape = input_shape(operator, tensors, 0)
        return (tuple(map(_in_one_copy, shape, box)),)


def _in_one_copy(length: int, interval: tuple[int, int]) -> tuple[int, int]:
    start, last = interval[0], interval[1] - 1
    one = start // length == last // length
    return (start % length, last % length + 1) if one else (0, length)


class Trilu(Moves):
    """Trilu: keeps the upper or lower triangle of the last two axes, zeroes the rest.

    Attributes: ``upper`` (0 or 1), ``k`` (the diagonal).
    """

    kinds = frozenset({"Trilu"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        integer(operator, "upper")
        integer(operator, "k")
        if len(shape) < 2:
            raise ValueError(f"input of shape {shape}, expected a matrix at least")
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        return (box,)


class Slice(Moves):
    """Slice; a Split is several of these.

    Input: X. Attributes: ``starts``, ``ends``, ``axes`` (not negative), ``steps``, of one length;
    starts and ends as in ONNX (negative ones count from the end, those outside are clamped). Steps
    may be negative; what is read is then the covering range.
    """

    kinds = frozenset({"Slice"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        taken = tuple(len(positions) for positions in slice_ranges(operator, shape))
        if 0 in taken:
            raise ValueError(f"the result of shape {taken} is empty")
        return taken

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        ranges = slice_ranges(operator, input_shape(operator, tensors, 0))
        ends = (
            sorted((positions[start], positions[stop - 1]))
            for positions, (start, stop) in zip(ranges, box, strict=True)
        )
        return (tuple((low, high + 1) for low, high in ends),)


def slice_ranges(operator: Operator, shape: Extents) -> tuple[range, ...]:
    """Return, for each axis, the positions of the input that a Slice takes."""
    ranges = [range(length) for length in shape]
    axes = integers(operator, "axes")
    starts, ends = integers(operator, "starts", len(axes)), integers(operator, "ends", len(axes))
    steps = integers(operator, "steps", len(axes))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not 0 <= axis < len(shape) or step == 0:
            raise ValueError(f"axis {axis} with step {step} of a tensor of shape {shape}")
        length = shape[axis]
        low, high = (0, length) if step > 0 else (-1, length - 1)
        first, behind = (
            min(max(value + length if value < 0 else value, low), high) for value in (start, end)
        )
        ranges[axis] = range(first, behind, step)
    return tuple(ranges)


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

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        axis = axis_of(operator, len(shape))
        if has(operator, "indices"):
            indices = integers(operator, "indices")
            taken = integers(operator, "indices_shape")
            if any(not 0 <= index < shape[axis] for index in indices):
                raise ValueError(
                    f"indices from {min(indices)} to {max(indices)} for an axis of {shape[axis]}"
                )
        else:
            taken = required(operator, inputs, 1).shape
        return (*shape[:axis], *taken, *shape[axis + 1 :])

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape, axis = input_shape(operator, tensors, 0), integer(operator, "axis")
        rank = len(box) - len(shape) + 1
        taken = box[axis : axis + rank]
        if not has_input(operator, 1):
            chosen = constant_indices(operator, taken)
            along = (min(chosen), max(chosen) + 1)
            return ((*box[:axis], along, *box[axis + rank :]),)
        return (*box[:axis], (0, shape[axis]), *box[axis + rank :]), taken


def constant_indices(operator: Operator, box: Box) -> tuple[int, ...]:
    """Return the constant indices in a box of them, in row-major order."""
    shape = integers(operator, "indices_shape", len(box))
    positions = [0]
    for length, (start, stop) in zip(shape, box, strict=True):
        positions = [p * length + q for p in positions for q in range(start, stop)]
    return integers_at(operator, "indices", positions)


class Pad(Moves):
    """Pad.

    Input: X. Attributes: ``pads`` (of all axes: all beginnings, then all ends; negative ones cut
    off), ``mode`` (``constant``, ``reflect``, ``edge``, ``wrap``), ``value`` (a number, used by
    ``constant``).
    """

    kinds = frozenset({"Pad"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        pads, rank = integers(operator, "pads", 2 * len(shape)), len(shape)
        mode = text(operator, "mode")
        number(operator, "value")
        if mode not in ("constant", "reflect", "edge", "wrap"):
            raise ValueError(f"mode {mode} of Pad is not known")
        for axis, length in enumerate(shape):
            longest = max(pads[axis], pads[axis + rank])
            if mode == "reflect" and longest >= max(length, 1):
                raise ValueError(f"reflection by {longest} exceeds an axis of {length}")
        result = tuple(length + pads[axis] + pads[axis + rank] for axis, length in enumerate(shape))
        if min(result, default=1) < 1:
            raise ValueError(f"the result of shape {result} is empty")
        return result

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape = input_shape(operator, tensors, 0)
        inside = [
            [p for p in pad_positions(operator, shape, axis, interval) if p is not None]
            for axis, interval in enumerate(box)
        ]
        return (covering_ranges(inside),)


def pad_positions(
    operator: Operator, shape: Extents, axis: int, interval: tuple[int, int]
) -> list[int | None]:
    """Return the input position of each output position of an axis; ``None`` for the value."""
    length = shape[axis]
    shift = integers(operator, "pads", 2 * len(shape))[axis]
    wanted = range(interval[0] - shift, interval[1] - shift)
    match text(operator, "mode"):
        case "edge":
            return [min(max(position, 0), length - 1) for position in wanted]
        case "wrap":
            return [position % length for position in wanted]
        case "reflect":
            last = length - 1
            return [last - abs(last - abs(position)) for position in wanted]
        case _:
            return [position if 0 <= position < length else None for position in wanted]


class GatherND(Moves):
    """GatherND: slices of X at positions that are the last axis of the indices.

    Inputs: X, integer indices. Attribute: ``batch_dims``, leading axes that both share.

    The axes of X that are indexed are read whole. Negative indices count from the end.
    """

    kinds = frozenset({"GatherND"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape, indices = (required(operator, inputs, position).shape for position in range(2))
        batch = integer(operator, "batch_dims")
        _index_axes_of(shape, indices, batch)
        if shape[:batch] != indices[:batch] or batch >= len(indices):
            raise ValueError(f"{batch} leading axes of {shape} and of indices {indices} differ")
        return (*indices[:-1], *shape[batch + indices[-1] :])

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape, indices = (input_shape(operator, tensors, position) for position in range(2))
        batch, leading = integer(operator, "batch_dims"), len(indices) - 1
        indexed = whole(shape)[batch : batch + indices[-1]]
        return (*box[:batch], *indexed, *box[leading:]), (*box[:leading], (0, indices[-1]))


class ScatterND(VectorOperator):
    """ScatterND: X with other slices at the positions that the indices name.

    Inputs: X, integer indices (positions are their last axis), updates. Attribute: ``reduction``
    (``none``, ``add``, ``mul``, ``max``, ``min``).

    All indices are read, and all updates within the axes that are not indexed: every tile takes
    those that fall into it. Costs 1 per output element and per element of updates read.
    """

    kinds = frozenset({"ScatterND"})
    fusion = Fusion.OPAQUE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape, indices, updates = (required(operator, inputs, at).shape for at in range(3))
        expected = (*indices[:-1], *shape[_index_axes_of(shape, indices, 0) :])
        if updates != expected:
            raise ValueError(f"updates of shape {updates}, expected {expected}")
        if text(operator, "reduction") not in ("none", "add", "mul", "max", "min"):
            raise ValueError(f"reduction {text(operator, 'reduction')} is not known")
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        indices = input_shape(operator, tensors, 1)
        updates = (*whole(indices[:-1]), *box[indices[-1] :])
        return box, whole(indices), updates

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        return volume(box) + elements(reads[2:])


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

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        result = self._shape(operator, shape)
        if prod(result) != prod(shape) or min(result, default=1) < 1:
            raise ValueError(f"{shape} cannot be reshaped to {result}")
        return result

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        source = input_shape(operator, tensors, 0)
        target = tensors[operator.output].shape
        return (covering_box(source, target, box),)

    def _shape(self, operator: Operator, shape: Extents) -> Extents:
        if operator.kind == "Reshape":
            return integers(operator, "shape")
        if operator.kind == "Flatten":
            axis = integer(operator, "axis")
            return (prod(shape[:axis]), prod(shape[axis:]))
        axes = integers(operator, "axes")
        if operator.kind == "Squeeze":
            if any(not 0 <= axis < len(shape) or shape[axis] != 1 for axis in axes):
                raise ValueError(f"axes {axes} of {shape} are not all of length 1")
            return tuple(length for axis, length in enumerate(shape) if axis not in axes)
        rest = iter(shape)
        rank = len(shape) + len(axes)
        if len(set(axes)) < len(axes) or any(not 0 <= axis < rank for axis in axes):
            raise ValueError(f"axes {axes} for a result of {rank} axes")
        return tuple(1 if axis in axes else next(rest) for axis in range(rank))


def without_ones(shape: Extents) -> Extents:
    """Return the axes that are longer than 1."""
    return tuple(length for length in shape if length > 1)


def keeps_boxes(operator: Operator, tensors: Tensors) -> bool:
    """Return whether an operator only adds or drops axes of length 1."""
    if operator.kind not in Reshape.kinds:
        return False
    before, after = input_shape(operator, tensors, 0), tensors[operator.output].shape
    return without_ones(before) == without_ones(after) and prod(before) == prod(after)


def covering_box(source: Extents, target: Extents, box: Box) -> Box:
    """Return the least box of a tensor that covers a box of its reshaped self.

    Parameters
    ----------
    source, target
        Shape of the tensor, and its shape after reshaping; as many elements.
    box
        Of the reshaped tensor.
    """
    result: list[tuple[int, int]] = []
    for (first, last), (begin, end) in _matching_axes(source, target):
        result.extend(_cover(source[first:last], target[begin:end], box[begin:end]))
    return tuple(result)


@lru_cache(maxsize=4096)
def _matching_axes(
    source: Extents, target: Extents
) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
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
    run, stride = 1, 1
    axis = len(shape)
    while axis > 0:
        axis -= 1
        start, stop = box[axis]
        run = (stop - start) * stride
        stride *= shape[axis]
        if stop - start < shape[axis]:
            break
    begins = np.zeros(1, dtype=np.int64)
    step = 1
    for position in range(len(shape) - 1, -1, -1):
        start, stop = box[position]
        offsets = np.arange(start, start + 1 if position >= axis else stop, dtype=np.int64) * step
        begins = np.add.outer(offsets, begins).reshape(-1)
        step *= shape[position]
    return begins, run


class Transpose(Moves):
    """Transpose; attribute ``perm``: the input's axis that each output axis is."""

    kinds = frozenset({"Transpose"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        perm = integers(operator, "perm", len(shape))
        if sorted(perm) != list(range(len(shape))):
            raise ValueError(f"perm is {perm}, no permutation of {len(shape)} axes")
        return tuple(shape[axis] for axis in perm)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        perm = integers(operator, "perm", len(box))
        return (tuple(box[perm.index(axis)] for axis in range(len(box))),)


class DepthToSpace(Moves):
    """DepthToSpace, SpaceToDepth.

    Input: X ``(N, C, H, W)``. Attributes: ``blocksize``; DepthToSpace ``mode``, ``DCR`` or ``CRD``.

    Both are a reshape to six axes, a transposition and a reshape back; what is read is the least
    box that covers what each of the three needs.
    """

    kinds = frozenset({"DepthToSpace", "SpaceToDepth"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = required(operator, inputs, 0).shape
        block = integer(operator, "blocksize")
        if len(shape) != 4:
            raise ValueError(f"input of shape {shape}, expected four axes")
        batch, channels, rows, columns = shape
        if operator.kind == "SpaceToDepth":
            if rows % block or columns % block:
                raise ValueError(f"{rows} x {columns} elements in blocks of {block}")
            return (batch, channels * block * block, rows // block, columns // block)
        if channels % (block * block):
            raise ValueError(f"{channels} channels in blocks of {block} x {block}")
        return (batch, channels // (block * block), rows * block, columns * block)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        source, target = input_shape(operator, tensors, 0), tensors[operator.output].shape
        split, perm = split_and_permutation(operator, source)
        permuted = tuple(split[axis] for axis in perm)
        inner = covering_box(permuted, target, box)
        before = tuple(inner[perm.index(axis)] for axis in range(6))
        return (covering_box(source, split, before),)


def split_and_permutation(operator: Operator, shape: Extents) -> tuple[Extents, tuple[int, ...]]:
    """Return the shape of six axes, and how they are permuted."""
    batch, channels, rows, columns = shape
    block = integer(operator, "blocksize")
    if operator.kind == "SpaceToDepth":
        split = (batch, channels, rows // block, block, columns // block, block)
        return split, (0, 3, 5, 1, 2, 4)
    depth = channels // (block * block)
    if text(operator, "mode") == "DCR":
        return (batch, block, block, depth, rows, columns), (0, 3, 4, 1, 5, 2)
    return (batch, depth, block, block, rows, columns), (0, 1, 4, 2, 5, 3)


FAMILIES = (
    *(Concat, DepthToSpace, Expand, Gather, GatherND, Pad, Reshape, ScatterND, Slice, Tile),
    *(Transpose, Trilu),
)
