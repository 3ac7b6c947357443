"""Addresses of slices in memory, and the bytes that are occupied over time."""

from collections import defaultdict
from collections.abc import Iterable

from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, layout_at_place, layout_in_slice
from spmilp.units import Bytes, Cycles, ResidencyIdx, SliceIdx, TensorIdx


def home_of(problem: Problem, residency: Residency) -> TensorIdx | None:
    """Return the DRAM tensor in which a residency lies, at its buffer's place, if any."""
    if residency.slice is None:
        return None
    place = problem.buffers[problem.slices[residency.slice].buffer].place
    if place is None or problem.tensors[place.tensor].memory != residency.memory:
        return None
    return place.tensor


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
