"""The variables of the model; every solver object stays inside this package."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.structure import Shape, Structure
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.extraction import Item
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, LinkIdx, MemoryIdx, TaskIdx

Literal: TypeAlias = Any
"""A Boolean variable, its negation, or a constant."""

Number: TypeAlias = Any
"""A variable, a constant, or a sum of them."""

Interval: TypeAlias = Any
"""An interval variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVars:
    """When a task runs and in which pool.

    Parameters
    ----------
    size
        Cycles, those of remote reads included.
    pools, memories
        Whether it runs in each of them.
    runs
        Its interval in each pool, present when it runs there.
    """

    start: Number
    size: Number
    end: Number
    pools: dict[int, Literal]
    memories: dict[MemoryIdx, Literal]
    runs: dict[int, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class StayVars:
    """A residency that may exist.

    Parameters
    ----------
    start, valid
        When it begins (with what fills it), and when what fills it has ended.
    end
        Until when its bytes are its own; ``None`` for a lasting one. For the operand of a pair in
        place this is the start of the task, from where on the result has the bytes.
    moved
        Whether a transfer of its own fills it.
    arcs, late_arcs
        The stay that this transfer reads, and whether it does so late.
    moves
        The way that this transfer takes.
    cycles
        How long it takes.
    transfer
        Its interval, whatever the way; ``None`` without ways.
    rides
        The multicasts that fill it.
    """

    shape: Shape
    present: Literal
    start: Number
    valid: Number
    end: Number | None
    moved: Literal
    arcs: dict[CandidateResidency, Literal]
    late_arcs: dict[CandidateResidency, Literal]
    moves: dict[TransferOption, Literal]
    cycles: Number
    transfer: Interval | None
    rides: dict[CandidateResidency, Literal]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadVars:
    """The stays that serve one read; ``late`` for those that do so late."""

    on: dict[CandidateResidency, Literal]
    late: dict[CandidateResidency, Literal]


class Variables:
    """All variables of a structure, with domains from 0 to a horizon.

    Parameters
    ----------
    horizon
        A cycle by which the plans that are looked for have ended.
    """

    def __init__(
        self, model: cp_model.CpModel, tables: ProblemTables, structure: Structure, horizon: Cycles
    ) -> None:
        self._model = model
        self.tables = tables
        self.structure = structure
        self.horizon = horizon
        self.true: Literal = model.new_constant(1)
        self.makespan: Number = model.new_int_var(0, horizon, "makespan")
        self.tasks: tuple[TaskVars, ...] = tuple(
            self._task(task.index) for task in tables.problem.tasks
        )
        self._leading = {leader for s in structure.shapes.values() for leader, _ in s.leaders}
        self.stays: dict[CandidateResidency, StayVars] = {
            stay: self._stay(shape, stay in self._leading)
            for stay, shape in structure.shapes.items()
        }
        self._parts: dict[tuple[CandidateResidency, frozenset[TransferOption]], Interval] = {}
        self.lasts: dict[CandidateResidency, Number] = {}
        self.unions: dict[tuple[CandidateResidency, frozenset[TransferOption]], Literal] = {}
        self.reads: dict[tuple[TaskIdx, int], ReadVars] = {
            key: self._read(key, servers) for key, servers in structure.servers.items()
        }
        self.in_place: dict[tuple[TaskIdx, CandidateResidency, CandidateResidency], Literal] = {}
        self.offsets: dict[tuple[MemoryIdx, Item], Number] = {}
        self.least_rates: dict[tuple[CandidateResidency, TransferOption], Fraction] = {}
        self.extra_links: dict[
            tuple[CandidateResidency, TransferOption], dict[LinkIdx, Literal]
        ] = {}

    def literal(self, name: str) -> Literal:
        """Return a new literal."""
        return self._model.new_bool_var(name)

    def cycle(self, name: str) -> Number:
        """Return a new cycle within the horizon."""
        return self._model.new_int_var(0, self.horizon, name)

    def late(self) -> list[Literal]:
        """Return every literal that says that something is used late."""
        reads = [lit for read in self.reads.values() for lit in read.late.values()]
        return reads + [lit for stay in self.stays.values() for lit in stay.late_arcs.values()]

    def _task(self, task: TaskIdx) -> TaskVars:
        model, tables, name = self._model, self.tables, f"task{task}"
        pools = self.structure.scope.pools[task]
        chosen: dict[int, Literal] = {p: self.literal(f"{name} in pool{p}") for p in pools}
        if len(pools) == 1:
            chosen = {pools[0]: self.true}
        else:
            model.add_exactly_one(chosen.values())
        least = {pool: tables.cycles_on(task, pool) for pool in pools}
        start, size = self.cycle(f"{name} start"), self._size(task, set(least.values()))
        end = start + size if isinstance(size, int) else self.cycle(f"{name} end")
        runs: dict[int, Interval] = {}
        for pool, literal in chosen.items():
            length: Number = size
            if tables.machine.remote is None:
                length = least[pool]
            if not isinstance(size, int) and isinstance(length, int):
                model.add(size == length).only_enforce_if(literal)
            runs[pool] = model.new_optional_interval_var(
                start, length, end, literal, f"{name} run{pool}"
            )
        return TaskVars(
            start=start,
            size=size,
            end=end,
            pools=chosen,
            memories=self._memories(task, chosen),
            runs=runs,
        )

    def _size(self, task: TaskIdx, lengths: set[Cycles]) -> Number:
        """Return a constant when the task takes equally long everywhere."""
        if self.tables.machine.remote is None and len(lengths) == 1:
            return next(iter(lengths))
        if self.tables.machine.remote is not None:
            if not self.tables.problem.tasks[task].reads and len(lengths) == 1:
                return next(iter(lengths))
            return self._model.new_int_var(min(lengths), self.horizon, f"task{task} size")
        return self._model.new_int_var(min(lengths), max(lengths), f"task{task} size")

    def _memories(self, task: TaskIdx, chosen: dict[int, Literal]) -> dict[MemoryIdx, Literal]:
        found: dict[MemoryIdx, list[Literal]] = {}
        for pool, literal in chosen.items():
            found.setdefault(self.tables.pools[pool].memory, []).append(literal)
        if len(found) == 1:
            return dict.fromkeys(found, self.true)
        memories = {}
        for memory, literals in found.items():
            memories[memory] = literals[0]
            if len(literals) > 1:
                memories[memory] = self.literal(f"task{task} in memory{memory}")
                self._model.add(sum(literals) == memories[memory])
        return memories

    def _stay(self, shape: Shape, leads: bool) -> StayVars:
        name = f"slice{shape.stay.slice} memory{shape.stay.memory} stay{shape.stay.number}"
        arcs = len(shape.sources) * (1 if not self._has_open(shape) else 2)
        fills = (shape.writer is not None) + bool(shape.sources) + len(shape.leaders)
        present: Literal = self.true
        start: Number = 0
        valid: Number = 0
        moved: Literal = self._model.new_constant(0)
        if not shape.initial:
            if fills == 1 and shape.writer is not None:
                task = self.tasks[shape.writer]
                present = task.memories[shape.stay.memory]
                start, valid = task.start, task.end
            else:
                present, start = self.literal(name), self.cycle(f"{name} start")
                valid = self._valid(name, shape, start, leads)
                if shape.sources:
                    moved = present if fills == 1 else self.literal(f"{name} moved")
        end = None if shape.lasting else self.cycle(f"{name} end")
        alone = arcs == 1
        on = {s: moved if alone else self.literal(f"{name} from {s}") for s in shape.sources}
        late = {
            s: self.literal(f"{name} late from {s}")
            for s in shape.sources
            if self.structure.shapes[s].open
        }
        only_way = len(shape.ways) == 1
        moves = {
            w: moved if only_way else self.literal(f"{name} by {w.engine}") for w in shape.ways
        }
        cycles = self._cycles(name, shape, leads)
        for way, literal in moves.items():
            if not leads and not isinstance(cycles, int):
                self._model.add(cycles == way.cycles).only_enforce_if(literal)
        return StayVars(
            shape=shape,
            present=present,
            start=start,
            valid=valid,
            end=end,
            moved=moved,
            arcs=on,
            late_arcs=late,
            moves=moves,
            cycles=cycles,
            transfer=self._model.new_optional_interval_var(start, cycles, valid, moved, name)
            if moves
            else None,
            rides={leader: self.literal(f"{name} with {leader}") for leader, _ in shape.leaders},
        )

    def _has_open(self, shape: Shape) -> bool:
        return any(self.structure.shapes[source].open for source in shape.sources)

    def _valid(self, name: str, shape: Shape, start: Number, leads: bool) -> Number:
        """Return an expression of the start when every filling takes equally long."""
        cycles = {way.cycles for way in shape.ways}
        if len(cycles) == 1 and shape.writer is None and not shape.leaders and not leads:
            return start + cycles.pop()
        return self.cycle(f"{name} valid")

    def _cycles(self, name: str, shape: Shape, leads: bool) -> Number:
        """Return how long a transfer takes; one that may lead others takes as long as they need."""
        found = {way.cycles for way in shape.ways}
        if len(found) <= 1 and not leads:
            return max(found, default=0)
        longest = self.horizon if leads else max(found)
        return self._model.new_int_var(min(found, default=0), longest, f"{name} cycles")

    def part(self, key: CandidateResidency, ways: frozenset[TransferOption]) -> Interval:
        """Return the interval of a stay's transfer that is there if it takes one of some ways."""
        stay = self.stays[key]
        if len(ways) == len(stay.moves):
            return stay.transfer
        if (key, ways) not in self._parts:
            moves = [move for way, move in stay.moves.items() if way in ways]
            taken = moves[0]
            if len(moves) > 1:
                taken = self.literal(f"{key} by one of {len(ways)}")
                self._model.add(sum(moves) == taken)
                self.unions[key, ways] = taken
            lengths = {way.cycles for way in ways}
            is_fixed = len(lengths) == 1 and key not in self._leading
            cycles = lengths.pop() if is_fixed else stay.cycles
            self._parts[key, ways] = self._model.new_optional_interval_var(
                stay.start, cycles, stay.valid, taken, f"{key} by {len(ways)}"
            )
        return self._parts[key, ways]

    def _read(self, key: tuple[TaskIdx, int], servers: tuple[CandidateResidency, ...]) -> ReadVars:
        name = f"task{key[0]} read{key[1]}"
        open_ones = [stay for stay in servers if self.structure.shapes[stay].open]
        if len(servers) == 1 and not open_ones:
            return ReadVars(on={servers[0]: self.true}, late={})
        return ReadVars(
            on={stay: self.literal(f"{name} from {stay}") for stay in servers},
            late={stay: self.literal(f"{name} late from {stay}") for stay in open_ones},
        )
