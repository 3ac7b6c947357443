"""Which bytes a task or transfer reads and writes."""

from collections.abc import Iterator
from functools import cache
from operator import add
from typing import NamedTuple, TypeAlias

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.problem.strides import footprint, layout_in_slice
from spmilp.units import Box, Bytes, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


class Packed(NamedTuple):
    """The bytes ``[low, high)`` of a memory."""

    memory: MemoryIdx
    low: Bytes
    high: Bytes


class Placed(NamedTuple):
    """A box of elements of a DRAM tensor."""

    tensor: TensorIdx
    box: Box


Region: TypeAlias = Packed | Placed


class Accesses:
    """Answers what each task and transfer of a valid plan touches.

    A slice at its buffer's place in a DRAM tensor is a box of elements, exactly. Anywhere else it
    counts with all bytes from its first to its last, whether or not its rows leave gaps: nobody
    else may use these gaps while its buffer is there.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self._problem = problem
        self._plan = plan
        self._inside = cache(self._range_inside)
        self._region = cache(self._find_region)

    def reads(self, activity: int) -> Iterator[Region]:
        """Yield what an activity reads."""
        task = self._task_of(activity)
        if task is None:
            move = self._plan.transfers[activity - len(self._plan.placements)]
            yield self._region(move.slice, move.source)
            return
        slices = self._problem.tasks[task].reads
        for slice_, residency in zip(slices, self._plan.placements[task].reads, strict=True):
            yield self._region(slice_, residency)

    def writes(self, activity: int) -> Iterator[Region]:
        """Yield what an activity writes, scratch included."""
        task = self._task_of(activity)
        if task is None:
            move = self._plan.transfers[activity - len(self._plan.placements)]
            for index in move.destinations:
                yield self._region(move.slice, index)
            return
        placement = self._plan.placements[task]
        for buffer, index in zip(self._problem.tasks[task].writes, placement.writes, strict=True):
            yield self._region(buffer, index)
        if placement.scratch is not None:
            residency = self._plan.residencies[placement.scratch]
            yield Packed(residency.memory, residency.offset, residency.offset + residency.bytes)

    def _task_of(self, activity: int) -> int | None:
        return activity if activity < len(self._plan.placements) else None

    def _find_region(self, slice_: SliceIdx, index: ResidencyIdx) -> Region:
        residency = self._plan.residencies[index]
        part = self._problem.slices[slice_]
        place = self._problem.buffers[part.buffer].place
        if place is not None and self._problem.tensors[place.tensor].memory == residency.memory:
            first = map(add, place.start, part.start)
            box = tuple((a, a + n) for a, n in zip(first, part.extent, strict=True))
            return Placed(place.tensor, box)
        held = slice_ if residency.slice is None else residency.slice
        low, high = self._inside(slice_, held)
        return Packed(residency.memory, residency.offset + low, residency.offset + high)

    def _range_inside(self, slice_: SliceIdx, held: SliceIdx) -> tuple[Bytes, Bytes]:
        """Return the bytes of a slice, from the first byte of a residency that holds ``held``."""
        part = self._problem.slices[slice_]
        if slice_ == held:
            return 0, part.bytes
        layout = layout_in_slice(self._problem, slice_, held)
        item = self._problem.buffers[part.buffer].item
        return layout.offset, layout.offset + footprint(part.extent, item, layout)
