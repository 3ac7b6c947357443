"""The solver: which task sequences are looked at, runs of CP-SAT on them, the best plan so far.

From a solution a plan is made in which tasks and transfers run one after another. That plan gets
addresses, and is then shortened.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from spmilp.bounds.best import Bound
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Incumbent, Solver
from spmilp.solvers.exact.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.extraction import Decisions, Fill, TaskRun, extract
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.justify.shortening import repacked_plan, shortened
from spmilp.solvers.schedule.orders import depth_first
from spmilp.solvers.schedule.solver import hint_or_schedule
from spmilp.solvers.traffic.model import Model, PointVars, Source
from spmilp.solvers.traffic.scope import (
    BEGINNING,
    Location,
    Scope,
    TaskSequence,
    UsePoints,
    fixed,
    one_pool,
    sequence_of,
    window,
)
from spmilp.units import Cycles, MemoryIdx, TaskIdx


class Solution(NamedTuple):
    """What a model's solution decides, and which slots the tasks take."""

    decisions: Decisions
    sequence: TaskSequence


class _Reader:
    """Puts all into one sequence: loads before each task, the task, loads and stores after."""

    def __init__(self, model: Model, value: Callable[[Any], int]) -> None:
        self._tables = model.tables
        self._vars = model.variables
        self._value = value
        self._dram = model.variables.dram
        self._sequence = self._read_sequence()
        self._now: Cycles = 0
        self._runs: dict[TaskIdx, TaskRun] = {}
        self._key_at: dict[tuple[Location, int], CandidateResidency] = {}
        self._at_step: dict[int, list[tuple[Location, PointVars]]] = defaultdict(list)
        for location, points in self._vars.points.items():
            self._number(location, points)
        last = len(self._sequence.order)
        self._kept = {self._key_at[location, last] for location in self._vars.use_points.final}
        self._fills = {
            CandidateResidency(buffer.index, self._dram, 0): Fill(start=0)
            for buffer in self._tables.problem.buffers
            if buffer.starts_in == self._dram
        }
        self._initial = frozenset(self._fills)

    def solution(self) -> Solution:
        """Return all that is decided; nothing is used that is not there in time."""
        self._are_born(BEGINNING, 0)
        self._load(BEGINNING, after=True)
        self._store(BEGINNING)
        for step, task in enumerate(self._sequence.order):
            self._load(step, after=False)
            start, pool = self._now, self._sequence.pools[task]
            self._now += self._tables.cycles_on(task, pool)
            self._runs[task] = TaskRun(pool=pool, start=start, end=self._now)
            self._are_born(step, start)
            self._load(step, after=True)
            self._store(step)
        self._load(len(self._sequence.order), after=False)
        decisions = Decisions(
            runs=tuple(self._runs[task.index] for task in self._tables.problem.tasks),
            fills=self._fills,
            served=dict(self._served()),
            outputs=tuple(self._outputs()),
            lasting=frozenset(k for k in self._initial if self._tables.at_place(*k[:2])),
            in_place=tuple(self._in_place()),
        )
        return Solution(decisions, self._sequence)

    def _read_sequence(self) -> TaskSequence:
        taken = [run for run, literal in self._vars.runs.items() if self._value(literal)]
        taken.sort(key=lambda run: run.slot.step)
        pools = {run.task: run.slot.pool for run in taken}
        return TaskSequence(
            order=tuple(run.task for run in taken),
            pools=tuple(pools[task.index] for task in self._tables.problem.tasks),
        )

    def _number(self, location: Location, points: list[PointVars]) -> None:
        """Number a location's residencies; 0 is the one that is written, or there at cycle 0."""
        number, first = -1, 1 if location in self._vars.use_points.initial else 0
        for point in points:
            if not self._value(point.there):
                continue
            if point.kept_before is None or not self._value(point.kept_before):
                # Where a slice is there at cycle 0 but not used from then on, 0 is left out.
                number = 0 if self._is_born(location, point) else max(number + 1, first)
            self._key_at[location, point.use.step] = CandidateResidency(*location, number)
            self._at_step[point.use.step].append((location, point))

    def _is_born(self, location: Location, point: PointVars) -> bool:
        if self._vars.use_points.is_initial(location, point.use):
            return True
        is_whole = location.slice < len(self._tables.problem.buffers)
        return is_whole and any(self._value(self._vars.runs[run]) for run in point.use.writers)

    def _are_born(self, step: int, start: Cycles) -> None:
        for location, point in self._at_step[step]:
            if self._is_born(location, point):
                self._fills[self._key_at[location, step]] = Fill(start=start)

    def _load(self, step: int, *, after: bool) -> None:
        """Load what is not kept; memories without cores come first, for they pass on at once."""
        use_points = self._vars.use_points
        coming = sorted(self._at_step[step], key=lambda one: use_points.is_working(one[0].memory))
        for location, point in coming:
            for source, literal in (point.loads_after if after else point.loads_before).items():
                if self._value(literal):
                    self._move(self._key_at[location, step], source, step)

    def _store(self, step: int) -> None:
        for store, literal in self._vars.stores.items():
            if store.step == step and self._value(literal):
                key = CandidateResidency(store.slice, self._dram, 0)
                self._move(key, Source(store.holder, store.option), step)

    def _move(self, key: CandidateResidency, source: Source, step: int) -> None:
        holder = self._key_at.get((source.holder, step), CandidateResidency(*source.holder, 0))
        engine = source.option.engine
        self._fills[key] = Fill(start=self._now, source=holder, engine=engine, root=key)
        self._now += source.option.cycles

    def _outputs(self) -> Iterator[CandidateResidency]:
        yield from self._kept
        for buffer in self._tables.problem.buffers:
            stored = CandidateResidency(buffer.index, self._dram, 0)
            if buffer.ends_in == self._dram and stored in self._fills:
                yield stored

    def _served(self) -> Iterator[tuple[tuple[TaskIdx, int], CandidateResidency]]:
        for task in self._tables.problem.tasks:
            step, pool = self._sequence.steps[task.index], self._sequence.pools[task.index]
            for position, read in enumerate(task.reads):
                memory, holders = self._tables.pools[pool].memory, self._tables.holders(read)
                there = next(at for s in holders if self._is_there(at := Location(s, memory), step))
                yield (task.index, position), self._key_at[there, step]

    def _is_there(self, location: Location, step: int) -> bool:
        """Say whether a slice is in a memory when the task of a step starts."""
        point = self._vars.at(location, step)
        return point is not None and any(self._value(one) for one in point.there_at_start())

    def _in_place(self) -> Iterator[tuple[TaskIdx, CandidateResidency, CandidateResidency]]:
        for pair, literal in self._vars.in_place.items():
            if self._value(literal):
                step = pair.run.slot.step
                yield pair.run.task, self._key_at[pair.old, step], self._key_at[pair.new, step]


NAME = "residency"

LIST_SCHEDULER, SEQUENCES, WINDOWS = 0.3, 0.5, 0.95
"""Shares of the time limit by which each has ended: the list scheduler, where there is no plan to
start from, the first sequences, and the windows."""

PACKINGS, LESS = 6, 1 / 32
"""How often a model is solved anew, with a memory that much smaller, where a packing has failed."""

FIRST_SIZE, FIRST_LIMIT, GROWTH = 5, 1.0, 1.5
"""Tasks of the first windows and deterministic time for each, about seconds; and the factor on both
after a round that has gained nothing."""

MOST_EACH = 20.0
"""Deterministic time for each of the first sequences."""

MOST_USE_POINTS = 12_000
"""Most use points in a model, which then takes a second or two to build."""


class Residency(Solver):
    """Makes DRAM traffic or energy small by what memories keep between uses.

    It starts from a valid hint, or else from the list scheduler's plan, and returns no plan that is
    worse. It lets no core read a remote scratchpad, and no transfer have several destinations.
    Where neither traffic nor energy is the first objective, or there is not one DRAM, the start is
    the answer. Where no time limit ends the search, ``patience`` does, in deterministic time: about
    seconds.
    """

    name = NAME

    def __init__(self, patience: float = 60.0) -> None:
        self._patience = patience

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found; the bound is one that takes no search."""
        start = hint_or_schedule(context, LIST_SCHEDULER)
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


def _is_in_scope(problem: Problem) -> bool:
    """Say whether bytes are to be few, and slices go to one DRAM in which no core works."""
    if problem.objective.first not in (Quantity.DRAM_TRAFFIC, Quantity.ENERGY):
        return False
    drams = [memory.index for memory in problem.machine.drams]
    return len(drams) == 1 and all(core.memory not in drams for core in problem.machine.cores)


class _Search:
    """Looks for the plan that moves the fewest bytes.

    It has a plan to ``start`` with, if there is one, and the bound.
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
        self._capacity = [*self._tables.capacity]

    def run(self) -> None:
        """Search some task sequences, then change the best of them window by window."""
        sequences = tuple(dict.fromkeys(self._sequences()))
        for sequence in sequences:
            if not self._is_done():
                self._search(fixed(sequence), MOST_EACH, SEQUENCES)
        for sequence in sequences[:1]:
            self._change(self._best or sequence)
        plan = self.incumbent.plan
        if self._best is not None and plan is not None and self._clock.has_seconds(0.0):
            self.incumbent.offer(repacked_plan(self._context, plan))

    def _sequences(self) -> Iterator[TaskSequence]:
        """Yield the first sequences: the plan's, and simple orders in its pools and in one pool."""
        depth = tuple(depth_first(self._problem).tolist())
        pools, alone = None, one_pool(self._tables)
        if self.incumbent.plan is not None:
            sequence = sequence_of(self._tables, self.incumbent.plan)
            pools = sequence.pools
            yield sequence
        if alone is not None:
            yield TaskSequence(depth, alone)
        pools = pools or alone
        if pools is not None:
            yield TaskSequence(tuple(self._problem.topological_order()), pools)
            yield TaskSequence(depth, pools)

    def _change(self, sequence: TaskSequence) -> None:
        """Let tasks change places, until nothing is left to try or windows grow too large.

        Windows of successive tasks come in an order by lot; each overlaps half of the next one.
        """
        steps, random = len(sequence.order), Random(self._context.options.seed)
        size, limit = min(steps, FIRST_SIZE), FIRST_LIMIT
        while True:
            value, complete, last = self.incumbent.value, True, steps - size
            firsts = sorted({*range(0, last, max(1, size // 2)), last})
            random.shuffle(firsts)
            for first in firsts:
                if self._is_done():
                    return
                scope = window(self._tables, self._best or sequence, first, first + size)
                is_complete = self._search(scope, limit, WINDOWS)
                if is_complete is None:
                    return
                complete &= is_complete
            if self.incumbent.value != value:
                continue
            if size == steps and complete:
                return
            size, limit = min(steps, int(size * GROWTH)), limit * (1.0 if complete else GROWTH)

    def _search(self, scope: Scope, deterministic: float, share: float) -> bool | None:
        """Find a scope's best residencies that have addresses.

        Models know no addresses. Where these are not found afterwards, the memory counts as smaller
        from then on. Returns whether the search came to its end; ``None`` where the scope is too
        large for one.
        """
        use_points = UsePoints(self._tables, scope)
        if use_points.count > MOST_USE_POINTS:
            return None
        for _ in range(PACKINGS):
            model = Model(use_points, self._capacity)
            solution, is_complete = self._solve(model, deterministic, share)
            if solution is None:
                return is_complete
            memory = self._take(solution)
            if memory is None:
                return is_complete
            capacity = self._capacity[memory] or 0
            self._capacity[memory] = capacity - max(1, int(capacity * LESS))
        return False

    def _solve(
        self, model: Model, deterministic: float, share: float
    ) -> tuple[Solution | None, bool]:
        """Ask CP-SAT for something better than the best plan; say whether it came to an end.

        In another thread, so that a ``KeyboardInterrupt`` ends it at once. It has so much
        ``deterministic`` time of CP-SAT's own, and has ended by a ``share`` of the time limit.
        """
        if self.incumbent.value is not None:
            model.limit(self.incumbent.value - 1)
        options, solver = self._context.options, cp_model.CpSolver()
        parameters, seconds = solver.parameters, self._clock.engine_seconds(share)
        parameters.num_workers = options.workers
        # Not without a limit of wall time: alternating strategies cannot be repeated exactly.
        parameters.interleave_search = (
            options.workers == 1 and seconds is not None and not self._clock.pace.counts_work
        )
        parameters.random_seed = options.seed
        parameters.catch_sigint_signal = False
        if seconds is not None:
            parameters.max_time_in_seconds = max(0.1, seconds)
        constraints = len(model.cp.proto.constraints)
        left = self._clock.deterministic_left(deterministic, share, constraints)
        if left is not None:
            parameters.max_deterministic_time = left
        status, interrupted = self._context.reports.finish(
            lambda: solver.solve(model.cp), solver.stop_search
        )
        if interrupted:
            raise KeyboardInterrupt
        self._clock.spend(solver.deterministic_time, constraints)
        has_solution = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        solution = _Reader(model, solver.value).solution() if has_solution else None
        return solution, status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)

    def _take(self, solution: Solution) -> MemoryIdx | None:
        """Make a solution a plan, one thing after the other; return a memory without addresses."""
        timed = extract(self._tables, solution.decisions)
        found = find_addresses(self._tables, timed, low=False)
        if isinstance(found, ConflictSet):
            return found.memory
        plan = found.plan(self._tables, timed, self.incumbent.bound, NAME)
        if self._context.accepts(plan):
            self._best = solution.sequence
            self.incumbent.offer(shortened(self._context, plan))
        return None

    def _is_done(self) -> bool:
        return self._clock.is_over(WINDOWS) or self.incumbent.is_enough
