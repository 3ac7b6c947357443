"""A problem together with the schedule that its tile sizes were evaluated by."""

from dataclasses import dataclass

from spmilp.bounds.best import fast_bound
from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.documents import collector_paused
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.schedules import TilingEvaluator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiledProblem:
    """A problem, and what is known of its plans before a solver begins.

    Parameters
    ----------
    schedule
        The best one that its tile sizes were evaluated by; ``None`` where they were not searched
        for, and where there is no schedule.
    interrupted
        Whether a ``KeyboardInterrupt`` has cut the search for tile sizes short.
    """

    problem: Problem
    schedule: Found | None = None
    interrupted: bool = False

    @property
    def value(self) -> int | None:
        """Value of the problem's first objective in the schedule."""
        return None if self.schedule is None else self.schedule.score[0]

    @collector_paused()
    def plan(self) -> Plan | None:
        """Return the schedule as a plan; its bound is one that takes next to no time."""
        if self.schedule is None:
            return None
        try:
            bound = fast_bound(self.problem)
            return TilingEvaluator(self.problem.machine).plan(self.problem, self.schedule, bound)
        except DoesNotFitError:
            return None

    def result(self, plan: Plan | None = None) -> SolverResult | None:
        """Return the schedule as the answer to an interrupt; ``None`` without a schedule.

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
