"""The list scheduler as a solver: a portfolio of orders and assignments."""

from contextlib import suppress

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
    interrupt only cuts it short. A hint is of no use to it.

    Parameters
    ----------
    greedy
        Schedule in one pass by this assignment and this order alone, the baseline of comparisons;
        without it, by all of them.
    """

    keeps = frozenset(PinKind)
    settles = True

    def __init__(self, greedy: tuple[str, str] | None = None) -> None:
        self._greedy = greedy
        self.name = "list" if greedy is None else greedy_name(*greedy)

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan of the portfolio."""
        if context.misfit:
            return context.infeasible(context.misfit)
        if self._greedy is None:
            return _Search(context, Schedules.of(context), self.name).result()
        schedules = Schedules(
            context.problem, (self._greedy,), multicasts=False, pace=context.clock.pace
        )
        return _Search(context, schedules, self.name).result()


def greedy_name(assignment: str, order: str) -> str:
    """Return the solver name of one pass by this assignment and this order."""
    return f"greedy:{assignment}/{order}"


class _Search:
    """One run through the trials; ``name`` is what reports and the plan call the solver."""

    def __init__(self, context: SearchContext, schedules: Schedules, name: str) -> None:
        self._context = context
        self._schedules = schedules
        self._name = name
        self._bound = Bound("zero", context.problem.objective.first, 0)
        self._best: Found | None = None
        self._first: Found | None = None

    def result(self) -> SolverResult:
        """Run the trials and return the best plan among them."""
        with self._context.until_interrupted(lambda: self._best is not None):
            self._run_trials()
        clock = self._context.clock
        plan = self._schedules.best_plan(self._bound, self._name, self._first, clock.is_over)
        if plan is None:
            return self._context.unknown(self._schedules.reason, self._bound)
        self._report(self._context.values(plan)[0])
        return self._context.found(plan, self._bound)

    def _run_trials(self) -> None:
        """Run one trial, then find the bound, which may take longer, then run the others."""
        trials = iter(self._schedules)
        self._take(next(trials, None))
        self._bound = self._context.bound
        if self._best is not None:
            self._report(self._best.score[0])
        while not self._is_over():
            try:
                self._take(next(trials))
            except StopIteration:
                return

    def _take(self, found: Found | None) -> None:
        """Take a schedule that is better; the first one only with addresses, as there is a plan."""
        if found is None:
            return
        if self._best is None:
            with suppress(DoesNotFitError):
                self._best = self._first = found.with_addresses
                self._report(self._best.score[0])
        elif found.score < self._best.score:
            self._best = found

    def _report(self, value: int) -> None:
        self._context.report(value, self._bound.value, self._name)

    def _is_over(self) -> bool:
        if self._best is None:
            return False
        return self._context.clock.is_over() or self._context.is_enough(
            self._best.score[0], self._bound.value
        )
