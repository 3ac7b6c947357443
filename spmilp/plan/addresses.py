"""Addresses of slices in memory, as transfers and tasks use them."""

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, layout_at_place, layout_in_slice
from spmilp.units import ResidencyIdx, SliceIdx


def layout_in_memory(problem: Problem, plan: Plan, slice_: SliceIdx, index: ResidencyIdx) -> Layout:
    """Return the address of a slice's first byte in the residency's memory, and its strides.

    Raises
    ------
    ValueError
        If the residency holds neither the slice nor the whole of its parent.
    """
    residency = plan.residencies[index]
    if residency.slice is None:
        raise ValueError(f"residency {index} holds scratch, not slice {slice_}")
    inside = layout_in_slice(problem, slice_, residency.slice)
    place = problem.buffers[problem.slices[slice_].buffer].place
    if place is not None and problem.tensors[place.tensor].memory == residency.memory:
        inside = layout_at_place(problem, slice_)
        return Layout(plan.tensors[place.tensor] + inside.offset, inside.strides)
    return Layout(residency.offset + inside.offset, inside.strides)
