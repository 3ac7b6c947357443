"""A problem together with the schedule that its tile sizes were evaluated by."""

from dataclasses import dataclass

from spmilp.bounds.best import fast_bound
from spmilp.errors import DoesNotFitError
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.documents import collector_paused
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.schedules import TilingEvaluator

HINT = "hint"
"""The source of a plan from before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiledProblem:
    """A problem, and what is known of its plans before a solver begins.

    Parameters
    ----------
    schedule
        The best one that its tile sizes were evaluated by; ``None`` where they were not searched
        for, and where there is no schedule.
    known
        A plan in place of a schedule: one from before, or a schedule's that was justified.
    interrupted
        Whether a ``KeyboardInterrupt`` has cut the search for tile sizes short.
    source
        Of the known plan.
    """

    problem: Problem
    schedule: Found | None = None
    known: Plan | None = None
    interrupted: bool = False
    source: str = HINT

    @property
    def value(self) -> int | None:
        """Value of the problem's first objective in the schedule, or the known plan."""
        if self.schedule is not None:
            return self.schedule.score[0]
        if self.known is not None:
            return claimed(self.known.claim).of(self.problem.objective.first)
        return None

    @collector_paused()
    def plan(self) -> Plan | None:
        """Return the known plan, or the schedule as one, whose bound takes next to no time."""
        if self.schedule is None:
            return self.known
        try:
            bound = fast_bound(self.problem)
            return TilingEvaluator(self.problem.machine).plan(self.problem, self.schedule, bound)
        except DoesNotFitError:
            return None

    def result(self, plan: Plan | None = None) -> SolverResult | None:
        """Return :meth:`plan` as the answer to an interrupt; ``None`` where there is none.

        Parameters
        ----------
        plan
            What :meth:`plan` has returned, if it was asked before.
        """
        plan = plan or self.plan()
        if plan is None:
            return None
        return SolverResult(
            status=SolveStatus.OPTIMAL if self.value == plan.claim.bound else SolveStatus.FEASIBLE,
            plan=plan,
            bound=plan.claim.bound,
            bound_source=plan.claim.bound_source,
            interrupted=True,
        )
