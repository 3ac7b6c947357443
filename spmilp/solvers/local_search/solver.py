"""Local search as a solver."""

from threading import Thread

import numpy as np

from spmilp.errors import DoesNotFitError
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.kernels.serial.extract import plan_of
from spmilp.solvers.list_scheduler.schedules import Schedules
from spmilp.solvers.local_search.candidate import Candidate, Evaluated, Evaluator
from spmilp.solvers.local_search.initial_solutions import InitialSolutions
from spmilp.solvers.local_search.problem_index import problem_index
from spmilp.solvers.local_search.run import RunOptions, SearchRun, SharedIncumbent

TASKS_PLACED = 1_000_000
FEWEST_STEPS, MOST_STEPS = 30, 4_000


class LocalSearch(Solver):
    """Improves what the list scheduler decides on, with its schedules as the evaluator.

    It begins with all that the ``list`` solver tries, so it is never worse; but where that takes
    most of a time limit, it leaves the last trials out. A hint is one more schedule to begin with.
    Without a time limit the number of steps depends on the number of tasks alone. Each worker is
    a run of its own, with a seed of its own, that goes on from the best schedule of all when stuck.
    """

    name = "search"

    def __init__(self, options: RunOptions | None = None) -> None:
        self._run_options = options or RunOptions()

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        if context.misfit:
            return context.infeasible(context.misfit)
        return _Search(context, self._run_options).result()


class _Search:
    def __init__(self, context: SearchContext, run_options: RunOptions) -> None:
        self._context = context
        self._run_options = run_options
        self._index = problem_index(context.problem)
        self._evaluator = Evaluator(context.problem, Schedules.of(context).runner, self._index)
        self._incumbent = SharedIncumbent(context)
        self._reason = ""
        self._others: tuple[Candidate, ...] = ()
        self._failure: BaseException | None = None

    def result(self) -> SolverResult:
        """Search, and return the best plan.

        The thread that asked waits in the meantime, so that an interrupt or the time limit ends the
        search at once, however long a single schedule takes.
        """
        context, incumbent = self._context, self._incumbent
        try:
            with context.until_interrupted(lambda: incumbent.best is not None):
                context.reports.attend(context.reports.begin(self._lead), self._is_late)
                if incumbent.bound.name == "zero":
                    incumbent.prove(context.bound)
        finally:
            incumbent.stop()
        if incumbent.best is None:
            return context.unknown(self._reason, incumbent.bound)
        return self._result_of(incumbent.best)

    def _is_late(self) -> bool:
        return self._incumbent.is_over() and self._incumbent.best is not None

    def _lead(self) -> None:
        """Find initial solutions, then search with the other threads."""
        starts = self._begin()
        if not starts:
            return
        helpers = [
            Thread(target=self._help, args=(starts[number % len(starts)], number), daemon=True)
            for number in range(1, self._context.options.workers)
        ]
        for helper in helpers:
            helper.start()
        self._go(starts[0], 0)
        for helper in helpers:
            helper.join()
        if self._failure is not None:
            raise self._failure

    def _help(self, start: Evaluated, number: int) -> None:
        try:
            self._go(start, number)
        except BaseException as error:
            self._failure = error
            self._incumbent.stop()

    def _begin(self) -> list[Evaluated]:
        """Evaluate initial solutions; return the best one for each worker, cores fixed.

        The bound comes after the first, for it may take longer.
        """
        incumbent = self._incumbent
        solutions = InitialSolutions(self._context, self._index, self._evaluator)
        best: list[Evaluated] = []
        if not incumbent.is_over():
            for number, evaluated in enumerate(solutions):
                if evaluated is not None:
                    incumbent.offer(evaluated)
                    if evaluated.exact:
                        best.append(evaluated)
                        best.sort(key=lambda one: one.score)
                        del best[self._context.options.workers :]
                if number == 0:
                    incumbent.prove(self._context.bound)
                if incumbent.is_over():
                    break
        self._reason = solutions.reason
        self._others = solutions.candidates
        return best

    def _go(self, start: Evaluated, number: int) -> None:
        rng = np.random.default_rng([self._context.options.seed, number])
        options, incumbent = self._run_options, self._incumbent
        run = SearchRun(self._index, self._evaluator, incumbent, start, self._others, rng, options)
        tasks = len(self._context.problem.tasks)
        usual = min(MOST_STEPS, max(FEWEST_STEPS, TASKS_PLACED // tasks))
        steps = usual if options.steps is None else options.steps
        step = 0
        while not incumbent.is_over() and (self._context.clock.is_limited or step < steps):
            run.step(step)
            step += 1

    def _result_of(self, best: Evaluated) -> SolverResult:
        context, bound = self._context, self._incumbent.bound
        settings = (("found by", best.source), ("seed", str(context.options.seed)))
        try:
            plan = plan_of(
                context.problem, context.routes, best.state, bound, LocalSearch.name, settings
            )
        except DoesNotFitError as error:
            return context.unknown(str(error), bound)
        return context.found(plan, bound)
