"""From the solver's values to decisions, and from a plan to a hint."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ortools.sat.python import cp_model

from spmilp.plan.plan import Residency
from spmilp.solvers.exact.formulation.candidates import CandidateResidency, Reading
from spmilp.solvers.exact.formulation.extraction import Decisions, Fill, Item, TaskRun, decisions_of
from spmilp.solvers.exact.formulation.variables import (
    Choice,
    Literal,
    Number,
    ResidencyVars,
    Variables,
)
from spmilp.units import Cycles

T = TypeVar("T")


class SolutionReader:
    """Reads a solution; ``value`` gives the value of an expression."""

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
        """Return what it decides."""
        existing = self._existing.values()
        served, late = {}, {key for one in existing for key in self._chosen(one.late_sources)}
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
            # The parts of a DRAM tensor for all of the plan.
            lasting=frozenset(
                key
                for key, one in self._existing.items()
                if one.end is None
                and one.lifecycle.initial
                and self._vars.tables.at_place(*key[:2])
            ),
            in_place=tuple(self._chosen(self._vars.in_place)),
            late=frozenset(late),
        )

    def _chosen(self, literals: Mapping[T, Literal]) -> Iterator[T]:
        return (one for one, literal in literals.items() if self._value(literal))

    def _runs(self) -> Iterator[TaskRun]:
        for task in self._vars.tasks:
            pool = next(self._chosen(task.pools))
            yield TaskRun(pool=pool, start=self._value(task.start), end=self._value(task.end))

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


class Hints:
    """Hints every variable that decides something; the solver completes the rest.

    What the model has no candidate for is left out: then the hint is no complete solution.
    """

    def __init__(self, variables: Variables, reading: Reading) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables
        self._plan = reading.plan
        self._decisions = decisions_of(variables.tables, reading)
        self._hinted: set[int] = set()
        self._taken: set[Choice] = set()
        self._fills: dict[CandidateResidency, Fill] = {}
        self._residencies: dict[CandidateResidency, Residency] = {}
        self._valid: dict[CandidateResidency, Cycles] = {}
        for index in reading.in_time():
            key = self._own(reading.key[index])
            if key not in self._fills:
                self._fills[key] = self._decisions.fills[reading.key[index]]
                self._residencies[key] = self._plan.residencies[index]
                self._valid[key] = reading.valid(index)
        self._ends = self._last_uses(reading)

    def add(self) -> None:
        """Hint everything."""
        self._hint(self._vars.makespan, self._plan.claim.makespan)
        for task, run in zip(self._vars.tasks, self._decisions.runs, strict=True):
            self._hint(task.start, run.start)
            self._hint(task.size, run.end - run.start)
            self._hint(task.end, run.end)
            self._hint_choice(task.pools, run.pool)
            self._hint_choice(task.memories, self._tables.pools[run.pool].memory)
        for position, read in self._vars.reads.items():
            self._hint_choice(read.on, self._own(self._decisions.served[position]))
        pairs = {
            (task, self._own(old), self._own(new)) for task, old, new in self._decisions.in_place
        }
        for pair, literal in self._vars.in_place.items():
            self._hint(literal, pair in pairs)
        for residency in self._vars.residencies.values():
            self._add_residency(residency)
        for (key, options), literal in self._vars.unions.items():
            self._hint(literal, any((key, option) in self._taken for option in options))
        for (memory, item), offset in self._vars.offsets.items():
            one = self._residency_of(memory, item)
            if one is not None:
                self._hint(offset, one.offset // self._tables.machine.memories[memory].alignment)

    def _own(self, key: CandidateResidency) -> CandidateResidency:
        """Return the candidate of the model; a lasting one stands for all."""
        is_lasting = key[:2] in self._vars.structure.scope.lasting
        return key._replace(number=0) if is_lasting else key

    def _last_uses(self, reading: Reading) -> dict[CandidateResidency, Cycles]:
        """Return until when bytes are used; an operand in place gives them up at the start."""
        decisions, ends = self._decisions, defaultdict[CandidateResidency, Cycles](int)
        over = {(task, old) for task, old, _ in decisions.in_place}
        for (task, _), key in decisions.served.items():
            run, own = decisions.runs[task], self._own(key)
            ends[own] = max(ends[own], run.start if (task, key) in over else run.end)
        for move in self._plan.transfers:
            if any(end in reading.key for end in move.destinations):
                own = self._own(reading.key[move.source])
                ends[own] = max(ends[own], move.sent)
        for key in decisions.outputs:
            ends[self._own(key)] = self._plan.claim.makespan
        return ends

    def _add_residency(self, variables: ResidencyVars) -> None:
        """Hint a residency, its filling, and how long it is there; of an absent one the least."""
        key, least = variables.key, min((option.cycles for option in variables.options), default=0)
        fill, start, valid, cycles = self._fills.get(key), 0, least, least
        if fill is not None:
            start, valid = fill.start, self._valid[key]
        source = None if fill is None or fill.source is None else self._own(fill.source)
        root = None if fill is None or fill.root is None else self._own(fill.root)
        if source is not None:
            cycles = valid - start
        end = max(self._ends[key], valid)
        moved = root == key
        sending = min((option.sent for option in variables.options), default=0)
        filler = self._residencies[key].filled_by_transfer if fill is not None else None
        if filler is not None:
            sending = self._plan.transfers[filler].sent - start
        self._hint(variables.present, fill is not None)
        self._hint(variables.start, start)
        self._hint(variables.valid, valid)
        if variables.end is not None:
            self._hint(variables.end, end)
            self._hint(self._vars.lengths.get(key, 0), end - start)
        self._hint(variables.moved, moved)
        self._hint(variables.cycles, cycles)
        self._hint(variables.sending, sending)
        self._hint(variables.sent, start + sending)
        self._hint_choice(variables.sources, source if moved else None)
        for option, literal in variables.options.items():
            way = None if fill is None or source is None else (source.memory, fill.engine)
            taken = moved and way == (option.source, option.engine)
            self._hint(literal, taken)
            if taken:
                self._taken.add((key, option))
        self._hint_choice(variables.roots, None if moved else root)

    def _residency_of(self, memory: int, item: Item) -> Residency | None:
        if isinstance(item, CandidateResidency):
            return self._residencies.get(item)
        scratch = self._plan.placements[item].scratch
        one = None if scratch is None else self._plan.residencies[scratch]
        return one if one is not None and one.memory == memory else None

    def _hint_choice(self, literals: Mapping[T, Literal], chosen: T | None) -> None:
        for one, literal in literals.items():
            self._hint(literal, one == chosen)

    def _hint(self, variable: Literal | Number, value: int) -> None:
        """Hint a variable once; constants and sums need none."""
        if not isinstance(variable, cp_model.IntVar) or variable.index in self._hinted:
            return
        self._hinted.add(variable.index)
        self._model.add_hint(variable, int(value))
