"""Local search as a solver."""

from dataclasses import replace
from threading import Thread

import numpy as np

from spmilp.errors import DoesNotFitError
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.background import Background
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.kernels.serial.extract import plan_of
from spmilp.solvers.list_scheduler.schedules import Schedules
from spmilp.solvers.local_search.candidate import Candidate, Judged
from spmilp.solvers.local_search.evaluate import Evaluator
from spmilp.solvers.local_search.incumbent import SharedIncumbent
from spmilp.solvers.local_search.problem_index import problem_index
from spmilp.solvers.local_search.run import RunOptions, SearchRun
from spmilp.solvers.local_search.starts import Starts

TASKS_PLACED = 1_000_000
FEWEST_STEPS, MOST_STEPS = 30, 4_000


class LocalSearch(Solver):
    """Improves what the list scheduler decides on, with its schedules as the judge.

    It begins with all that the ``list`` solver tries, so it is never worse; but where that takes
    most of a time limit, it leaves the last trials out. A hint is one more schedule to begin with.
    Without a time limit the number of steps depends on the number of tasks alone. Each worker walks
    on its own, from a seed of its own, and goes on from the best schedule of all when it is stuck.
    """

    name = "search"

    def __init__(self, walk: RunOptions | None = None) -> None:
        self._walk = walk or RunOptions()

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        if context.misfit:
            return context.infeasible(context.misfit)
        return _Search(context, self._walk).result()


class _Search:
    def __init__(self, context: SearchContext, walk: RunOptions) -> None:
        self._context = context
        self._walk = walk
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
        interrupted = False
        try:
            Background(context).run(self._lead, self._is_late)
            if incumbent.bound.name == "zero":
                incumbent.prove(context.bound)
        except KeyboardInterrupt:
            if incumbent.best is None:
                raise
            interrupted = True
        finally:
            incumbent.stop()
        if incumbent.best is None:
            return context.unknown(self._reason, incumbent.bound)
        return replace(self._result_of(incumbent.best), interrupted=interrupted)

    def _is_late(self) -> bool:
        return self._incumbent.is_over() and self._incumbent.best is not None

    def _lead(self) -> None:
        """Find schedules to begin with, then walk with the others."""
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

    def _help(self, start: Judged, number: int) -> None:
        try:
            self._go(start, number)
        except BaseException as error:
            self._failure = error
            self._incumbent.stop()

    def _begin(self) -> list[Judged]:
        """Judge the starts; return the best one for each worker, cores fixed.

        The bound comes after the first, for it may take longer.
        """
        incumbent = self._incumbent
        starts = Starts(self._context, self._index, self._evaluator)
        best: list[Judged] = []
        if not incumbent.is_over():
            for number, judged in enumerate(starts):
                if judged is not None:
                    incumbent.offer(judged)
                    if judged.exact:
                        best.append(judged)
                        best.sort(key=lambda one: one.score)
                        del best[self._context.options.workers :]
                if number == 0:
                    incumbent.prove(self._context.bound)
                if incumbent.is_over():
                    break
        self._reason = starts.reason
        self._others = starts.candidates
        return best

    def _go(self, start: Judged, number: int) -> None:
        rng = np.random.default_rng([self._context.options.seed, number])
        walk = SearchRun(
            self._index, self._evaluator, self._incumbent, start, self._others, rng, self._walk
        )
        tasks = len(self._context.problem.tasks)
        usual = min(MOST_STEPS, max(FEWEST_STEPS, TASKS_PLACED // tasks))
        steps = usual if self._walk.steps is None else self._walk.steps
        step = 0
        while not self._incumbent.is_over() and (self._context.clock.is_limited or step < steps):
            walk.step(step)
            step += 1

    def _result_of(self, best: Judged) -> SolverResult:
        context, bound = self._context, self._incumbent.bound
        settings = (("found by", best.source), ("seed", str(context.options.seed)))
        try:
            plan = plan_of(
                context.problem, context.routes, best.state, bound, LocalSearch.name, settings
            )
        except DoesNotFitError as error:
            return context.unknown(str(error), bound)
        return context.found(plan, bound)
