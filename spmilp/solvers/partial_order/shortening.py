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
from spmilp.solvers.partial_order.repacking import (
    FillLimits,
    justified,
    justified_by_capacity,
    repacked,
    with_addresses,
)
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.to_plan import columns_at, plan_of
from spmilp.units import Cycles

ROUNDS = 2
"""Of justification: most of what more of them gain is in these."""

WHOLE = 1.0
"""Of each memory is filled by open schedules, for which addresses are nearly always found."""


def shortened(context: SearchContext, plan: Plan) -> Plan:
    """Return a plan with the same decisions and addresses, and times as short as they allow.

    The plan itself where the checker has something against that.
    """
    found = JustifiedPlan.of(context.problem, plan).plan(plan)
    return found if found is not None and context.accepts(found) else plan


class JustifiedPlan:
    """Decisions and addresses, and times as short as they allow.

    Attributes
    ----------
    makespan
        In cycles.
    """

    def __init__(self, context: ScheduleContext, timed: TimedSchedule) -> None:
        self._context = context
        self._timed = timed
        self.makespan: Cycles = timed.makespan

    @classmethod
    def of(cls, problem: Problem, decisions: Plan | PlanColumns) -> "JustifiedPlan":
        """Justify a valid plan: it ends no later.

        Parameters
        ----------
        decisions
            The plan, or its columns where no DRAM has a limit.
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

    Parameters
    ----------
    decisions
        A plan, or its columns where no DRAM has a limit. Offsets mean nothing, but for what
        overwrites an operand in place.
    clock
        When it is over, what was found by then is the answer.
    share
        Of each memory, to be filled at most where something moves.

    Attributes
    ----------
    makespan
        At most that of the decisions. What the plan takes is seldom more by a percent.
    """

    def __init__(
        self,
        problem: Problem,
        decisions: Plan | PlanColumns,
        clock: Clock,
        share: float = WHOLE,
    ) -> None:
        self._context, self._first = context_of(problem, decisions, changes_cores=False)
        self._fill = FillLimits(self._context, share)
        memories = self._fill.memories()
        self._opened = justified_by_capacity(self._context, self._first, memories, clock, ROUNDS)
        self.makespan: Cycles = self._opened.makespan

    def packed(self, clock: Clock) -> JustifiedPlan | None:
        """Find addresses, for memories that are filled less where need be; ``None`` without any.

        Parameters
        ----------
        clock
            When it is over, memories are left without.
        """
        context = self._context
        found = with_addresses(context, self._opened, self._fill, clock)
        if clock.is_over() or (found is not None and found.makespan <= self.makespan):
            return None if found is None else JustifiedPlan(context, found)
        # Where something waits for bytes of others, these memories are filled less; where it cannot
        # even wait, all are from the beginning.
        before, fill = self._opened, self._fill
        if found is None:
            before, fill = self._first, FillLimits(context)
        opened = justified_by_capacity(context, before, fill.memories(), clock, ROUNDS)
        other = with_addresses(context, opened, fill, clock)
        both = [one for one in (found, other) if one is not None]
        best = min(both, key=lambda one: one.makespan, default=None)
        return None if best is None else JustifiedPlan(context, best)


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
