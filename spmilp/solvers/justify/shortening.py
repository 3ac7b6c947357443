"""Better times for a plan whose decisions stay, whatever solver has made it."""

from contextlib import suppress
from dataclasses import replace

from spmilp.commands.build import TooManyEventsError
from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.simulator.simulate import simulate
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.justify.context import ScheduleContext, columns_at, context_of, plan_of
from spmilp.solvers.justify.passes import backward_pass
from spmilp.solvers.justify.repacking import AT_ONCE, Repacking, justified
from spmilp.solvers.justify.schedule import TimedSchedule
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.units import Cycles

MOST_SIMULATED = 5_000
"""Tasks and transfers of plans whose times are chosen by simulation: less than a second."""


def shortened(context: SearchContext, plan: Plan) -> Plan:
    """Return a plan with the same decisions and addresses, and times as short as they allow.

    The plan itself where the checker has something against that.
    """
    found = JustifiedPlan.of(context.problem, plan).plan(plan)
    return found if found is not None and context.accepts(found) else plan


def bending_well(context: SearchContext, plan: Plan) -> Plan:
    """Return a plan, or it with all as late as it can be, whichever the simulator runs sooner.

    Both take as many cycles. Hardware shares links, and a transfer that is not urgent takes less
    from the others where it comes later in the lists. Large plans stay as they are.
    """
    if len(plan.placements) + len(plan.transfers) > MOST_SIMULATED:
        return plan
    common, first = context_of(context.problem, plan, changes_cores=False)
    late = _plan_at(common, backward_pass(first, common.with_addresses_of(first)))
    with suppress(TooManyEventsError):
        if late is not None and _simulated(context, late) < _simulated(context, plan):
            return late if context.accepts(late) else plan
    return plan


def _simulated(context: SearchContext, plan: Plan) -> Cycles:
    return round(simulate(context.problem, plan).exact.makespan)


class JustifiedPlan:
    """Decisions and addresses, and times as short as they allow.

    ``makespan`` is in cycles.
    """

    def __init__(self, context: ScheduleContext, timed: TimedSchedule) -> None:
        self._context = context
        self._timed = timed
        self.makespan: Cycles = timed.makespan

    @classmethod
    def of(cls, problem: Problem, decisions: Plan | PlanColumns) -> "JustifiedPlan":
        """Justify a valid plan: it ends no later.

        Of the plan its columns suffice where no DRAM has a limit.
        """
        context, first = context_of(problem, decisions, changes_cores=False)
        return cls(context, justified(context, first))

    def columns(self) -> PlanColumns:
        """Return what it decides."""
        return columns_at(self._context.problem, self._timed)

    def plan(self, origin: Plan) -> Plan | None:
        """Return it, given the plan that it was made of; ``None`` where a DRAM is too small."""
        return _plan_at(replace(self._context, origin=origin), self._timed)


class OpenSchedule:
    """A schedule with open addresses, justified by the capacity of memories; and its plan.

    The ``decisions`` are a plan, or its columns where no DRAM has a limit. Offsets mean nothing,
    but for what overwrites an operand in place. When the ``clock`` is over, what was found by then
    is the answer. The ``makespan`` is at most that of the decisions; what the plan takes is seldom
    more by a percent.
    """

    def __init__(self, problem: Problem, decisions: Plan | PlanColumns, clock: Clock) -> None:
        self._context, self._first = context_of(problem, decisions, changes_cores=False)
        self._opened = Repacking(self._context, clock, AT_ONCE).opened(self._first)
        self.makespan: Cycles = self._opened.makespan

    def packed(self, clock: Clock) -> JustifiedPlan | None:
        """Find addresses, for memories that are filled less where need be; ``None`` without any.

        When the ``clock`` is over, memories are left without.
        """
        work = Repacking(self._context, clock, AT_ONCE)
        found = work.first_packed(self._first, self._opened)
        return None if found is None else JustifiedPlan(self._context, found)


def repacked_plan(
    context: SearchContext, plan: Plan, share: float = 1.0, *, keeps_transfers: bool = False
) -> Plan:
    """Return a plan with the same decisions, whose addresses are chosen anew for shorter times.

    It has ended by a ``share`` of the time limit. If it ``keeps_transfers``, those stay that are
    not needed, or that could bypass DRAM.
    """
    clock = Clock(context.clock.seconds_left(share), context.clock.pace)
    common, best = context_of(
        context.problem, plan, keeps_transfers=keeps_transfers, changes_cores=False
    )
    for timed in Repacking(common, clock).repacked(best, best.makespan):
        best = timed
    found = _plan_at(common, best)
    return found if found is not None and context.accepts(found) else plan


def _plan_at(common: ScheduleContext, timed: TimedSchedule) -> Plan | None:
    """Return the plan at these times; ``None`` where a DRAM is too small."""
    with suppress(DoesNotFitError):
        return plan_of(common, timed)
    return None
