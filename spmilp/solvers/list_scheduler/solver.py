"""The list scheduler as a solver: a portfolio of orders and assignments."""

from dataclasses import replace
from time import monotonic

from spmilp.bounds.best import best_bound
from spmilp.bounds.bound import Bound
from spmilp.errors import DoesNotFitError
from spmilp.machine.routes import Routes
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.kernels.serial.extract import plan_of
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.list_scheduler.fit import why_it_cannot_fit
from spmilp.solvers.list_scheduler.portfolio import Found, Portfolio


class ListScheduler:
    """Schedules by every rule of the portfolio and returns the best plan.

    The number of trials depends on the number of tasks, not on the clock; a time limit or an
    interrupt only cuts it short.

    Parameters
    ----------
    greedy
        Schedule in one pass by this assignment and this order alone, the baseline of comparisons;
        without it, by all of them.
    """

    def __init__(self, greedy: tuple[str, str] | None = None) -> None:
        self._greedy = greedy
        self.name = "list" if greedy is None else greedy_name(*greedy)

    def solve(
        self, problem: Problem, options: SolveOptions, hint: Plan | None = None
    ) -> SolverResult:
        """Return the best plan of the portfolio (a ``hint`` is of no use to it)."""
        reason = why_it_cannot_fit(problem)
        if reason:
            bound = best_bound(problem)
            return SolverResult(
                status=SolveStatus.INFEASIBLE,
                plan=None,
                bound=bound.value,
                bound_source=bound.name,
                reason=reason,
            )
        return _Search(problem, options, self.name, self._greedy).result()


def greedy_name(assignment: str, order: str) -> str:
    """Return the solver name of one pass by this assignment and this order."""
    return f"greedy:{assignment}/{order}"


def plan_from(problem: Problem, routes: Routes, found: Found, bound: Bound, solver: str) -> Plan:
    """Return a schedule as a plan that says by which rules it was made.

    Raises
    ------
    DoesNotFitError
        If a bounded DRAM is too small for the tensors and what is spilled to it.
    """
    trial = found.trial
    settings = (("assignment", trial.assignment), ("order", trial.order))
    weights = ((name, str(value)) for name, value in trial.weights._asdict().items())
    return plan_of(problem, routes, found.state, bound, solver, (*settings, *weights))


class _Search:
    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        name: str,
        greedy: tuple[str, str] | None,
    ) -> None:
        self._problem = problem
        self._name = name
        self._greedy = greedy
        self._options = options
        self._bound = Bound("zero", problem.objective.first, 0)
        self._routes = Routes(problem.machine)
        only = () if greedy is None else (greedy,)
        self._portfolio = Portfolio(problem, Runner(problem, self._routes), only)
        self._best: Found | None = None
        limit = options.time_limit
        self._deadline = None if limit is None else monotonic() + limit

    def result(self) -> SolverResult:
        """Run the trials and return the best plan among them."""
        interrupted = False
        try:
            self._run_trials()
        except KeyboardInterrupt:
            if self._best is None:
                raise
            interrupted = True
        if self._best is None:
            return self._without_plan(self._portfolio.reason)
        try:
            return replace(self._result_of(self._best), interrupted=interrupted)
        except DoesNotFitError as error:
            # The way in which this scheduler spills needs more of a DRAM than there is; others
            # might need less.
            return self._without_plan(str(error))

    def _without_plan(self, reason: str) -> SolverResult:
        return SolverResult(
            status=SolveStatus.UNKNOWN,
            plan=None,
            bound=self._bound.value,
            bound_source=self._bound.name,
            reason=reason,
        )

    def _run_trials(self) -> None:
        """Run one trial, then find the bound, which may take longer, then run the others."""
        trials = iter(self._portfolio)
        if not self._time_is_over():
            self._take(next(trials, None))
        self._bound = best_bound(self._problem)
        if self._best is not None:
            self._tell(self._best)
        while not self._is_over():
            try:
                self._take(next(trials))
            except StopIteration:
                return

    def _take(self, found: Found | None) -> None:
        if found is not None and (self._best is None or found.score < self._best.score):
            self._best = found
            self._tell(found)

    def _tell(self, found: Found) -> None:
        if self._options.on_progress is not None:
            source = f"list {found.trial}" if self._greedy is None else self._name
            self._options.on_progress(
                Progress(incumbent=found.score[0], bound=self._bound.value, source=source)
            )

    def _time_is_over(self) -> bool:
        return self._deadline is not None and monotonic() > self._deadline

    def _is_over(self) -> bool:
        if self._time_is_over():
            return True
        if self._best is None:
            return False
        objective = self._best.score[0]
        return objective - self._bound.value <= self._options.gap * objective

    def _result_of(self, found: Found) -> SolverResult:
        plan = plan_from(self._problem, self._routes, found, self._bound, self._name)
        optimal = found.score[0] == self._bound.value
        return SolverResult(
            status=SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE,
            plan=plan,
            bound=self._bound.value,
            bound_source=self._bound.name,
        )
