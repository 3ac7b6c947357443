"""The same elements in other axes: Reshape and its kin, Transpose, DepthToSpace, SpaceToDepth."""

from functools import lru_cache
from math import prod

import numpy as np

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.attributes import integer, integers, text
from spmilp.frontend.operators.base import input_shape, output_shape_of, required
from spmilp.frontend.operators.family import Fusion, Inputs, Part, Reads, Tensors
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


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
        """Return the new shape."""
        shape = required(operator, inputs, 0).shape
        result = self._shape(operator, shape)
        if prod(result) != prod(shape) or min(result, default=1) < 1:
            raise ValueError(f"{shape} cannot be reshaped to {result}")
        return result

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the least box that covers the elements."""
        source = input_shape(operator, tensors, 0)
        target = output_shape_of(operator, tensors)
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
    before, after = input_shape(operator, tensors, 0), output_shape_of(operator, tensors)
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
        """Return the permuted shape."""
        shape = required(operator, inputs, 0).shape
        perm = integers(operator, "perm", len(shape))
        if sorted(perm) != list(range(len(shape))):
            raise ValueError(f"perm is {perm}, no permutation of {len(shape)} axes")
        return tuple(shape[axis] for axis in perm)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the box with its axes permuted back."""
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
        """Return the shape of the rearranged tensor."""
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
        """Return the least covering box."""
        source, target = input_shape(operator, tensors, 0), output_shape_of(operator, tensors)
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
