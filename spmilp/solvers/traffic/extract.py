"""From the solver's values to decisions, one thing after the other in time, and on to a plan.

The plan gets addresses, then short times.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spmilp.bounds.best import Bound
from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.exact.formulation.addresses import Addresses, ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.extraction import (
    Decisions,
    Fill,
    Item,
    TaskRun,
    TimedPlan,
    extract,
)
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.schedule.kernels.extract import dram_addresses
from spmilp.solvers.traffic.model import Model, Offsets, PointVars, Source
from spmilp.solvers.traffic.scope import BEGINNING, Location, TaskSequence
from spmilp.units import Bytes, Cycles, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a model's solution decides.

    Parameters
    ----------
    sequence
        Which slots the tasks take.
    offsets
        Of residencies and of tasks' scratch, where the model knows addresses.
    """

    decisions: Decisions
    sequence: TaskSequence
    offsets: Mapping[Item, Bytes] | None


def read_solution(model: Model, value: Callable[[Any], int]) -> Solution:
    """Read a solution; ``value`` gives the value of an expression."""
    return _Reader(model, value).solution()


class _Reader:
    """Times everything in turn: what comes before each task, the task, what comes after."""

    def __init__(self, model: Model, value: Callable[[Any], int]) -> None:
        self._tables = model.tables
        self._vars = model.variables
        self._addresses = model.addresses
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
        offsets = None if self._addresses is None else dict(self._offsets(self._addresses))
        return Solution(decisions=decisions, sequence=self._sequence, offsets=offsets)

    def _read_sequence(self) -> TaskSequence:
        taken = [run for run, literal in self._vars.runs.items() if self._value(literal)]
        taken.sort(key=lambda run: run.slot.step)
        pools = {run.task: run.slot.pool for run in taken}
        return TaskSequence(
            order=tuple(run.task for run in taken),
            pools=tuple(pools[task.index] for task in self._tables.problem.tasks),
        )

    def _number(self, location: Location, points: list[PointVars]) -> None:
        """Number its residencies; 0 is the one in which a slice comes into being."""
        number, first = -1, 1 if location in self._vars.use_points.initial else 0
        for point in points:
            if not self._value(point.there):
                continue
            if point.kept_before is None or not self._value(point.kept_before):
                # Where it comes into being at the beginning, but is not needed, 0 is left out.
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
        """Load what is not kept; what others pass on at once, first."""
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
        memories = self._sequence.memories(self._tables)
        for task in self._tables.problem.tasks:
            step = self._sequence.steps[task.index]
            for position, read in enumerate(task.reads):
                memory, holders = memories[task.index], self._tables.holders(read)
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

    def _offsets(self, addresses: Offsets) -> Iterator[tuple[Item, Bytes]]:
        memories = self._tables.machine.memories
        for (location, step), key in self._key_at.items():
            block = self._value(addresses.offset(location, step))
            yield key, block * memories[location.memory].alignment
        for run, first in addresses.scratch.items():
            if self._value(self._vars.runs[run]):
                memory = self._tables.pools[run.slot.pool].memory
                yield run.task, self._value(first) * memories[memory].alignment


NAME = "residency"


def plan_from(tables: ProblemTables, solution: Solution, bound: Bound) -> Plan | ConflictSet | None:
    """Return the plan of a solution, one thing after the other.

    Without addresses in the solution they are looked for; a conflict set has none. ``None`` where
    the DRAM is too small for what is stored.
    """
    timed = extract(tables, solution.decisions)
    if solution.offsets is None:
        found = find_addresses(tables, timed, low=False)
        if isinstance(found, ConflictSet):
            return found
    else:
        try:
            found = _addressed(tables.problem, timed, solution.offsets)
        except DoesNotFitError:
            return None
    return found.plan(tables, timed, bound, NAME)


def _addressed(problem: Problem, timed: TimedPlan, offsets: Mapping[Item, Bytes]) -> Addresses:
    on_chip = [
        replace(one, offset=offsets.get(item, 0))
        for one, item in zip(timed.residencies, timed.items, strict=True)
    ]
    tensors, residencies = dram_addresses(problem, on_chip)
    return Addresses(residencies=tuple(residencies), tensors=tensors)
