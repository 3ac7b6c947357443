"""From a plan to the candidate that comes closest to it."""

import numpy as np

from spmilp.plan.plan import Plan
from spmilp.solvers.kernels.records import Ints, numbers
from spmilp.solvers.kernels.schedule_state import Weights
from spmilp.solvers.local_search.candidate import Candidate
from spmilp.solvers.local_search.problem_index import ProblemIndex
from spmilp.solvers.local_search.sequence import in_order_of


def candidate_of(index: ProblemIndex, plan: Plan, weights: Weights) -> Candidate:
    """Read cores and order off a plan's placements, and how early it loads off its residencies."""
    starts = np.empty(len(plan.placements), np.int64)
    cores = np.empty(len(plan.placements), np.int64)
    for placement in plan.placements:
        starts[placement.task] = placement.start
        cores[placement.task] = placement.core
    order = in_order_of(index, starts)
    return Candidate(
        order=order, cores=cores, leads=_leads(index, plan, order, cores, starts), weights=weights
    )


def _leads(index: ProblemIndex, plan: Plan, order: Ints, cores: Ints, starts: Ints) -> Ints:
    """For each read of what is there at cycle 0, count the tasks of the same memory that start
    between the begin of the residency that serves it and its reader.

    Only the first reader of a residency has bytes set aside.
    """
    leads = np.zeros(index.reads.items.size, np.int64)
    memory = index.memory_of_core[cores]
    starts_in = {
        int(place): starts[order[memory[order] == place]] for place in np.unique(memory).tolist()
    }
    serves: set[int] = set()
    placements = sorted(plan.placements, key=lambda placement: (placement.start, placement.task))
    for placement in placements:
        begin = int(index.reads.begins[placement.task])
        for position, served in enumerate(placement.reads):
            stay = plan.residencies[served]
            if served in serves or stay.filled_by_transfer is None:
                continue
            serves.add(served)
            if index.from_outside[begin + position] > 0 and stay.memory in starts_in:
                between = starts_in[stay.memory]
                since, until = np.searchsorted(between, numbers((stay.start, placement.start)))
                leads[begin + position] = max(0, int(until) - int(since))
    return leads
