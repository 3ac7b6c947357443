"""Plans to start from: a hint, and what the list scheduler finds by its several rules."""

from collections.abc import Iterator

from spmilp.errors import DoesNotFitError
from spmilp.machine.routes import Routes
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.bounds.bound import Bound
from spmilp.solvers.list_scheduler.board import COUNT_TRANSFERS
from spmilp.solvers.list_scheduler.extract import plan_of
from spmilp.solvers.list_scheduler.portfolio import Found, Portfolio
from spmilp.solvers.list_scheduler.run import Runner
from spmilp.solvers.lns.clock import Clock

MOST_KEPT = 8
ACTIVITIES_KEPT = 120_000
"""Of all schedules that are kept, about; the larger the problem, the fewer schedules."""

SHARE = 0.2
"""Of the time, at most, for the list scheduler."""


class Starts:
    """The best schedules of the list scheduler's portfolio, of different rules.

    Which of them leads to the shortest plan in the end, its own makespan does not say.
    """

    def __init__(self, problem: Problem, bound: Bound, clock: Clock) -> None:
        self._problem = problem
        self._bound = bound
        self._clock = clock
        self._routes = Routes(problem.machine)
        self._portfolio = Portfolio(problem, Runner(problem, self._routes))
        self._kept: list[Found] = []

    @property
    def reason(self) -> str:
        """Why there is no schedule, where there is none."""
        return self._portfolio.reason

    def schedule(self) -> Iterator[int]:
        """Try the rules one after another; yield the makespan of each schedule, in cycles."""
        for found in self._portfolio:
            if found is not None:
                self._keep(found)
                yield found.score[0]
            if self._kept and self._clock.is_over(SHARE):
                return

    def plans(self) -> Iterator[Plan]:
        """Yield the plans that were kept, the shortest first."""
        for found in self._kept:
            settings = (("assignment", found.trial.assignment), ("order", found.trial.order))
            try:
                yield plan_of(
                    self._problem, self._routes, found.board, self._bound, "list", settings
                )
            except DoesNotFitError:
                continue

    def _keep(self, found: Found) -> None:
        """Keep the best few; of two that score the same, one."""
        if any(found.score == other.score for other in self._kept):
            return
        self._kept = sorted([*self._kept, found], key=lambda one: one.score)
        activities = found.board.tasks.size + int(found.board.counts[COUNT_TRANSFERS])
        del self._kept[max(2, min(MOST_KEPT, ACTIVITIES_KEPT // activities)) :]
