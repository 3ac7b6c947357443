"""Better times for a plan whose decisions stay, whatever solver has made it."""

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from math import inf

import numpy as np

from spmilp.commands.build import TooManyEventsError
from spmilp.errors import DoesNotFitError
from spmilp.packing import PackingOptions, pack
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.simulator.simulate import simulate
from spmilp.solvers.common.clock import Clock, Step
from spmilp.solvers.common.context import SearchContext, rows_of
from spmilp.solvers.justify.context import ScheduleContext, columns_at, context_of, plan_of
from spmilp.solvers.justify.passes import backward_pass
from spmilp.solvers.justify.repacking import AT_ONCE, Effort, Repacking, justified, problem_of
from spmilp.solvers.justify.schedule import TimedSchedule
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.units import Cycles

MOST_SIMULATED = 100_000
"""Rows of plans whose times and addresses are chosen by simulation."""

VARIANTS, SHARE_TO_BEND = 5, 0.1
"""Simulations for which time is left, and the share of the limit that they get at most."""

RESTS = (1, 4, 16)
"""Of the makespan, parts for which bytes are left alone after their last use, where memory allows:
who writes them next need not wait for that use."""

NODES = 500_000
"""Items times nodes of the search for one memory's addresses."""


def shortened(context: SearchContext, plan: Plan) -> Plan:
    """Return a plan with the same decisions and addresses, and times as short as they allow.

    The plan itself where the checker has something against that.
    """
    found = JustifiedPlan.of(context.problem, plan).plan(plan)
    return found if found is not None and context.accepts(found) else plan


def seconds_to_bend(context: SearchContext, plan: Plan | None) -> float:
    """Return the seconds to leave for :func:`bending_well`: at most a tenth of the limit."""
    rows = 0 if plan is None else rows_of(plan)
    if rows > MOST_SIMULATED or context.problem.objective.first is not Quantity.MAKESPAN:
        return 0.0
    needed = VARIANTS * context.clock.pace.seconds(Step.SIMULATE, rows)
    return min(needed, SHARE_TO_BEND * (context.clock.limit or 0.0))


def bending_well(context: SearchContext, plan: Plan) -> Plan:
    """Return a plan or one of its variants, whichever the simulator runs soonest.

    All take as many cycles. In one bytes are used again as late as memories allow, for on hardware
    who writes them next learns late that they are free. In others all is as late as it can be:
    hardware shares links, and a transfer that is not urgent takes less from the others where it
    comes later in the lists. Large plans stay as they are, and those for which time is over.
    """
    rows, pace = rows_of(plan), context.clock.pace
    if rows > MOST_SIMULATED or not context.clock.has_seconds(pace.seconds(Step.SIMULATE, rows)):
        return plan
    common, first = context_of(context.problem, plan, changes_cores=False)
    rested = _rested(common, first)
    late = (backward_pass(one, common.with_addresses_of(one)) for one in (first, rested))
    variants = (_plan_at(common, timed) for timed in chain([rested], late))
    best, least = plan, inf
    with suppress(TooManyEventsError):
        for one in chain([plan], variants):
            if one is None or one.claim.makespan > plan.claim.makespan:
                continue
            if not context.clock.has_seconds(pace.seconds(Step.SIMULATE, rows)):
                break
            with pace.measured(Step.SIMULATE, rows):
                cycles = _simulated(context, one)
            if cycles < least and (one is plan or context.accepts(one)):
                best, least = one, cycles
    return best


def _rested(common: ScheduleContext, before: TimedSchedule) -> TimedSchedule:
    """Return a schedule at the same times, with bytes that rest as long as memories allow."""
    machine, offset = common.problem.machine, before.schedule.offset.copy()
    begins, ends = before.lifetimes()
    for memory in machine.memories:
        for part in () if common.is_dram[memory.index] else RESTS:
            rest = np.where(begins < ends, before.makespan // part, 0)
            there, problem = problem_of(machine, memory, before, (begins, ends + rest))
            nodes = NODES // max(1, there.size)
            found = pack(problem, PackingOptions(node_limit=nodes, conflict=False))
            if found.offsets is not None:
                offset[there] = found.offsets
                break
    return replace(before, schedule=before.schedule._replace(offset=offset))


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
    more by a percent. The ``effort`` says how much of memories it fills.
    """

    def __init__(
        self,
        problem: Problem,
        decisions: Plan | PlanColumns,
        clock: Clock,
        effort: Effort = AT_ONCE,
    ) -> None:
        self._context, first = context_of(problem, decisions, changes_cores=False)
        self._effort = effort
        self._opened = Repacking(self._context, clock, effort).opened(first)
        self.makespan: Cycles = self._opened.makespan

    def packed(self, clock: Clock) -> JustifiedPlan | None:
        """Find addresses; ``None`` without any.

        When the ``clock`` is over, memories are left without.
        """
        found = Repacking(self._context, clock, self._effort).packed(self._opened)
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
