"""The list scheduler as a solver: a portfolio of orders and assignments."""

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
            return _Search(context, Schedules.of(context), "").result()
        schedules = Schedules(context.problem, (self._greedy,), multicasts=False)
        return _Search(context, schedules, self.name).result()


def greedy_name(assignment: str, order: str) -> str:
    """Return the solver name of one pass by this assignment and this order."""
    return f"greedy:{assignment}/{order}"


class _Search:
    """One run through the trials.

    Parameters
    ----------
    name
        What reports and the plan call the solver; empty for the portfolio, whose reports name the
        rule.
    """

    def __init__(self, context: SearchContext, schedules: Schedules, name: str) -> None:
        self._context = context
        self._schedules = schedules
        self._name = name
        self._bound = Bound("zero", context.problem.objective.first, 0)
        self._best: Found | None = None

    def result(self) -> SolverResult:
        """Run the trials and return the best plan among them."""
        with self._context.until_interrupted(lambda: self._best is not None):
            self._run_trials()
        reason = self._schedules.reason
        for found in self._schedules.kept:
            try:
                plan = self._schedules.plan(found, self._bound)
            except DoesNotFitError as error:
                # Others may need less of a memory, or of a DRAM to which they spill.
                reason = str(error)
                continue
            return self._context.found(replace(plan, solver=self._name or "list"), self._bound)
        return self._context.unknown(reason, self._bound)

    def _run_trials(self) -> None:
        """Run one trial, then find the bound, which may take longer, then run the others."""
        trials = iter(self._schedules)
        self._take(next(trials, None))
        self._bound = self._context.bound
        if self._best is not None:
            self._report(self._best)
        while not self._is_over():
            try:
                self._take(next(trials))
            except StopIteration:
                return

    def _take(self, found: Found | None) -> None:
        if found is not None and (self._best is None or found.score < self._best.score):
            self._best = found
            self._report(found)

    def _report(self, found: Found) -> None:
        source = self._name or f"list {found.trial}"
        self._context.report(found.score[0], self._bound.value, source)

    def _is_over(self) -> bool:
        if self._best is None:
            return False
        return self._context.clock.is_over() or self._context.is_enough(
            self._best.score[0], self._bound.value
        )
