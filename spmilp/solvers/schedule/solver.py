"""The list scheduler as a solver: a portfolio of orders and assignments."""

from contextlib import suppress
from dataclasses import replace

from spmilp.bounds.best import Bound
from spmilp.errors import DoesNotFitError
from spmilp.problem.pins import PinKind
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.schedule.portfolio import Found, Schedules


class ListScheduler(Solver):
    """Schedules by every rule of the portfolio and returns the best plan.

    The number of trials depends on the number of tasks, not on the clock; a time limit or an
    interrupt only cuts it short. A hint is of no use to it. A ``greedy`` one schedules in one pass
    by this assignment and this order alone, the baseline of comparisons.
    """

    keeps = frozenset(PinKind)
    settles = True

    def __init__(self, greedy: tuple[str, str] | None = None) -> None:
        self._greedy = greedy
        self.name = "list" if greedy is None else f"greedy:{'/'.join(greedy)}"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan of the portfolio."""
        if context.misfit:
            return context.infeasible(context.misfit)
        schedules = Schedules.of(context)
        if self._greedy is not None:
            pace = context.clock.pace
            schedules = Schedules(context.problem, (self._greedy,), multicasts=False, pace=pace)
        bound = Bound("zero", context.problem.objective.first, 0)
        return ScheduleSearch(context, schedules, self.name, bound).result()


def hint_or_schedule(context: SearchContext, share: float) -> SolverResult:
    """Return a valid hint, or what the list scheduler finds within a share of the time limit."""
    hint = context.valid_hint
    if hint is not None:
        return context.found(hint)
    return ListScheduler().search(context.member(context.clock.seconds_left(share), None))


class ScheduleSearch:
    """One run through the trials; ``name`` is what reports and the plan call the solver."""

    def __init__(
        self, context: SearchContext, schedules: Schedules, name: str, bound: Bound
    ) -> None:
        self._context = context
        self._schedules = schedules
        self._name = name
        self._bound = bound
        self._best: Found | None = None
        self._known: Found | None = None

    def result(self, *options: tuple[str, str]) -> SolverResult:
        """Search, and return the best plan; it says these options of how it was made, too."""
        context = self._context
        with context.until_interrupted(lambda: self._known is not None):
            self._run()
        plan = self._schedules.best_plan(
            self._bound, self._name, self._known, context.clock.is_over
        )
        if plan is None:
            return context.unknown(self._schedules.reason, self._bound)
        context.report(context.values(plan)[0], self._bound.value, self._name)
        return context.found(replace(plan, options=(*plan.options, *options)), self._bound)

    def _run(self) -> None:
        """Run one trial, then find the bound, which may take longer, then run the others."""
        for number, found in enumerate(self._schedules):
            self._take(found)
            if number == 0:
                self._bound = self._context.bound
                if self._best is not None:
                    self._report(self._best)
            if self._is_over():
                return

    def _take(self, found: Found | None) -> None:
        """Take a schedule that is better; the first one only with addresses, as there is a plan."""
        if found is None:
            return
        if self._best is None:
            self._report(found)
            self._best = self._known
        elif found.score < self._best.score:
            self._best = found

    def _report(self, found: Found) -> None:
        """Report a schedule once it has addresses."""
        with suppress(DoesNotFitError):
            found = found.with_addresses
            if self._known is None or found.score < self._known.score:
                self._known = found
            self._context.report(found.score[0], self._bound.value, self._name)

    def _is_over(self) -> bool:
        if self._best is None:
            return False
        return self._context.clock.is_over() or self._context.is_enough(
            self._best.score[0], self._bound.value
        )
