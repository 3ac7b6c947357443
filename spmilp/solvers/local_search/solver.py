"""Local search as a solver."""

from dataclasses import replace
from threading import Event, Thread
from time import monotonic

import numpy as np

from spmilp.bounds.best import best_bound
from spmilp.bounds.bound import Bound
from spmilp.errors import DoesNotFitError
from spmilp.machine.routes import Routes
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.kernels.serial.extract import plan_of
from spmilp.solvers.list_scheduler.fit import why_it_cannot_fit
from spmilp.solvers.local_search.candidate import Candidate, Judged
from spmilp.solvers.local_search.evaluate import Evaluator
from spmilp.solvers.local_search.problem_index import problem_index
from spmilp.solvers.local_search.run import RunOptions, SearchRun
from spmilp.solvers.local_search.starts import Starts
from spmilp.solvers.local_search.team import Team

TASKS_PLACED = 1_000_000
SHARE_OF_PORTFOLIO = 0.3
"""Of a time limit: the first rules of the portfolio are almost as good as all of them."""
FEWEST_STEPS, MOST_STEPS = 30, 4_000


class LocalSearch:
    """Improves what the list scheduler decides on, with its schedules as the judge.

    It begins with all that the ``list`` solver tries, so it is never worse; but where that takes
    most of a time limit, it leaves the last trials out. Without a time limit the number of steps
    depends on the number of tasks alone. Each worker walks on its own, from a
    seed of its own, and goes on from the best schedule of all when it is stuck.
    """

    name = "search"

    def __init__(self, walk: RunOptions | None = None) -> None:
        self._walk = walk or RunOptions()

    def solve(
        self, problem: Problem, options: SolveOptions, hint: Plan | None = None
    ) -> SolverResult:
        """Return the best plan found; a ``hint`` is one of the schedules to begin with."""
        limit = options.time_limit
        deadline = None if limit is None else monotonic() + limit
        reason = why_it_cannot_fit(problem)
        if reason:
            return _without_plan(SolveStatus.INFEASIBLE, best_bound(problem), reason)
        return _Search(problem, options, self._walk, deadline).result(hint)


class _Search:
    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        walk: RunOptions,
        deadline: float | None,
    ) -> None:
        self._problem = problem
        self._options = options
        self._walk = walk
        self._routes = Routes(problem.machine)
        self._index = problem_index(problem)
        self._nothing = Bound("zero", problem.objective.first, 0)
        self._team = Team(options, self._nothing, deadline)
        self._has_limit = deadline is not None
        self._portfolio_until: float | None = None
        if deadline is not None and options.time_limit is not None:
            rest = (1 - SHARE_OF_PORTFOLIO) * options.time_limit
            self._portfolio_until = deadline - rest
        self._reason = ""
        self._others: tuple[Candidate, ...] = ()

    def result(self, hint: Plan | None) -> SolverResult:
        """Search, and return the best plan."""
        done = Event()
        leader = Thread(target=self._lead, args=(hint, done), daemon=True)
        leader.start()
        interrupted = False
        try:
            self._team.wait(done)
            if self._team.bound is self._nothing:
                self._team.prove(best_bound(self._problem))
        except KeyboardInterrupt:
            if self._team.best is None:
                raise
            interrupted = True
        finally:
            self._team.stop()
        if self._team.best is None:
            return _without_plan(SolveStatus.UNKNOWN, self._team.bound, self._reason)
        return replace(self._result_of(self._team.best), interrupted=interrupted)

    def _lead(self, hint: Plan | None, done: Event) -> None:
        """Find schedules to begin with, then walk with the others."""
        try:
            evaluator = Evaluator(self._problem, self._routes, self._index)
            starts = self._begin(evaluator, hint)
            if starts:
                helpers = [
                    Thread(
                        target=self._help, args=(starts[number % len(starts)], number), daemon=True
                    )
                    for number in range(1, self._options.workers)
                ]
                for helper in helpers:
                    helper.start()
                self._go(evaluator, starts[0], 0)
                for helper in helpers:
                    helper.join()
        except BaseException as error:
            self._team.fail(error)
        finally:
            done.set()

    def _help(self, start: Judged, number: int) -> None:
        try:
            self._go(Evaluator(self._problem, self._routes, self._index), start, number)
        except BaseException as error:
            self._team.fail(error)

    def _begin(self, evaluator: Evaluator, hint: Plan | None) -> list[Judged]:
        """TilingEvaluator the starts; return the best one for each worker, cores fixed.

        The bound comes after the first, for it may take longer.
        """
        starts = Starts(self._problem, self._index, evaluator, hint, self._portfolio_until)
        best: list[Judged] = []
        if not self._team.is_over():
            for number, judged in enumerate(starts):
                if judged is not None:
                    self._team.offer(judged)
                    if judged.exact:
                        best.append(judged)
                        best.sort(key=lambda one: one.score)
                        del best[self._options.workers :]
                if number == 0:
                    self._team.prove(best_bound(self._problem))
                if self._team.is_over():
                    break
        self._reason = starts.reason
        self._others = starts.candidates
        return best

    def _go(self, evaluator: Evaluator, start: Judged, number: int) -> None:
        rng = np.random.default_rng([self._options.seed, number])
        walk = SearchRun(self._index, evaluator, self._team, start, self._others, rng, self._walk)
        usual = min(MOST_STEPS, max(FEWEST_STEPS, TASKS_PLACED // len(self._problem.tasks)))
        steps = usual if self._walk.steps is None else self._walk.steps
        step = 0
        while not self._team.is_over() and (self._has_limit or step < steps):
            walk.step(step)
            step += 1

    def _result_of(self, best: Judged) -> SolverResult:
        try:
            plan = plan_of(
                self._problem,
                self._routes,
                best.state,
                self._team.bound,
                LocalSearch.name,
                (("found by", best.source), ("seed", str(self._options.seed))),
            )
        except DoesNotFitError as error:
            return _without_plan(SolveStatus.UNKNOWN, self._team.bound, str(error))
        optimal = best.score[0] == self._team.bound.value
        return SolverResult(
            status=SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE,
            plan=plan,
            bound=self._team.bound.value,
            bound_source=self._team.bound.name,
        )


def _without_plan(status: SolveStatus, bound: Bound, reason: str) -> SolverResult:
    return SolverResult(
        status=status, plan=None, bound=bound.value, bound_source=bound.name, reason=reason
    )
