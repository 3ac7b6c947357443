"""From a solution to a plan: addresses, then short times."""

from collections.abc import Mapping
from dataclasses import replace

from spmilp.bounds.best import Bound
from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.formulation.addresses import Addresses, ConflictSet, find_addresses
from spmilp.solvers.formulation.extraction import Item, TimedPlan, extract
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.kernels.dram import dram_addresses
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.repacking import FillLimits, justified, repacked
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.solvers.residency.extract import Solution
from spmilp.units import Bytes

NAME = "residency"


def plan_from(tables: ProblemTables, solution: Solution, bound: Bound) -> Plan | ConflictSet | None:
    """Return the plan of a solution, one thing after the other.

    Without addresses in the solution they are looked for; a conflict set has none. ``None`` where
    the DRAM is too small for what is stored.
    """
    timed = extract(tables, solution.decisions)
    if solution.offsets is None:
        found = find_addresses(tables, timed, low=False)
        if isinstance(found, ConflictSet):
            return found
    else:
        try:
            found = _addressed(tables.problem, timed, solution.offsets)
        except DoesNotFitError:
            return None
    return found.plan(tables, timed, bound, NAME)


def _addressed(problem: Problem, timed: TimedPlan, offsets: Mapping[Item, Bytes]) -> Addresses:
    on_chip = [
        replace(one, offset=offsets.get(item, 0))
        for one, item in zip(timed.residencies, timed.items, strict=True)
    ]
    tensors, residencies = dram_addresses(problem, on_chip)
    return Addresses(residencies=tuple(residencies), tensors=tensors)


def shortened(context: SearchContext, plan: Plan) -> Plan:
    """Return a plan with the same decisions and addresses, and times as short as they allow.

    The plan itself where the checker has something against that.
    """
    fixed, timed = context_of(context.problem, plan)
    return _with(context, fixed, justified(fixed, timed))


def repacked_plan(context: SearchContext, plan: Plan, seconds: float | None) -> Plan:
    """Return a plan with the same decisions, whose addresses are chosen anew for shorter times.

    Parameters
    ----------
    seconds
        Wall time; ``None`` for no limit.
    """
    fixed, best = context_of(context.problem, plan)
    for found in repacked(fixed, best, FillLimits(fixed), Clock(seconds)):
        if found is not None and found.makespan < best.makespan:
            best = found
    return _with(context, fixed, best)


def _with(context: SearchContext, fixed: ScheduleContext, timed: TimedSchedule) -> Plan:
    """Return the plan at these times; the one that there was where they are of no use."""
    try:
        other = plan_of(fixed, timed)
    except DoesNotFitError:
        return fixed.plan
    return other if context.accepts(other) else fixed.plan
