"""Shorter times for a plan whose decisions stay, whatever solver has made it."""

from contextlib import suppress
from dataclasses import replace

from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.kernels.plan_columns import PlanColumns
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.repacking import FillLimits, justified, repacked
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.units import Cycles


def shortened(context: SearchContext, plan: Plan) -> Plan:
    """Return a plan with the same decisions and addresses, and times as short as they allow.

    The plan itself where the checker has something against that.
    """
    found = JustifiedPlan(context.problem, plan).plan(plan)
    return found if found is not None and context.accepts(found) else plan


class JustifiedPlan:
    """A valid plan with the same decisions and addresses, and times as short as they allow.

    Parameters
    ----------
    decisions
        The plan, or its columns where no DRAM has a limit.

    Attributes
    ----------
    makespan
        At most the plan's.
    """

    def __init__(self, problem: Problem, decisions: Plan | PlanColumns) -> None:
        self._context, first = context_of(problem, decisions, changes_cores=False)
        self._timed = justified(self._context, first)
        self.makespan: Cycles = self._timed.makespan

    def plan(self, origin: Plan) -> Plan | None:
        """Return it, given the plan that it was made of; ``None`` where a DRAM is too small."""
        return _plan_at(replace(self._context, origin=origin), self._timed)


def repacked_plan(
    context: SearchContext, plan: Plan, seconds: float | None, *, keeps_transfers: bool = False
) -> Plan:
    """Return a plan with the same decisions, whose addresses are chosen anew for shorter times.

    Parameters
    ----------
    seconds
        Wall time; ``None`` for no limit.
    keeps_transfers
        Whether transfers stay that are not needed, or that could bypass DRAM.
    """
    fixed, best = context_of(
        context.problem,
        plan,
        drops_transfers=not keeps_transfers,
        bypasses_dram=not keeps_transfers,
    )
    for timed in repacked(fixed, best, FillLimits(fixed), Clock(seconds)):
        if timed is not None and timed.makespan < best.makespan:
            best = timed
    found = _plan_at(fixed, best)
    return found if found is not None and context.accepts(found) else fixed.plan


def _plan_at(fixed: ScheduleContext, timed: TimedSchedule) -> Plan | None:
    """Return the plan at these times; ``None`` where a DRAM is too small."""
    with suppress(DoesNotFitError):
        return plan_of(fixed, timed)
    return None
