"""Less DRAM traffic for a plan whose makespan stays: what the next quantity asks for in a tie."""

from spmilp.errors import DoesNotFitError
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.partial_order.context import context_of
from spmilp.solvers.partial_order.repacking import (
    FillLimits,
    justified_by_capacity,
    with_addresses,
)
from spmilp.solvers.partial_order.to_plan import plan_of

MOST_ROUNDS, PATIENCE = 20, 4
"""Attempts at most, and in a row without a better plan."""


def excess_of(context: SearchContext, plan: Plan) -> int:
    """Return the bytes that a plan moves to and from DRAM beyond what no plan can avoid."""
    return plan.claim.dram_traffic - context.shared(_compulsory)


def _compulsory(context: SearchContext) -> int:
    return compulsory_dram_traffic(context.problem)


def with_less_traffic(context: SearchContext, plan: Plan) -> Plan:
    """Return the best plan that dropped transfers and copies between scratchpads lead to.

    Within the makespan, all moves as late as it can; a slice that is given up and loaded again
    stays where there is capacity, a load comes from a scratchpad that holds the slice, and
    addresses are packed anew. What the checker does not accept, or what is not better in the
    problem's quantities, in their order, does not count.
    """
    best, idle, clock = plan, 0, context.clock
    fixed, current = context_of(context.problem, plan)
    fill = FillLimits(fixed)
    for _ in range(MOST_ROUNDS):
        if idle == PATIENCE or clock.is_over() or excess_of(context, best) <= 0:
            break
        opened = justified_by_capacity(fixed, current, fill.memories(), clock, rounds=2)
        found = with_addresses(fixed, opened, fill, clock)
        idle += 1
        if found is None:
            continue
        fill.raise_all()
        try:
            other = plan_of(fixed, found)
        except DoesNotFitError:
            continue
        if context.values(other) < context.values(best) and context.accepts(other):
            best, current, idle = other, found, 0
    return best
