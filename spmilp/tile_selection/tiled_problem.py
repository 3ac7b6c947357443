"""A problem together with the schedule that its tile sizes were evaluated by."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from spmilp.bounds.best import fast_bound
from spmilp.checker.check import Verdict
from spmilp.errors import DoesNotFitError
from spmilp.formats import collector_paused
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.justify.repacking import AT_ONCE, Effort
from spmilp.solvers.justify.shortening import JustifiedPlan, OpenSchedule
from spmilp.solvers.schedule.kernels.extract import can_be_open
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.portfolio import Found, plan_from

Worth: TypeAlias = tuple[int, ...]
"""Quantities of a plan in the order of the problem's objective; of two the lesser is better, and
so of equal makespans the one with less DRAM traffic."""

HINT = "hint"
"""The source of a plan from before."""

JUSTIFIED = "justified"
"""The source of a schedule's plan at other times."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiledProblem:
    """A problem, and what is known of its plans before a solver begins.

    Parameters
    ----------
    schedule
        The best one that its tile sizes were evaluated by; ``None`` where they were not searched
        for, and where there is no schedule.
    opened
        The schedule at justified times, for which there may be no addresses.
    justified
        The schedule's plan at justified times, which is made when it is asked for. Where the
        schedule leaves addresses open, it has found some.
    known
        A plan from before, in place of a schedule.
    interrupted
        Whether a ``KeyboardInterrupt`` has cut the search for tile sizes short.
    stream
        A stream of its inferences, by which its tile sizes were chosen.
    is_fallback
        Whether there was no time to compare its tiles with others.
    """

    problem: Problem
    schedule: Found | None = None
    opened: OpenSchedule | None = None
    justified: JustifiedPlan | None = None
    known: Plan | None = None
    interrupted: bool = False
    stream: Plan | None = None
    is_fallback: bool = False

    @property
    def worth(self) -> Worth | None:
        """All quantities of the schedule, or of the known plan; ``None`` without either."""
        if self.schedule is not None:
            shorter = self.justified or self.opened
            first = () if shorter is None else (shorter.makespan,)
            return (*first, *self.schedule.score[len(first) :])
        if self.known is not None:
            claim, order = self.known.claim, self.problem.objective.order
            return tuple(claim.of(quantity) for quantity in order)
        return None

    @property
    def value(self) -> int | None:
        """Value of the problem's first objective in the schedule, or the known plan."""
        return None if self.worth is None else self.worth[0]

    @property
    def source(self) -> str:
        """What the plan comes from, for people."""
        return HINT if self.justified is None else JUSTIFIED

    @property
    def is_open(self) -> bool:
        """Whether its schedule leaves addresses open."""
        return self.schedule is not None and not self.schedule.has_addresses

    @property
    def has_plan(self) -> bool:
        """Whether its value is that of a plan: no addresses are yet to be found."""
        is_open = self.is_open or self.opened is not None
        return self.value is not None and (self.justified is not None or not is_open)

    @collector_paused()
    def verdict(self) -> Verdict | None:
        """Return the checker's verdict on the justified plan.

        ``None`` where there is no such plan, or the checker has something against it.
        """
        plan = self.justified_plan()
        verdict = None if plan is None else Verdict.on(self.problem, plan)
        return None if verdict is None or verdict.violations else verdict

    @collector_paused()
    def justified_plan(self) -> Plan | None:
        """Return the plan at justified times; ``None`` where there is none."""
        if self.schedule is None or self.justified is None:
            return None
        if self.is_open:
            return self._as_plan(self.schedule, self.justified.columns())
        origin = self.plan()
        return None if origin is None else self.justified.plan(origin)

    @collector_paused()
    def once_opened(self, clock: Clock, effort: Effort = AT_ONCE) -> "TiledProblem":
        """Return it with the schedule at justified times, for which there may be no addresses."""
        decisions = self._decisions()
        if self.schedule is None or self.opened is not None or decisions is None:
            return self
        return replace(self, opened=OpenSchedule(self.problem, decisions, clock, effort))

    @collector_paused()
    def once_packed(self, clock: Clock) -> "TiledProblem":
        """Return it with addresses for its schedule at justified times, if some are found."""
        found = None if self.opened is None else self.opened.packed(clock)
        return self if found is None else replace(self, justified=found)

    @collector_paused()
    def with_room(self, clock: Clock, effort: Effort) -> "TiledProblem":
        """Return it with its open schedule made anew in the share of memories that an effort fills.

        Without a plan where tasks do not fit into that, or no addresses are found either.
        """
        found = None if self.schedule is None else self.schedule.within(effort.share)
        anew = TiledProblem(problem=self.problem, schedule=found)
        return anew.once_opened(clock, effort).once_packed(clock)

    @collector_paused()
    def with_addresses(self) -> "TiledProblem":
        """Return it with addresses for its schedule as it was made; without it where none are."""
        if self.schedule is None or not self.is_open:
            return self
        try:
            schedule = self.schedule.with_addresses
        except DoesNotFitError:
            schedule = None
        return replace(self, schedule=schedule, opened=None)

    @collector_paused()
    def once_justified(self) -> "TiledProblem":
        """Return it with the plan at justified times; as it is where there is none."""
        decisions = self.with_addresses()._decisions()
        if decisions is None:
            return self
        return replace(self, justified=JustifiedPlan.of(self.problem, decisions))

    def _decisions(self) -> Plan | PlanColumns | None:
        """Return the columns of its schedule where these are enough, or else its plan."""
        if self.schedule is not None and can_be_open(self.problem):
            return self.schedule.columns
        return self.plan()

    @collector_paused()
    def plan(self) -> Plan | None:
        """Return the known plan, or the schedule as one, whose bound takes next to no time.

        Where the schedule leaves addresses open, it is that by the same rule with addresses.
        """
        found = self.with_addresses().schedule
        return self.known if self.schedule is None else self._as_plan(found)

    def _as_plan(self, found: Found | None, columns: PlanColumns | None = None) -> Plan | None:
        if found is None:
            return None
        try:
            return plan_from(self.problem, found, fast_bound(self.problem), "list", columns)
        except DoesNotFitError:
            return None

    def result(
        self, verdict: Verdict | None = None, plan: Plan | None = None
    ) -> SolverResult | None:
        """Return the plan there is as the answer to an interrupt; ``None`` where there is none.

        Parameters
        ----------
        verdict, plan
            What :meth:`verdict` and :meth:`plan` have returned, if they were asked before.
        """
        if plan is None:
            verdict = verdict or self.verdict()
            plan = self.plan() if verdict is None else verdict.plan
        if plan is None:
            return None
        value = plan.claim.of(self.problem.objective.first)
        return SolverResult(
            status=SolveStatus.OPTIMAL if value == plan.claim.bound else SolveStatus.FEASIBLE,
            plan=plan,
            bound=plan.claim.bound,
            bound_source=plan.claim.bound_source,
            interrupted=True,
            verdict=verdict,
        )
