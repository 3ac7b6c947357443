"""Local search as a solver, and its initial solutions.

These are a hint, and the list scheduler's portfolio, its best schedules with prefetched loads.
"""

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread

import numpy as np

from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.pins import PinKind
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.kernels.records import Ints, numbers
from spmilp.solvers.kernels.schedule_state import Weights
from spmilp.solvers.kernels.serial.extract import columns_of, plan_of
from spmilp.solvers.list_scheduler.portfolio import FIRST_WEIGHTS, Found
from spmilp.solvers.list_scheduler.schedules import Schedules
from spmilp.solvers.local_search.candidate import (
    Candidate,
    Evaluated,
    Evaluator,
    in_order_of,
    leads_by_share,
)
from spmilp.solvers.local_search.problem_index import ProblemIndex, problem_index
from spmilp.solvers.local_search.run import RunOptions, SearchRun, SharedIncumbent

SHARE_OF_PORTFOLIO = 0.3
"""Of a time limit: the first rules of the portfolio are almost as good as all of them."""
MOST_KEPT = 4
TASKS_KEPT = 8_000
"""Of all candidates that are tried with prefetched loads."""
FROM_HINT = "search hint"
SHARES = (0.15, 0.3, 0.5, 0.7, -0.15, -0.3, -0.5)


class InitialSolutions:
    """The schedules that the search begins with, one after another."""

    def __init__(self, context: SearchContext, index: ProblemIndex, evaluator: Evaluator) -> None:
        self._context = context
        self._index = index
        self._evaluator = evaluator
        self._schedules = Schedules.of(context)
        self._first: list[tuple[tuple[int, ...], str, Candidate]] = []

    @property
    def reason(self) -> str:
        """Why there is no schedule, where there is none."""
        return self._schedules.reason

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Candidates of the portfolio, the best first; weights apart no two are equal.

        The hint is one of them only where it beats all others: a bad one takes nobody's place.
        """
        ranked = sorted(self._first, key=lambda start: start[:2])
        kept = [one for at, one in enumerate(ranked) if at == 0 or one[1] != FROM_HINT]
        return tuple(candidate for _, _, candidate in kept)

    def __iter__(self) -> Iterator[Evaluated | None]:
        """Evaluate them one by one."""
        problem, hint = self._context.problem, self._context.hint
        if hint is not None:
            usual = FIRST_WEIGHTS[problem.objective.first]
            yield self._from_hint(candidate_of(self._index, hint, usual))
        for found in self._schedules:
            yield None if found is None else self._from_portfolio(found)
            if self._first and self._context.clock.is_over(SHARE_OF_PORTFOLIO):
                break
        kept = min(MOST_KEPT, max(1, TASKS_KEPT // len(problem.tasks)))
        for candidate in self.candidates[:kept]:
            yield self._evaluator.evaluate(candidate, "search start")
            for share in SHARES:
                leads = leads_by_share(self._index, candidate.order, candidate.cores, abs(share))
                if leads.any():
                    prefetching = replace(candidate, leads=leads if share > 0 else -leads)
                    yield self._evaluator.evaluate(prefetching, f"search prefetch {share}")

    def _from_hint(self, candidate: Candidate) -> Evaluated | None:
        evaluated = self._evaluator.evaluate(candidate, FROM_HINT)
        if evaluated is not None:
            self._first.append((evaluated.score, FROM_HINT, candidate))
        return evaluated

    def _from_portfolio(self, found: Found) -> Evaluated:
        candidate = self._evaluator.fixed(found.order, found.state)
        name = f"list {found.trial}"
        if all(other != name for _, other, _ in self._first):
            self._first.append((found.score, name, candidate))
        return Evaluated(
            candidate=candidate, score=found.score, state=found.state, source=name, exact=False
        )


def candidate_of(index: ProblemIndex, plan: Plan, weights: Weights) -> Candidate:
    """Return the candidate that comes closest to a plan.

    Its placements give cores and order, its residencies how early loads are prefetched.
    """
    starts = np.empty(len(plan.placements), np.int64)
    cores = np.empty(len(plan.placements), np.int64)
    for placement in plan.placements:
        starts[placement.task] = placement.start
        cores[placement.task] = placement.core
    order = in_order_of(index, starts)
    leads = _leads(index, plan, order, index.memory_of_core[cores], starts)
    return Candidate(order=order, cores=cores, leads=leads, weights=weights)


def _leads(index: ProblemIndex, plan: Plan, order: Ints, memory: Ints, starts: Ints) -> Ints:
    """For each read of what is there at cycle 0, count the tasks of the same memory that start
    between the begin of the residency that serves it and its reader.

    Only the first reader of a residency has its load prefetched.
    """
    leads = np.zeros(index.reads.items.size, np.int64)
    starts_in = {
        int(place): starts[order[memory[order] == place]] for place in np.unique(memory).tolist()
    }
    serves: set[int] = set()
    placements = sorted(plan.placements, key=lambda placement: (placement.start, placement.task))
    for placement in placements:
        begin = int(index.reads.begin[placement.task])
        for position, served in enumerate(placement.reads):
            residency = plan.residencies[served]
            if served in serves or residency.filled_by_transfer is None:
                continue
            serves.add(served)
            if index.from_outside[begin + position] > 0 and residency.memory in starts_in:
                between = starts_in[residency.memory]
                span = numbers((residency.start, placement.start))
                since, until = np.searchsorted(between, span)
                leads[begin + position] = max(0, int(until) - int(since))
    return leads


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
    keeps = frozenset(PinKind)
    settles = True

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
                    late = context.clock.is_over()
                    incumbent.prove(context.fast_bound if late else context.bound)
        finally:
            incumbent.stop()
        best = incumbent.best
        if best is None:
            return context.unknown(self._reason, incumbent.bound)
        # After an interrupt the thread that found it may not have reported it yet.
        context.report(best.score[0], incumbent.bound.value, best.source)
        return self._result_of(best)

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
        for number, evaluated in enumerate(solutions):
            if evaluated is not None:
                incumbent.offer(evaluated)
                if evaluated.exact:
                    best.append(evaluated)
                    best.sort(key=lambda one: one.score)
                    del best[self._context.options.workers :]
            if number == 0:
                incumbent.prove(self._context.bound)
            if incumbent.is_stopped or (incumbent.is_over() and incumbent.best is not None):
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
            columns = columns_of(context.problem, best.state)
            plan = plan_of(context.problem, columns, bound, LocalSearch.name, settings)
        except DoesNotFitError as error:
            return context.unknown(str(error), bound)
        return context.found(plan, bound)
