"""Streams of small problems, decided as a whole: cores, transfers, permanent constants, and times.

The model is that of one inference (:mod:`spmilp.solvers.exact.formulation`) on the resources of a
period, which is a constant; constants may have residencies that are there for ever. Each period is
a model of its own. Addresses are left out: the load of each memory is at most its size at each
cycle of a period, and packing makes addresses of that. Results in place of operands are left out,
too. States come and go through DRAM; where the times serve, they stay on the chip then. So that a
period has no solution says nothing of the problem: no bound is made of it.
"""

from collections.abc import Iterator
from dataclasses import replace

from ortools.sat.python import cp_model

from spmilp.bounds.best import Bound
from spmilp.errors import SpmilpError
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import with_offsets
from spmilp.solvers.exact.formulation.candidates import (
    PERMANENT,
    CandidateResidency,
    Structure,
    StructureFinder,
)
from spmilp.solvers.exact.formulation.capacity import Addressed
from spmilp.solvers.exact.formulation.circular import CircularModel
from spmilp.solvers.exact.formulation.extraction import Fill, Item, extract
from spmilp.solvers.exact.formulation.model import Model, ModelOptions, StructureBuilder
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.exact.formulation.translation import SolutionReader
from spmilp.solvers.exact.formulation.variables import Interval
from spmilp.solvers.modulo.decisions import Decisions, permanence, with_states_on_chip
from spmilp.solvers.modulo.stream import assembled, own_times
from spmilp.units import Cycles

STAGES_OF_A_TASK, MOST_STAGES = 3, 16
"""Periods that each task of a chain may take (operands are loaded, it runs, its result is stored),
and an inference in all."""

RESIDENCIES = 2
"""Of a slice in a memory, for one inference."""

LITERALS = 20_000
"""Of the largest model that is tried."""

EACH, ALL = 0.5, 2.0
"""Deterministic time for one period, and for all of them."""

FEW = 64
"""Periods between the best one and the bound of which each is tried."""


def model_of_streams(problem: Problem, period: Cycles, residencies: int = RESIDENCIES) -> Model:
    """Return the model of the least latency of a problem's streams with a period."""
    if problem.pins:
        kinds = ", ".join(sorted(problem.pins.kinds()))
        raise SpmilpError(f"the model of a stream knows no pins ({kinds}): leave them out")
    tables = _tables(problem)
    return _model(tables, _structure(tables, residencies), period)


def _tables(problem: Problem) -> ProblemTables:
    """Return the tables of the problem in which no result takes the bytes of an operand."""
    tasks = tuple(replace(one, in_place=()) for one in problem.tasks)
    return ProblemTables(replace(problem, tasks=tasks))


def _structure(tables: ProblemTables, residencies: int) -> Structure:
    """Return what a stream may decide.

    A slice may lie ``residencies`` times in a memory during an inference, and for ever if it is
    constant.
    """
    builder = StructureBuilder(tables, ModelOptions(residencies=residencies))
    builder.ample = False
    scope, problem = builder.scope(relaxed=False), tables.problem
    buffers = {one.index: problem.buffers[one.buffer] for one in problem.slices}
    permanent = (
        CandidateResidency(slice_, memory, PERMANENT)
        for slice_, memory, number in scope.candidates
        if number == 0 and buffers[slice_].is_constant and not tables.is_dram(memory)
        if buffers[slice_].starts_in != memory
    )
    scope = replace(
        scope,
        candidates=(*scope.candidates, *permanent),
        lasting=frozenset(pair for pair in scope.lasting if tables.at_place(*pair)),
    )
    return StructureFinder(tables, scope, frozenset()).structure()


def _model(tables: ProblemTables, structure: Structure, period: Cycles) -> Model:
    depth = [1] * len(tables.problem.tasks)
    for task in tables.problem.topological_order():
        depth[task] += max((depth[one] for one in tables.predecessors[task]), default=0)
    stages = min(MOST_STAGES, 2 + STAGES_OF_A_TASK * max(depth, default=1))
    return Model(
        tables,
        replace(structure, scope=replace(structure.scope, period=period)),
        Addressed(),
        Quantity.MAKESPAN,
        horizon=stages * period,
        low=0,
        high=None,
        ceilings={},
        reading=None,
    )


class PeriodSearch:
    """Streams of one problem; ``known`` is one to improve on, which has the tensors' addresses."""

    def __init__(self, context: SearchContext, known: Plan) -> None:
        self._context, self._known = context, known
        self._problem, self._tables = context.problem, _tables(context.problem)
        self._structure = _structure(self._tables, RESIDENCIES)
        context.clock.deterministic = ALL

    def better(self, least: Cycles) -> Iterator[Plan]:
        """Yield streams with shorter periods down to the least, and then one with less latency.

        Halving finds a short period soon. A period that has no solution may be longer than one that
        has, so that if few are left they are tried one after another.
        """
        if self._structure.literals > LITERALS:
            return
        low, latency = least, self._known.claim.makespan
        high, tried = max(least, self._known.claim.of(Quantity.PERIOD)), set[Cycles]()
        while low < high and not self._context.clock.is_over():
            middle = (low + high) // 2
            tried.add(middle)
            found = self._stream(middle)
            low, high = (middle + 1, high) if found is None else (low, middle)
            if found is not None:
                latency = found.claim.makespan
                yield found
        for period in range(least, high if high - least <= FEW else least):
            if period in tried or self._context.clock.is_over():
                continue
            found = self._stream(period)
            if found is not None:
                high, latency = period, found.claim.makespan
                yield found
                break
        if not self._context.clock.is_over():
            found = self._stream(high, soon=True)
            if found is not None and found.claim.makespan < latency:
                yield found

    def _stream(self, period: Cycles, *, soon: bool = False) -> Plan | None:
        """Return a valid stream of a period, with the least latency if it is to end ``soon``."""
        model = _model(self._tables, self._structure, period)
        solver = self._solved(model, soon=soon)
        return None if solver is None else self.read(model, solver, period)

    def _solved(self, model: Model, *, soon: bool) -> cp_model.CpSolver | None:
        context, solver = self._context, cp_model.CpSolver()
        constraints, seconds = len(model.cp.proto.constraints), context.clock.engine_seconds()
        parameters = solver.parameters
        parameters.num_workers = 1
        parameters.random_seed = context.options.seed
        parameters.stop_after_first_solution = not soon
        parameters.catch_sigint_signal = False
        if seconds is not None:
            parameters.max_time_in_seconds = max(0.1, seconds)
        left = context.clock.deterministic_left(EACH, constraints=constraints)
        parameters.max_deterministic_time = EACH if left is None else left
        status, interrupted = context.reports.finish(
            lambda: solver.solve(model.cp), solver.stop_search
        )
        if interrupted:
            raise KeyboardInterrupt
        context.clock.spend(solver.deterministic_time, constraints)
        return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None

    def read(self, model: Model, solver: cp_model.CpSolver, period: Cycles) -> Plan | None:
        """Return the stream that a solution is; ``None`` where it has no addresses."""
        chosen, tables = SolutionReader(model.variables, solver.value).decisions(), self._tables
        fills = dict(chosen.fills)
        permanent = [key for key in chosen.fills if key.number == PERMANENT]
        if not all(self._load(fills, key) for key in permanent):
            return None
        timed, taken = extract(tables, replace(chosen, fills=fills)), _Taken(model, solver, fills)
        runs = (
            replace(run, core=taken.core(run.task, pool.pool))
            for run, pool in zip(timed.placements, chosen.runs, strict=True)
        )
        moves = (
            replace(move, channel=taken.channel(timed.items[move.destinations[0]], move.engine))
            for move in timed.transfers
        )
        timed = replace(timed, placements=tuple(runs), transfers=tuple(moves))
        offsets = {("tensor", n): address for n, address in enumerate(self._known.tensors)}
        offsets |= {("residency", one.index): 0 for one in timed.residencies}
        addresses = with_offsets(tables, timed.residencies, offsets)
        plan = addresses.plan(tables, timed, Bound("zero", Quantity.PERIOD, 0), "cpsat")
        decisions = Decisions(self._problem, plan)
        wanted = [index for index in decisions.loads if timed.items[index] in permanent]
        kept = permanence(decisions, wanted)
        on_chip = with_states_on_chip(decisions, kept)
        ways = (on_chip, kept) if on_chip.states else (kept,)
        found = (assembled(decisions, way, own_times(decisions, way, period)) for way in ways)
        return next((plan for plan in found if plan is not None), None)

    def _load(self, fills: dict[CandidateResidency, Fill], key: CandidateResidency) -> bool:
        """Fill what is permanent in the prologue, from where it starts; say whether there is a way.

        In between it lies in as few other memories as possible.
        """
        problem, transfers = self._tables.problem, self._tables.transfers
        buffer = problem.buffers[problem.slices[key.slice].buffer]
        assert buffer.starts_in is not None
        first = CandidateResidency(buffer.index, buffer.starts_in, 0)
        fills.setdefault(first, Fill(start=0))
        reached, waiting = {buffer.starts_in: first}, [(first, 0)]
        while key.memory not in reached and waiting:
            source, steps = waiting.pop(0)
            for memory in range(len(problem.machine.memories)):
                ways = transfers.out_of(source.slice, key.slice, source.memory, memory)
                if memory not in reached and ways:
                    end = CandidateResidency(key.slice, memory, PERMANENT)
                    fill = Fill(start=steps, source=source, engine=ways[0].engine, root=end)
                    if fills.get(end, Fill(start=0)).source is None:
                        fills[end] = fill
                    reached[memory] = end
                    waiting.append((end, steps + 1))
        return key.memory in reached


class _Taken:
    """Which of several cores and channels that are alike a solution takes."""

    def __init__(
        self, model: Model, solver: cp_model.CpSolver, fills: dict[CandidateResidency, Fill]
    ) -> None:
        assert isinstance(model.cp, CircularModel)
        self._variables, self._taken = model.variables, model.cp.taken
        self._solver, self._fills = solver, fills

    def core(self, task: int, pool: int) -> int:
        """Return the core of a task in its pool."""
        number = self._of(self._variables.tasks[task].runs[pool])
        return self._variables.tables.pools[pool].cores[number]

    def channel(self, key: Item, engine: int) -> int:
        """Return the channel of the transfer that fills a residency; 0 in the prologue."""
        if not isinstance(key, CandidateResidency) or key.number == PERMANENT:
            return 0
        root = self._fills[key].root or key
        options = self._variables.residencies[root].options
        mine = frozenset(option for option in options if option.engine == engine)
        return self._of(self._variables.on_channel(root, mine))

    def _of(self, interval: Interval) -> int:
        literals = self._taken.get(interval.index, ())
        return next((n for n, one in enumerate(literals) if self._solver.value(one)), 0)
