"""Residencies at their places in DRAM tensors: which share elements, and so follow each other."""

from collections.abc import Iterator
from operator import add

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE, Ints, numbers
from spmilp.solvers.lns.draft import Draft
from spmilp.units import Box, ResidencyIdx, TensorIdx


def homes_of(problem: Problem, draft: Draft) -> Ints:
    """Return the tensor in which each residency lies at its buffer's place; -1 for the others."""
    homes = []
    for part, memory in zip(draft.slice.tolist(), draft.memory.tolist(), strict=True):
        place = None if part == NONE else problem.buffers[problem.slices[part].buffer].place
        at_home = place is not None and problem.tensors[place.tensor].memory == memory
        homes.append(place.tensor if place is not None and at_home else NONE)
    return numbers(homes)


def followers_at_places(
    problem: Problem, draft: Draft, homes: Ints, begins: Ints, ends: Ints
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the pairs in one tensor of which the second may begin only when the first has ended."""
    written = set(homes[(draft.filler != NONE) & (homes != NONE)].tolist())
    for tensor in sorted(written):
        held = np.flatnonzero(homes == tensor).tolist()
        for one, other in _that_share_elements(problem, draft, tensor, held):
            first, second = (one, other) if begins[one] < begins[other] else (other, one)
            if ends[first] <= begins[second] and draft.filler[second] != NONE:
                yield first, second


def _that_share_elements(
    problem: Problem, draft: Draft, tensor: TensorIdx, held: list[ResidencyIdx]
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Sweep along the axis on which the boxes differ most."""
    boxes = [(_box_of(problem, int(draft.slice[one])), one) for one in held]
    axes = range(len(problem.tensors[tensor].shape))
    axis = max(axes, key=lambda a: len({box[a] for box, _ in boxes}), default=None)
    if axis is not None:
        boxes.sort(key=lambda item: item[0][axis])
    open_boxes: list[tuple[Box, ResidencyIdx]] = []
    for box, one in boxes:
        if axis is not None:
            open_boxes = [item for item in open_boxes if item[0][axis][1] > box[axis][0]]
        for other_box, other in open_boxes:
            if all(a < d and c < b for (a, b), (c, d) in zip(box, other_box, strict=True)):
                yield other, one
        open_boxes.append((box, one))


def _box_of(problem: Problem, part: int) -> Box:
    slice_ = problem.slices[part]
    place = problem.buffers[slice_.buffer].place
    start = slice_.start if place is None else tuple(map(add, place.start, slice_.start))
    return tuple((a, a + n) for a, n in zip(start, slice_.extent, strict=True))
