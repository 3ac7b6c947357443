"""From the solver's values to decisions."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ortools.sat.python import cp_model

from spmilp.plan.plan import Residency
from spmilp.solvers.exact.formulation.candidates import CandidateResidency, Reading
from spmilp.solvers.exact.formulation.extraction import Decisions, Fill, Item, TaskRun
from spmilp.solvers.exact.formulation.variables import (
    Choice,
    Literal,
    Number,
    ResidencyVars,
    Variables,
)
from spmilp.units import Cycles, ResidencyIdx

T = TypeVar("T")


def read_decisions(variables: Variables, value: Callable[[Any], int]) -> Decisions:
    """Read a solution; ``value`` gives the value of an expression."""
    return _Reader(variables, value).decisions()


class _Reader:
    def __init__(self, variables: Variables, value: Callable[[Any], int]) -> None:
        self._vars = variables
        self._problem = variables.tables.problem
        self._value = value
        self._existing = {
            key: residency
            for key, residency in variables.residencies.items()
            if value(residency.present)
        }

    def decisions(self) -> Decisions:
        served, late = {}, set(self._late_sources())
        for position, read in self._vars.reads.items():
            for key in self._chosen(read.on):
                served[position] = key
            for key in self._chosen(read.late):
                served[position] = key
                late.add(key)
        return Decisions(
            runs=tuple(self._runs()),
            fills={key: self._fill(key) for key in self._existing},
            served=served,
            outputs=tuple(self._outputs()),
            lasting=frozenset(key for key in self._existing if self._is_fixed(key)),
            in_place=tuple(self._chosen(self._vars.in_place)),
            late=frozenset(late),
        )

    def _chosen(self, literals: Mapping[T, Literal]) -> Iterator[T]:
        return (one for one, literal in literals.items() if self._value(literal))

    def _runs(self) -> Iterator[TaskRun]:
        for task in self._vars.tasks:
            pool = next(self._chosen(task.pools))
            yield TaskRun(pool=pool, start=self._value(task.start), end=self._value(task.end))

    def _late_sources(self) -> Iterator[CandidateResidency]:
        for residency in self._existing.values():
            yield from self._chosen(residency.late_sources)

    def _fill(self, key: CandidateResidency) -> Fill:
        residency = self._existing[key]
        start = self._value(residency.start)
        root = key if self._value(residency.moved) else next(self._chosen(residency.roots), None)
        if root is None:
            return Fill(start=start)
        belongs_to = self._vars.residencies[root]
        sources = (belongs_to.sources, belongs_to.late_sources)
        source = next((key for some in sources for key in self._chosen(some)), None)
        option = next(self._chosen(belongs_to.options), None)
        engine = None if option is None else option.engine
        return Fill(start=start, source=source, engine=engine, root=root)

    def _outputs(self) -> Iterator[CandidateResidency]:
        """Yield, for each buffer with an end, the residency that is kept longest there."""
        for buffer in self._problem.buffers:
            pair = buffer.index, buffer.ends_in
            there = {key: one for key, one in self._existing.items() if key[:2] == pair}
            lasting = [key for key, one in there.items() if one.end is None]
            if lasting:
                yield lasting[0]
            elif there:
                yield max(there, key=lambda key: (self._value(there[key].end), key))

    def _is_fixed(self, key: CandidateResidency) -> bool:
        """Say whether a residency is a part of a DRAM tensor for all of the plan."""
        residency = self._existing[key]
        at_place = self._vars.tables.at_place(key.slice, key.memory)
        return residency.end is None and residency.lifecycle.initial and at_place


def add_hints(variables: Variables, reading: Reading) -> None:
    """Hint every variable that decides something; the solver completes the rest.

    What the model has no candidate for is left out: then the hint is no complete solution.
    """
    _Hints(variables, reading).add()


class _Hints:
    def __init__(self, variables: Variables, reading: Reading) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables
        self._reading = reading
        self._plan = reading.plan
        self._hinted: set[int] = set()
        self._taken: set[Choice] = set()
        self._main: dict[CandidateResidency, Residency] = {}
        self._ends: dict[CandidateResidency, Cycles] = defaultdict(int)
        for residency in reading.in_time():
            key = self._key(residency)
            if key is not None:
                self._main.setdefault(key, self._plan.residencies[residency])

    def add(self) -> None:
        """Hint everything."""
        self._hint(self._vars.makespan, self._plan.claim.makespan)
        self._add_tasks()
        self._add_reads()
        self._add_pairs()
        self._add_ends_of_transfers()
        for variables in self._vars.residencies.values():
            self._add_residency(variables)
        for (key, options), literal in self._vars.unions.items():
            self._hint(literal, any((key, option) in self._taken for option in options))
        self._add_offsets()

    def _key(self, residency: ResidencyIdx) -> CandidateResidency | None:
        """Return the candidate that a residency is; a lasting one stands for all."""
        key = self._reading.key.get(residency)
        if key is not None and key[:2] in self._vars.structure.scope.lasting:
            key = key._replace(number=0)
        return key if key in self._vars.residencies else None

    def _add_tasks(self) -> None:
        for task, placement in zip(self._vars.tasks, self._plan.placements, strict=True):
            self._hint(task.start, placement.start)
            self._hint(task.size, placement.end - placement.start)
            self._hint(task.end, placement.end)
            core = self._tables.machine.cores[placement.core]
            for pool, literal in task.pools.items():
                self._hint(literal, placement.core in self._tables.pools[pool].cores)
            for memory, literal in task.memories.items():
                self._hint(literal, core.memory == memory)

    def _add_reads(self) -> None:
        in_place = {(task, old) for task, old, _ in self._reading.pairs_in_place()}
        for (task, position), read in self._vars.reads.items():
            placement = self._plan.placements[task]
            residency = placement.reads[position]
            served = self._key(residency)
            for key, literal in read.on.items():
                self._hint(literal, key == served)
            for literal in read.late.values():
                self._hint(literal, False)
            if served is not None and (task, residency) not in in_place:
                self._ends[served] = max(self._ends[served], placement.end)

    def _add_pairs(self) -> None:
        shared = set()
        for task, old, new in self._reading.pairs_in_place():
            one, other = self._key(old), self._key(new)
            if one is not None and other is not None:
                shared.add((task, one, other))
                start = self._plan.placements[task].start
                self._ends[one] = max(self._ends[one], start)
        for pair, literal in self._vars.in_place.items():
            self._hint(literal, pair in shared)

    def _add_ends_of_transfers(self) -> None:
        for move in self._plan.transfers:
            if any(end in self._reading.needed for end in move.destinations):
                source = self._key(move.source)
                if source is not None:
                    self._ends[source] = max(self._ends[source], move.end)

    def _add_residency(self, variables: ResidencyVars) -> None:
        """Hint a residency, its filling, and how long it is there; of an absent one the least."""
        one = self._main.get(variables.key)
        least = min((option.cycles for option in variables.options), default=0)
        start, valid, end, cycles = 0, least, least, least
        source, engine, root = None, None, None
        if one is not None:
            start, valid = one.start, self._reading.valid(one.index)
            end = max(self._ends[variables.key], self._kept_until(variables.key), valid)
            if one.filled_by_task is not None:
                start = self._plan.placements[one.filled_by_task].start
            if one.filled_by_transfer is not None:
                move = self._plan.transfers[one.filled_by_transfer]
                start, cycles = move.start, valid - move.start
                source, engine = self._key(move.source), move.engine
                lowest = min(move.destinations, key=lambda r: self._plan.residencies[r].memory)
                root = self._key(lowest)
        moved = root == variables.key
        self._hint(variables.present, one is not None)
        self._hint(variables.start, start)
        self._hint(variables.valid, valid)
        if variables.end is not None:
            self._hint(variables.end, end)
            self._hint(self._vars.lengths.get(variables.key, 0), end - start)
        self._hint(variables.moved, moved)
        self._hint(variables.cycles, cycles)
        for other, literal in variables.sources.items():
            self._hint(literal, moved and other == source)
        for literal in variables.late_sources.values():
            self._hint(literal, False)
        for option, literal in variables.options.items():
            from_there = source is not None and option.source == source.memory
            taken = moved and from_there and option.engine == engine
            self._hint(literal, taken)
            if taken:
                self._taken.add((variables.key, option))
        for other, literal in variables.roots.items():
            self._hint(literal, not moved and other == root)

    def _kept_until(self, key: CandidateResidency) -> Cycles:
        buffer = self._tables.problem.slices[key.slice].buffer
        ends = self._tables.problem.buffers[buffer].ends_in
        kept = key.slice == buffer and ends == key.memory
        return self._plan.claim.makespan if kept else 0

    def _add_offsets(self) -> None:
        for (memory_index, item), offset in self._vars.offsets.items():
            alignment = self._tables.machine.memories[memory_index].alignment
            residency = self._residency_of(memory_index, item)
            if residency is not None:
                self._hint(offset, residency.offset // alignment)

    def _residency_of(self, memory: int, item: Item) -> Residency | None:
        if isinstance(item, CandidateResidency):
            return self._main.get(item)
        scratch = self._plan.placements[item].scratch
        if scratch is None or self._plan.residencies[scratch].memory != memory:
            return None
        return self._plan.residencies[scratch]

    def _hint(self, variable: Literal | Number, value: int) -> None:
        """Hint a variable once; constants and sums need none."""
        if not isinstance(variable, cp_model.IntVar) or variable.index in self._hinted:
            return
        self._hinted.add(variable.index)
        self._model.add_hint(variable, int(value))
