"""Where a slice lies in memory: the addresses that transfers and tasks use."""

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, layout_at_place, layout_in_slice
from spmilp.units import ResidencyIdx, SliceIdx


def layout_in_memory(
    problem: Problem, plan: Plan, slice_: SliceIdx, residency: ResidencyIdx
) -> Layout:
    """Return the address of a slice's first byte in the residency's memory, and its strides.

    Raises
    ------
    ValueError
        If the residency holds neither the slice nor the whole of its parent.
    """
    stay = plan.residencies[residency]
    if stay.slice is None:
        raise ValueError(f"residency {residency} holds scratch, not slice {slice_}")
    inside = layout_in_slice(problem, slice_, stay.slice)
    place = problem.buffers[problem.slices[slice_].buffer].place
    if place is not None and problem.tensors[place.tensor].memory == stay.memory:
        inside = layout_at_place(problem, slice_)
        return Layout(plan.tensors[place.tensor] + inside.offset, inside.strides)
    return Layout(stay.offset + inside.offset, inside.strides)
