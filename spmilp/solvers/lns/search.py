"""One run of the search: the best plan so far, and what is done to it."""

from dataclasses import dataclass

from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.lns.helpers import Helpers
from spmilp.solvers.lns.initial_solutions import Starts
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.steps import Steps
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.justification import double_justified
from spmilp.solvers.partial_order.repacking import (
    TRIES_AT_ONCE,
    FillLimits,
    justified_by_capacity,
    repacked,
    with_addresses,
)
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.solvers.partial_order.transfer_options import OptionTables, option_tables_of
from spmilp.units import Cycles

NAME = "lns"

SECONDS_TO_FINISH = 1e-4
"""For each activity: to build the plan and to check it."""

FIRST_ROUNDS = 2
"""Passes for each start, before one is chosen."""

SHARE_OF_CHOICE = 0.45
"""Of the time, at most, until one start is chosen."""

ACTIVITIES_MOVED, MOST_STEPS = 500_000, 50
"""Without a time limit there are so many steps that about so many activities are moved."""

WORTH_PACKING = 0.001
"""Share of the makespan that open times have to save before addresses are looked for."""

PATIENCE = 12
"""Steps without any gain before addresses are looked for, for less."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A start: its plan double_justified, and how short it becomes with all addresses open."""

    context: ScheduleContext
    incumbent: TimedSchedule
    current: TimedSchedule
    fill: FillLimits


class Session:
    """Looks for a plan of the least makespan until the time is over or nothing is left to try."""

    def __init__(self, context: SearchContext, settings: LnsOptions) -> None:
        self._context = context
        self._problem = context.problem
        self._options = context.options
        self._clock = context.clock
        self._settings = settings
        self._hint = context.valid_hint
        self._bound = context.bound
        self._starts = Starts(context)
        self._reported: Cycles | None = None
        self._best: Candidate | None = None

    @property
    def has_plan(self) -> bool:
        """Whether anything has been found."""
        return self._reported is not None

    def search(self) -> None:
        """Choose between the starts, and improve the best."""
        if self._hint is not None:
            self._report(self._hint.claim.makespan, "hint")
        for makespan in self._starts.schedule():
            self._report(makespan, "list")
            if self._is_done():
                return
        candidates = self._candidates()
        if not self._settings.opening:
            return
        for candidate in sorted(candidates, key=lambda one: one.current.makespan):
            if self._is_done() or candidate.current.makespan >= self._makespan():
                break
            self._repack(candidate)
        if self._best is not None:
            self._step_by_step(self._best)

    def result(self) -> SolverResult:
        """Return the best plan that the checker accepts."""
        best = self._best
        if best is not None:
            built = self._built(best)
            plan = None if built is None else self._context.labelled(built, solver=NAME)
            if plan is None or not self._context.accepts(plan):
                plan = best.context.plan
        else:
            plans = [*self._starts.plans()] if self._hint is None else [self._hint]
            plan = min(plans, key=lambda plan: plan.claim.makespan, default=None)
        if plan is None:
            return self._context.unknown(self._starts.reason)
        return self._context.found(plan, solver=NAME)

    def _candidates(self) -> list[Candidate]:
        """Return what the starts promise; each is double_justified and offered."""
        found: list[Candidate] = []
        options: OptionTables | None = None
        hints = [] if self._hint is None else [self._hint]
        for plan in (*hints, *self._starts.plans()):
            if found and (self._is_done() or self._clock.is_over(SHARE_OF_CHOICE)):
                break
            if found and not self._settings.starts:
                break
            options = options or option_tables_of(self._problem, plan)
            context, schedule, start = context_of(
                self._problem,
                plan,
                options,
                drops_transfers=self._settings.reloads,
                bypasses_dram=self._settings.sparing,
                changes_cores=self._settings.reassignment,
            )
            self._clock.reserve(SECONDS_TO_FINISH * start.size)
            incumbent = double_justified(
                context, TimedSchedule(schedule, start, plan.claim.makespan)
            )
            fill = FillLimits(context)
            current = justified_by_capacity(
                context, incumbent, fill.limit(), self._clock, FIRST_ROUNDS
            )
            candidate = Candidate(context, incumbent, current, fill)
            self._offer(candidate, "double_justified")
            found.append(candidate)
        return found

    def _repack(self, candidate: Candidate) -> None:
        context, fill = candidate.context, candidate.fill
        for found in repacked(context, candidate.incumbent, fill, self._clock, candidate.current):
            if found is not None:
                self._offer(Candidate(context, found, found, fill), "repacked")
            if self._is_done():
                return

    def _step_by_step(self, best: Candidate) -> None:
        """Go on from the best plan with kicks and windows; now and then look for addresses."""
        context, fill, seed = best.context, best.fill, self._options.seed
        if not self._settings.steps:
            return
        own, *others = (
            Steps(context, fill, self._clock, self._settings, seed + helper)
            for helper in range(self._options.workers)
        )
        current = justified_by_capacity(context, best.incumbent, fill.limit(), self._clock)
        steps = min(MOST_STEPS, ACTIVITIES_MOVED // current.start.size)
        idle = 0
        with Helpers(others, current) as helpers:
            while not self._is_done() and (self._clock.is_limited or steps > 0):
                steps -= 1
                before = current.makespan
                current = helpers.exchanged(own.take(current))
                idle = 0 if current.makespan < before else idle + 1
                gain = self._makespan() - current.makespan
                is_due = idle % PATIENCE == PATIENCE - 1 or steps == 0
                if gain > self._makespan() * WORTH_PACKING or (gain > 0 and is_due):
                    current = self._settle(context, current, fill)
                    helpers.begin_again(current)

    def _settle(
        self, context: ScheduleContext, current: TimedSchedule, fill: FillLimits
    ) -> TimedSchedule:
        """Offer open times with addresses; return what to go on from."""
        for _ in range(TRIES_AT_ONCE):
            found = with_addresses(context, current, fill, self._clock)
            if found is not None:
                self._offer(Candidate(context, found, found, fill), "improved")
                return found
            if self._is_done():
                break
            current = justified_by_capacity(context, current, fill.limit(), self._clock)
        return current if self._best is None else self._best.incumbent

    def _built(self, best: Candidate) -> Plan | None:
        incumbent, context = best.incumbent, best.context
        try:
            return plan_of(
                self._problem,
                context.plan,
                incumbent.schedule,
                incumbent.start,
                dram_is_free=context.dram_is_free,
            )
        except DoesNotFitError:
            return None

    def _offer(self, candidate: Candidate, source: str) -> None:
        if self._best is None or candidate.incumbent.makespan < self._best.incumbent.makespan:
            self._best = candidate
            self._report(candidate.incumbent.makespan, source)

    def _makespan(self) -> Cycles:
        return 2**62 if self._best is None else self._best.incumbent.makespan

    def _report(self, makespan: Cycles, source: str) -> None:
        if self._reported is None or makespan < self._reported:
            self._reported = makespan
            self._context.report(makespan, self._bound.value, f"{NAME} {source}")

    def _is_done(self) -> bool:
        if self._clock.is_over():
            return True
        reported = self._reported
        return reported is not None and self._context.is_enough(reported, self._bound.value)
