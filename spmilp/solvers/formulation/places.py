"""Slices that lie at their place inside a DRAM tensor, and those whose places overlap."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from math import prod
from typing import TypeAlias

from spmilp.problem.problem import Problem
from spmilp.units import Box, MemoryIdx, SliceIdx, TensorIdx

SliceInMemory: TypeAlias = tuple[SliceIdx, MemoryIdx]
"""A slice, and a memory in which it may lie."""


def home(problem: Problem, slice_: SliceIdx, memory: MemoryIdx) -> TensorIdx | None:
    """Return the tensor at whose place a slice lies in a memory; ``None`` if it lies by itself."""
    place = problem.buffers[problem.slices[slice_].buffer].place
    if place is None or problem.tensors[place.tensor].memory != memory:
        return None
    return place.tensor


def overlapping_places(
    problem: Problem, pairs: Iterable[SliceInMemory]
) -> dict[SliceInMemory, list[SliceInMemory]]:
    """Return, for slices at a place in a tensor, the others that share elements with them.

    Two slices that both show what is there at cycle 0 do not disturb each other.
    """
    in_tensor: dict[TensorIdx, list[SliceInMemory]] = defaultdict(list)
    for pair in pairs:
        tensor = home(problem, *pair)
        if tensor is not None:
            in_tensor[tensor].append(pair)
    found: dict[SliceInMemory, list[SliceInMemory]] = {}
    for some in in_tensor.values():
        boxes = {pair: _box(problem, pair[0]) for pair in some}
        for one, other in combinations(some, 2):
            are_initial = _is_initial(problem, one) and _is_initial(problem, other)
            if not are_initial and _overlap(boxes[one], boxes[other]):
                found.setdefault(one, []).append(other)
                found.setdefault(other, []).append(one)
    return found


def _is_initial(problem: Problem, pair: SliceInMemory) -> bool:
    return problem.buffers[problem.slices[pair[0]].buffer].starts_in == pair[1]


def _box(problem: Problem, slice_: SliceIdx) -> Box:
    """Return the elements of its tensor that a slice is."""
    part = problem.slices[slice_]
    place = problem.buffers[part.buffer].place
    if place is None:
        return ()
    starts = [a + b for a, b in zip(place.start, part.start, strict=True)]
    return tuple((a, a + n) for a, n in zip(starts, part.extent, strict=True))


def _overlap(one: Box, other: Box) -> bool:
    overlaps = (min(b, d) - max(a, c) for (a, b), (c, d) in zip(one, other, strict=True))
    return prod(max(0, length) for length in overlaps) > 0
