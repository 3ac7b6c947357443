"""A problem whose tile sizes were judged by a schedule: that is its first plan."""

from dataclasses import dataclass

from spmilp.errors import DoesNotFitError
from spmilp.problem.documents import collector_paused
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Result, SolveStatus
from spmilp.solvers.bounds.best import quick_bound
from spmilp.solvers.list_scheduler.judge import Judge
from spmilp.solvers.list_scheduler.portfolio import Found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draft:
    """A problem, and what is known of its plans before a solver begins.

    Parameters
    ----------
    schedule
        The best one that its tile sizes were judged by; ``None`` where they were not searched for,
        and where there is no schedule.
    """

    problem: Problem
    schedule: Found | None = None

    @property
    def value(self) -> int | None:
        """What the schedule makes of the problem's first quantity."""
        return None if self.schedule is None else self.schedule.score[0]

    @collector_paused()
    def result(self) -> Result | None:
        """Return the schedule as the answer of somebody who was interrupted.

        Its bound is one that takes next to no time. ``None`` where there is no schedule.
        """
        if self.schedule is None:
            return None
        bound = quick_bound(self.problem)
        try:
            plan = Judge(self.problem.machine).plan(self.problem, self.schedule, bound)
        except DoesNotFitError:
            return None
        return Result(
            status=SolveStatus.OPTIMAL if self.value == bound.value else SolveStatus.FEASIBLE,
            plan=plan,
            bound=bound.value,
            bound_source=bound.name,
            interrupted=True,
        )
