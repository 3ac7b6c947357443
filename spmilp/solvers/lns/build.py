"""From a draft with times back to a plan."""

from dataclasses import replace

from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.intervals import least_free_numbers
from spmilp.solvers.list_scheduler.dram import dram_addresses
from spmilp.solvers.list_scheduler.records import Ints
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.lifetimes import lifetimes, makespan_of


def plan_of(problem: Problem, plan: Plan, draft: Draft, start: Ints, *, dram_is_free: bool) -> Plan:
    """Return a plan with the decisions of another one, and the times and offsets of a draft of it.

    Parameters
    ----------
    dram_is_free
        Whether addresses in DRAM are given out anew.

    Raises
    ------
    DoesNotFitError
        If they are, and a DRAM with a limit is too small.
    """
    last = makespan_of(draft, start)
    begins, ends = (column.tolist() for column in lifetimes(draft, start, last))
    first = start.tolist()
    over = (start + draft.cycles).tolist()
    tasks = len(plan.placements)
    residencies = [
        replace(stay, offset=offset, start=begin, end=end)
        for stay, offset, begin, end in zip(
            plan.residencies, draft.offset.tolist(), begins, ends, strict=True
        )
    ]
    tensors = plan.tensors
    if dram_is_free:
        tensors, residencies = dram_addresses(problem, residencies)
    channels = least_free_numbers(
        (move.engine, first[tasks + move.index], over[tasks + move.index])
        for move in plan.transfers
    )
    placements = tuple(
        replace(placement, start=first[placement.task], end=over[placement.task])
        for placement in plan.placements
    )
    transfers = tuple(
        replace(move, start=begin, end=end, channel=channel)
        for move, begin, end, channel in zip(
            plan.transfers, first[tasks:], over[tasks:], channels, strict=True
        )
    )
    measures = measure(problem, placements, residencies, transfers)
    return replace(
        plan,
        placements=placements,
        residencies=tuple(residencies),
        transfers=transfers,
        tensors=tensors,
        claim=claim_of(measures, plan.claim.bound, plan.claim.bound_source),
    )
