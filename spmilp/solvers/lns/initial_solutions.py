"""Plans to start from: a hint, and what the list scheduler finds by its several rules."""

from collections import Counter
from collections.abc import Iterator

from spmilp.bounds.bound import Bound
from spmilp.errors import DoesNotFitError
from spmilp.machine.routes import Routes
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.schedule_state import COUNT_TRANSFERS
from spmilp.solvers.kernels.serial.extract import plan_of
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.list_scheduler.portfolio import Found, Portfolio

MOST_KEPT = 20
ACTIVITIES_KEPT = 400_000
"""Of all schedules that are kept, about; the larger the problem, the fewer schedules."""

SHARE = 0.2
"""Of the time, at most, for the list scheduler."""


class Starts:
    """The best schedule of each of the list scheduler's rules.

    Which of them leads to the shortest plan in the end, its own makespan does not say: on networks
    with tight memory, one that begins a tenth longer than the best may end a tenth shorter.
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
        """Yield the plans that were kept: the shortest of each assignment, then the next ones."""
        rank: Counter[str] = Counter()
        turns: list[tuple[int, int]] = []
        for position, found in enumerate(self._kept):
            family = found.trial.assignment.split()[0]
            turns.append((rank[family], position))
            rank[family] += 1
        for _, position in sorted(turns):
            found = self._kept[position]
            settings = (("assignment", found.trial.assignment), ("order", found.trial.order))
            try:
                yield plan_of(
                    self._problem, self._routes, found.state, self._bound, "list", settings
                )
            except DoesNotFitError:
                continue

    def _keep(self, found: Found) -> None:
        """Keep the best schedule of each rule; of two that score the same, one."""
        if any(found.score == other.score for other in self._kept):
            return
        rule = (found.trial.assignment, found.trial.order)
        alike = [one for one in self._kept if (one.trial.assignment, one.trial.order) == rule]
        if any(one.score < found.score for one in alike):
            return
        others = [one for one in self._kept if one not in alike]
        self._kept = sorted([*others, found], key=lambda one: one.score)
        activities = found.state.tasks.size + int(found.state.counts[COUNT_TRANSFERS])
        del self._kept[max(2, min(MOST_KEPT, ACTIVITIES_KEPT // activities)) :]
