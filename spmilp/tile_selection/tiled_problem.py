"""A problem together with the schedule that its tile sizes were evaluated by."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from spmilp.bounds.best import fast_bound
from spmilp.checker.check import Verdict
from spmilp.errors import DoesNotFitError
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.documents import collector_paused
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.kernels.dram import needs_no_dram_addresses
from spmilp.solvers.kernels.plan_columns import PlanColumns
from spmilp.solvers.kernels.serial.extract import columns_of
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.schedules import plan_from
from spmilp.solvers.partial_order.shortening import JustifiedPlan

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
    justified
        The schedule's plan at justified times, which is made when it is asked for.
    known
        A plan from before, in place of a schedule.
    interrupted
        Whether a ``KeyboardInterrupt`` has cut the search for tile sizes short.
    """

    problem: Problem
    schedule: Found | None = None
    justified: JustifiedPlan | None = None
    known: Plan | None = None
    interrupted: bool = False

    @property
    def worth(self) -> Worth | None:
        """All quantities of the schedule, or of the known plan; ``None`` without either."""
        if self.schedule is not None:
            first = () if self.justified is None else (self.justified.makespan,)
            return (*first, *self.schedule.score[len(first) :])
        if self.known is not None:
            claim, order = claimed(self.known.claim), self.problem.objective.order
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

    @collector_paused()
    def verdict(self) -> Verdict | None:
        """Return the checker's verdict on the justified plan.

        ``None`` where there is no such plan, or the checker has something against it.
        """
        origin = None if self.justified is None else self.plan()
        plan = None if self.justified is None or origin is None else self.justified.plan(origin)
        verdict = None if plan is None else Verdict.on(self.problem, plan)
        return None if verdict is None or verdict.violations else verdict

    @collector_paused()
    def once_justified(self) -> "TiledProblem":
        """Return it with the plan at justified times; as it is where there is none."""
        decisions: Plan | PlanColumns | None
        if self.schedule is not None and needs_no_dram_addresses(self.problem.machine):
            decisions = columns_of(self.problem, self.schedule.state)
        else:
            decisions = self.plan()
        if decisions is None:
            return self
        return replace(self, justified=JustifiedPlan(self.problem, decisions))

    @collector_paused()
    def plan(self) -> Plan | None:
        """Return the known plan, or the schedule as one, whose bound takes next to no time."""
        if self.schedule is None:
            return self.known
        try:
            bound = fast_bound(self.problem)
            return plan_from(self.problem, self.schedule, bound, "list")
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
        value = claimed(plan.claim).of(self.problem.objective.first)
        return SolverResult(
            status=SolveStatus.OPTIMAL if value == plan.claim.bound else SolveStatus.FEASIBLE,
            plan=plan,
            bound=plan.claim.bound,
            bound_source=plan.claim.bound_source,
            interrupted=True,
            verdict=verdict,
        )
