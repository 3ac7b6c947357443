"""The solver: which task sequences are looked at, runs of CP-SAT on them, the best plan so far."""

from collections.abc import Iterator
from dataclasses import dataclass

from ortools.sat.python import cp_model

from spmilp.bounds.best import Bound
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Incumbent, Solver
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.justify.shortening import repacked_plan, shortened
from spmilp.solvers.schedule.orders import depth_first
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.solvers.traffic.extract import (
    NAME,
    Solution,
    plan_from,
    read_solution,
)
from spmilp.solvers.traffic.model import Model
from spmilp.solvers.traffic.scope import (
    Scope,
    TaskSequence,
    UsePoints,
    Windows,
    fixed,
    one_pool,
    quickest_pools,
    sequence_of,
)

LIST_SCHEDULER, SEQUENCES, WINDOWS = 0.3, 0.5, 0.95
"""Shares of the time limit by which each has ended: the list scheduler, where there is no plan to
start from, the first sequences, and the windows."""

MOST_EACH = 20.0
"""Deterministic time for each of the first sequences."""

MOST_USE_POINTS = 12_000
"""In a model; it takes a second or two to write down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a run of CP-SAT has found.

    Parameters
    ----------
    complete
        The search has come to its end: the solution is the model's best, or there is none.
    values
        Of all the model's variables; empty without a solution.
    """

    solution: Solution | None
    values: tuple[int, ...]
    complete: bool


def run(context: SearchContext, model: Model, share: float, deterministic: float) -> Answer:
    """Solve a model, in another thread so that a ``KeyboardInterrupt`` ends it at once.

    Parameters
    ----------
    share
        Of the time limit, by which the run has ended.
    deterministic
        CP-SAT's own time for it.
    """
    solver = cp_model.CpSolver()
    parameters, seconds = solver.parameters, context.clock.seconds_left(share)
    parameters.num_workers = context.options.workers
    # Not without a limit of wall time: a run that alternates strategies cannot be repeated exactly.
    parameters.interleave_search = context.options.workers == 1 and seconds is not None
    parameters.random_seed = context.options.seed
    parameters.catch_sigint_signal = False
    if seconds is not None:
        parameters.max_time_in_seconds = max(0.1, seconds)
    left = context.clock.deterministic_left(deterministic)
    if left is not None:
        parameters.max_deterministic_time = left
    status, interrupted = context.reports.finish(lambda: solver.solve(model.cp), solver.stop_search)
    if interrupted:
        raise KeyboardInterrupt
    context.clock.spend(solver.deterministic_time)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Answer(
        solution=read_solution(model, solver.value) if found else None,
        values=tuple(solver.response_proto.solution) if found else (),
        complete=status in (cp_model.OPTIMAL, cp_model.INFEASIBLE),
    )


class Residency(Solver):
    """Makes DRAM traffic or energy small by what memories keep between uses.

    It starts from a valid hint, or else from the list scheduler's plan, and returns no plan that is
    worse. It lets no core read a remote scratchpad, and no transfer have several destinations.
    Where neither traffic nor energy is the first objective, or there is not one DRAM, the start is
    the answer.

    Parameters
    ----------
    patience
        Deterministic time where no time limit ends the search; about seconds.
    """

    name = NAME

    def __init__(self, patience: float = 60.0) -> None:
        self._patience = patience

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found; the bound is one that takes no search."""
        start = _start(context)
        is_over = start.status is SolveStatus.INFEASIBLE or start.interrupted
        if is_over or not _is_in_scope(context.problem):
            return start
        if context.options.time_limit is None:
            context.clock.deterministic = self._patience
        search = _Search(context, start)
        with context.until_interrupted(lambda: search.incumbent.plan is not None):
            search.run()
        plan = search.incumbent.plan
        return start if plan is None else context.found(plan, search.incumbent.bound, NAME)


def _start(context: SearchContext) -> SolverResult:
    """Return a valid hint, or what the list scheduler finds."""
    hint = context.valid_hint
    if hint is not None:
        return context.found(hint)
    limit = context.clock.seconds_left(LIST_SCHEDULER)
    return ListScheduler().search(context.member(limit, None))


def _is_in_scope(problem: Problem) -> bool:
    """Say whether bytes are to be few, and slices go to one DRAM in which no core works."""
    if problem.objective.first not in (Quantity.DRAM_TRAFFIC, Quantity.ENERGY):
        return False
    drams = [memory.index for memory in problem.machine.drams]
    return len(drams) == 1 and all(core.memory not in drams for core in problem.machine.cores)


class _Search:
    """Looks for the plan that moves the fewest bytes.

    Parameters
    ----------
    start
        A plan to begin with, if there is one, and the bound.
    """

    def __init__(self, context: SearchContext, start: SolverResult) -> None:
        self._context = context
        self._problem = problem = context.problem
        self._clock = context.clock
        bound = Bound(start.bound_source, problem.objective.first, start.bound)
        self.incumbent = Incumbent(context, bound, NAME)
        if start.plan is not None:
            self.incumbent.offer(start.plan)
        self._tables = ProblemTables(problem)
        self._best: TaskSequence | None = None
        self._packs = True

    def run(self) -> None:
        """Search some task sequences, then change the best of them window by window."""
        sequences = tuple(dict.fromkeys(self._sequences()))
        for sequence in sequences:
            if not self._is_done():
                self._search(fixed(sequence), MOST_EACH, SEQUENCES)
        for sequence in sequences[:1]:
            self._change(self._best or sequence)
        seconds, plan = self._clock.seconds_left(), self.incumbent.plan
        if self._best is not None and plan is not None and seconds != 0.0:
            self.incumbent.offer(repacked_plan(self._context, plan, seconds))

    def _sequences(self) -> Iterator[TaskSequence]:
        """Yield those to begin with: the plan's, all in one pool, and simple ones in its pools."""
        pools, alone = quickest_pools(self._tables), one_pool(self._tables)
        if self.incumbent.plan is not None:
            sequence = sequence_of(self._tables, self.incumbent.plan)
            pools = sequence.pools
            yield sequence
        if alone is not None:
            yield TaskSequence(tuple(depth_first(self._problem).tolist()), alone)
        if pools is not None:
            yield TaskSequence(tuple(self._problem.topological_order()), pools)
            yield TaskSequence(tuple(depth_first(self._problem).tolist()), pools)

    def _change(self, sequence: TaskSequence) -> None:
        """Let tasks change places, until nothing is left to try or windows grow too large."""
        windows = Windows(self._tables, self._context.options.seed)
        while not self._is_done():
            scope = windows.next(sequence)
            if scope is None:
                return
            is_complete = self._search(scope, windows.limit, WINDOWS)
            if is_complete is None:
                return
            has_gained = self._best is not None and self._best is not sequence
            windows.learn(has_gained=has_gained, is_complete=is_complete)
            sequence = self._best or sequence

    def _search(self, scope: Scope, deterministic: float, share: float) -> bool | None:
        """Find a scope's best residencies; where these have no addresses, the best that have some.

        Once some had none, addresses are in the model from the beginning.

        Returns
        -------
        bool or None
            Whether the search came to its end; ``None`` where the scope is too large for one.
        """
        use_points = UsePoints(self._tables, scope)
        if use_points.count > MOST_USE_POINTS:
            return None
        model = Model(use_points, addresses=not self._packs)
        answer = self._solve(model, deterministic, share)
        if answer.solution is not None and not self._takes(answer.solution) and self._packs:
            self._packs = False
            model = Model(use_points, addresses=True)
            model.hint(answer.values)
            answer = self._solve(model, deterministic, share)
            if answer.solution is not None:
                self._takes(answer.solution)
        return answer.complete

    def _solve(self, model: Model, deterministic: float, share: float) -> Answer:
        """Ask for something better than the best plan."""
        if self.incumbent.value is not None:
            model.limit(self.incumbent.value - 1)
        return run(self._context, model, share, deterministic)

    def _takes(self, solution: Solution) -> bool:
        """Make a solution a plan, and say whether it has become a valid one."""
        found = plan_from(self._tables, solution, self.incumbent.bound)
        if not isinstance(found, Plan) or not self._context.accepts(found):
            return False
        self._best = solution.sequence
        self.incumbent.offer(shortened(self._context, found))
        return True

    def _is_done(self) -> bool:
        return self._clock.is_over(WINDOWS) or self.incumbent.is_enough
