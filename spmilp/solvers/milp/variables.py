"""The variables of the model, with bounds from the paths before and after."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.program import Linear, Program, total
from spmilp.solvers.milp.structure import (
    FillOption,
    MulticastOption,
    Origin,
    Server,
    Shape,
    Structure,
)
from spmilp.solvers.milp.tables import MilpTables
from spmilp.units import Cycles, LinkIdx, MemoryIdx, TaskIdx

NONE, ONE = Linear(), Linear(constant=1)

Use = TypeVar("Use", Server, FillOption)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses(Generic[Use]):
    """The uses of candidates from which one is chosen; ``late`` for those that are late."""

    on: dict[Use, Linear]
    late: dict[Use, Linear]

    @property
    def all(self) -> list[tuple[Use, Linear]]:
        """Every use with its variable."""
        return list(self.on.items()) + list(self.late.items())

    @property
    def sources(self) -> Iterable[CandidateResidency]:
        """The candidates that may be used."""
        return dict.fromkeys(use.source for use in self.on)

    def on_time(self, source: CandidateResidency) -> Linear:
        """Return whether that candidate is used, and not late."""
        return total(found for use, found in self.on.items() if use.source == source)

    def of(self, source: CandidateResidency) -> Linear:
        """Return whether that candidate is used, late or not."""
        return total(found for use, found in self.all if use.source == source)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVars:
    """When a task runs, and where: in which pool of equal cores, in which memory."""

    start: Linear
    end: Linear
    pools: dict[int, Linear]
    memories: dict[MemoryIdx, Linear]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateVars:
    """A residency that may exist.

    Parameters
    ----------
    start, valid
        When it begins, and when its filling has ended. Of a candidate that does not exist they
        are equal, or its task's.
    end
        Until when its bytes are its own; ``None`` for a lasting one. The operand of a pair in
        place gives them to the result when the task starts.
    fills, multicasts
        The transfers that may fill it: its own, and those of roots.
    """

    shape: Shape
    present: Linear
    start: Linear
    valid: Linear
    end: Linear | None
    fills: Uses[FillOption]
    multicasts: dict[MulticastOption, Linear]


class Variables:
    """All variables of a structure.

    Parameters
    ----------
    horizon
        A cycle by which the plans that are looked for have ended.
    """

    def __init__(
        self, program: Program, tables: MilpTables, structure: Structure, horizon: Cycles
    ) -> None:
        self.program = program
        self.tables = tables
        self.structure = structure
        self.horizon = horizon
        self.makespan = program.number("makespan", 0, horizon)
        self._roots = {member.root for s in structure.shapes.values() for member in s.multicasts}
        pools = [self._pools(task.index) for task in tables.problem.tasks]
        self.reads = {key: self._read(key, servers) for key, servers in structure.servers.items()}
        self.tasks = tuple(self._task(task, some) for task, some in enumerate(pools))
        self.candidates = {key: self._candidate(shape) for key, shape in structure.shapes.items()}
        self.in_place: dict[tuple[TaskIdx, CandidateResidency, CandidateResidency], Linear] = {}
        self.extra_links: dict[CandidateResidency, dict[tuple[LinkIdx, Fraction], Linear]] = {}
        self.kept: dict[CandidateResidency, Linear] = {}
        self.late_outputs: list[tuple[CandidateResidency, Linear]] = []

    @property
    def transferred(self) -> list[CandidateVars]:
        """The candidates that transfers fill."""
        every = self.candidates.values()
        return [one for one in every if one.shape.origin is Origin.TRANSFERRED]

    def fills_of_root(self, member: MulticastOption) -> list[tuple[FillOption, Linear]]:
        """Return the fills of a root that its member can join."""
        return [
            (fill, found)
            for fill, found in self.candidates[member.root].fills.all
            if fill.option == member.option and fill.source in member.sources
        ]

    def late(self) -> list[tuple[CandidateResidency, Linear]]:
        """Return every variable that says that a candidate is used late, with the candidate."""
        found = [
            (use.source, late) for read in self.reads.values() for use, late in read.late.items()
        ]
        for candidate in self.candidates.values():
            found += [(fill.source, late) for fill, late in candidate.fills.late.items()]
        return found + self.late_outputs

    def _pools(self, task: TaskIdx) -> dict[int, Linear]:
        pools = self.tables.pools_of(task)
        if not pools:
            self.program.is_impossible = True
        if len(pools) == 1:
            return {pools[0]: ONE}
        return {pool: self.program.binary(f"task{task}_pool{pool}") for pool in pools}

    def _read(self, key: tuple[TaskIdx, int], servers: tuple[Server, ...]) -> Uses[Server]:
        name, binary = f"task{key[0]}_read{key[1]}", self.program.binary
        late = [s for s in servers if self.structure.shapes[s.source].open]
        sole = len(servers) == 1 and not late
        return Uses(
            on={s: ONE if sole else binary(f"{name}_{name_of(s.source)}") for s in servers},
            late={s: binary(f"{name}_late_{name_of(s.source)}") for s in late},
        )

    def _task(self, task: TaskIdx, pools: dict[int, Linear]) -> TaskVars:
        tables, paths = self.tables, self.tables.paths
        latest = self.horizon - paths.tail[task]
        start = self.program.number(f"task{task}_start", paths.head[task], latest)
        cycles = [tables.cycles_on(task, pool) * here for pool, here in pools.items()]
        for position, slice_ in enumerate(tables.problem.tasks[task].reads):
            for server, found in self.reads[task, position].all:
                extra = tables.remote_cycles(slice_, server.source.memory, server.local)
                cycles.append((extra or 0) * found)
        memories: dict[MemoryIdx, Linear] = {}
        for pool, here in pools.items():
            memory = tables.pools[pool].memory
            memories[memory] = memories.get(memory, NONE) + here
        if len(memories) == 1:
            memories = dict.fromkeys(memories, ONE)
        return TaskVars(start=start, end=start + total(cycles), pools=pools, memories=memories)

    def _candidate(self, shape: Shape) -> CandidateVars:
        if shape.origin is Origin.TRANSFERRED:
            return self._transferred(shape)
        present, start, valid = ONE, NONE, NONE
        if shape.writer is not None:
            task = self.tasks[shape.writer]
            present = task.memories[shape.key.memory]
            start, valid = task.start, task.end
        return CandidateVars(
            shape=shape,
            present=present,
            start=start,
            valid=valid,
            end=self._end(shape),
            fills=Uses(on={}, late={}),
            multicasts={},
        )

    def _transferred(self, shape: Shape) -> CandidateVars:
        name, program = name_of(shape.key), self.program
        present = program.binary(name)
        first, latest = self._window(shape)
        if first > latest:
            program.at_most(present, 0)
            latest = first
        start = program.number(f"{name}_start", first, latest)
        fills = self._fills(shape)
        multicasts = {
            one: program.binary(f"{name}_with_{name_of(one.root)}_by{one.option.engine}")
            for one in shape.multicasts
            if one.root in self.structure.shapes
        }
        valid = start + total(fill.option.cycles * found for fill, found in fills.all)
        if shape.multicasts or shape.key in self._roots:
            valid = program.number(f"{name}_valid", first, self.horizon)
        return CandidateVars(
            shape=shape,
            present=present,
            start=start,
            valid=valid,
            end=self._end(shape),
            fills=fills,
            multicasts=multicasts,
        )

    def _fills(self, shape: Shape) -> Uses[FillOption]:
        name, known = name_of(shape.key), self.structure.shapes
        able = [fill for fill in shape.fills if fill.source in known]
        late = [fill for fill in able if known[fill.source].open]

        def binary(fill: FillOption, how: str) -> Linear:
            by = fill.option.engine
            return self.program.binary(f"{name}{how}_from_{name_of(fill.source)}_by{by}")

        return Uses(
            on={fill: binary(fill, "") for fill in able},
            late={fill: binary(fill, "_late") for fill in late},
        )

    def _window(self, shape: Shape) -> tuple[Cycles, Cycles]:
        """Return the cycles in which a transfer that fills a candidate can begin."""
        windows, pair = self.tables.windows, shape.key[:2]
        options = [fill.option for fill in shape.fills] + [one.own for one in shape.multicasts]
        shortest = min(option.cycles for option in options)
        return windows.start(pair), self.horizon - windows.rest(pair) - shortest

    def _end(self, shape: Shape) -> Linear | None:
        if shape.lasting:
            return None
        return self.program.number(f"{name_of(shape.key)}_end", 0, self.horizon)


def name_of(key: CandidateResidency) -> str:
    """Return the name of a candidate in the names of variables."""
    return f"slice{key.slice}_{key.memory}_{key.number}"
