"""Addresses of slices in memory, and the bytes that are occupied over time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import add

from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, layout_at_place, layout_in_slice
from spmilp.units import Box, Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx, TensorIdx


def home(problem: Problem, slice_: SliceIdx, memory: MemoryIdx) -> TensorIdx | None:
    """Return the tensor at whose place a slice lies in a memory; ``None`` if it lies by itself."""
    place = problem.buffers[problem.slices[slice_].buffer].place
    if place is None or problem.tensors[place.tensor].memory != memory:
        return None
    return place.tensor


def home_of(problem: Problem, residency: Residency) -> TensorIdx | None:
    """Return the DRAM tensor in which a residency lies, at its buffer's place, if any."""
    what = residency.slice
    return None if what is None else home(problem, what, residency.memory)


def box_at_place(problem: Problem, slice_: SliceIdx) -> Box:
    """Return the elements of its tensor at which a slice of a placed buffer lies."""
    part = problem.slices[slice_]
    place = problem.buffers[part.buffer].place
    start = part.start if place is None else tuple(map(add, place.start, part.start))
    return tuple((first, first + n) for first, n in zip(start, part.extent, strict=True))


def pairs_in_place(
    problem: Problem, plan: Plan
) -> Iterator[tuple[TaskIdx, ResidencyIdx, ResidencyIdx]]:
    """Yield the task, operand and result of each pair that shares bytes."""
    for placement in plan.placements:
        task = problem.tasks[placement.task]
        for read, written in task.in_place:
            old = placement.reads[task.reads.index(read)]
            new = placement.writes[task.writes.index(written)]
            one, other = plan.residencies[old], plan.residencies[new]
            same = (one.memory, one.offset, one.slice) == (other.memory, other.offset, read)
            if same and one.end > other.start:
                yield task.index, old, new


def layout_in_memory(problem: Problem, plan: Plan, slice_: SliceIdx, index: ResidencyIdx) -> Layout:
    """Return the address of a slice's first byte in the residency's memory, and its strides.

    Raises a ``ValueError`` if the residency holds neither the slice nor the whole of its parent.
    """
    residency = plan.residencies[index]
    if residency.slice is None:
        raise ValueError(f"residency {index} holds scratch, not slice {slice_}")
    inside = layout_in_slice(problem, slice_, residency.slice)
    home = home_of(problem, residency)
    if home is not None:
        inside = layout_at_place(problem, slice_)
        return Layout(plan.tensors[home] + inside.offset, inside.strides)
    return Layout(residency.offset + inside.offset, inside.strides)


def live_bytes(residencies: Iterable[Residency]) -> tuple[list[Cycles], list[Bytes]]:
    """Return the cycles at which the occupied bytes change, and the bytes from each one on.

    Residencies that overlap in time and in bytes, which in a valid plan share them in place at the
    same offset, count once.
    """
    events = []
    for residency in residencies:
        if residency.start >= residency.end:
            continue
        events.append((residency.start, True, residency.offset, residency.bytes))
        events.append((residency.end, False, residency.offset, residency.bytes))
    events.sort()

    at_offset: defaultdict[Bytes, list[Bytes]] = defaultdict(list)
    cycles: list[Cycles] = []
    totals: list[Bytes] = []
    total = 0
    for cycle, begins, offset, size in events:
        sizes = at_offset[offset]
        total -= max(sizes, default=0)
        if begins:
            sizes.append(size)
        else:
            sizes.remove(size)
        total += max(sizes, default=0)
        if cycles and cycles[-1] == cycle:
            totals[-1] = total
        else:
            cycles.append(cycle)
            totals.append(total)
    return cycles, totals
