"""The variables of the model, with bounds from what must come before and after."""

from dataclasses import dataclass
from fractions import Fraction

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVars:
    """When a task runs, and where: in which pool of equal cores, in which memory."""

    start: Linear
    end: Linear
    pools: dict[int, Linear]
    memories: dict[MemoryIdx, Linear]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadVars:
    """The servers of one read; ``late`` for those that serve it late."""

    on: dict[Server, Linear]
    late: dict[Server, Linear]

    def by(self, candidate: CandidateResidency) -> Linear:
        """Return whether a candidate serves the read, and not late."""
        return total(found for server, found in self.on.items() if server.key == candidate)

    def late_by(self, candidate: CandidateResidency) -> Linear:
        """Return whether a candidate serves the read late."""
        return total(found for server, found in self.late.items() if server.key == candidate)


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
    fills, late_fills
        The transfer that fills it, and whether its source is used late.
    """

    shape: Shape
    present: Linear
    start: Linear
    valid: Linear
    end: Linear | None
    fills: dict[FillOption, Linear]
    late_fills: dict[FillOption, Linear]
    multicasts: dict[MulticastOption, Linear]

    def transfers(self) -> list[tuple[FillOption, Linear]]:
        """Return every transfer of its own that may fill it."""
        return [*self.fills.items(), *self.late_fills.items()]

    def fills_from(self, source: CandidateResidency) -> Linear:
        """Return whether a transfer out of that candidate fills it, and does not use it late."""
        return total(found for fill, found in self.fills.items() if fill.source == source)

    def late_fills_from(self, source: CandidateResidency) -> Linear:
        """Return whether a transfer out of that candidate fills it, and uses it late."""
        return total(found for fill, found in self.late_fills.items() if fill.source == source)


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
        self.candidates = {
            candidate: self._candidate(shape) for candidate, shape in structure.shapes.items()
        }
        self.in_place: dict[tuple[TaskIdx, CandidateResidency, CandidateResidency], Linear] = {}
        self.extra_links: dict[CandidateResidency, dict[tuple[LinkIdx, Fraction], Linear]] = {}
        self.kept: dict[CandidateResidency, Linear] = {}
        self.late_outputs: list[tuple[CandidateResidency, Linear]] = []

    def late(self) -> list[tuple[CandidateResidency, Linear]]:
        """Return every variable that says that something is used late, with what is."""
        found = [
            (server.key, late) for read in self.reads.values() for server, late in read.late.items()
        ]
        for candidate in self.candidates.values():
            found += [(fill.source, late) for fill, late in candidate.late_fills.items()]
        return found + self.late_outputs

    def _pools(self, task: TaskIdx) -> dict[int, Linear]:
        pools = self.tables.pools_of(task)
        if not pools:
            self.program.is_impossible = True
        if len(pools) == 1:
            return {pools[0]: ONE}
        return {pool: self.program.binary(f"task{task}_pool{pool}") for pool in pools}

    def _read(self, key: tuple[TaskIdx, int], servers: tuple[Server, ...]) -> ReadVars:
        name = f"task{key[0]}_read{key[1]}"
        shapes = self.structure.shapes
        sole = len(servers) == 1 and not shapes[servers[0].key].open
        return ReadVars(
            on={s: ONE if sole else self.program.binary(f"{name}_{_name(s.key)}") for s in servers},
            late={
                s: self.program.binary(f"{name}_late_{_name(s.key)}")
                for s in servers
                if shapes[s.key].open
            },
        )

    def _task(self, task: TaskIdx, pools: dict[int, Linear]) -> TaskVars:
        tables, paths = self.tables, self.tables.paths
        start = self.program.number(
            f"task{task}_start", paths.head[task], self.horizon - paths.tail[task]
        )
        cycles = [tables.cycles_on(task, pool) * here for pool, here in pools.items()]
        for position, slice_ in enumerate(tables.problem.tasks[task].reads):
            read = self.reads[task, position]
            for server, found in (*read.on.items(), *read.late.items()):
                extra = tables.remote_cycles(slice_, server.key.memory, server.local)
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
            fills={},
            late_fills={},
            multicasts={},
        )

    def _transferred(self, shape: Shape) -> CandidateVars:
        name, program = _name(shape.key), self.program
        present = program.binary(name)
        first, latest = self._window(shape)
        if first > latest:
            program.at_most(present, 0)
            latest = first
        start = program.number(f"{name}_start", first, latest)
        known = self.structure.shapes
        able = [fill for fill in shape.fills if fill.source in known]
        fills = {
            f: program.binary(f"{name}_from_{_name(f.source)}_by{f.option.engine}") for f in able
        }
        late = {
            f: program.binary(f"{name}_late_from_{_name(f.source)}_by{f.option.engine}")
            for f in able
            if known[f.source].open
        }
        joins = {
            r: program.binary(f"{name}_with_{_name(r.root)}_by{r.option.engine}")
            for r in shape.multicasts
            if r.root in known
        }
        cycles = [fill.option.cycles * found for fill, found in (*fills.items(), *late.items())]
        valid = start + total(cycles)
        if shape.multicasts or shape.key in self._roots:
            valid = program.number(f"{name}_valid", first, self.horizon)
        return CandidateVars(
            shape=shape,
            present=present,
            start=start,
            valid=valid,
            end=self._end(shape),
            fills=fills,
            late_fills=late,
            multicasts=joins,
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
        return self.program.number(f"{_name(shape.key)}_end", 0, self.horizon)


def _name(candidate: CandidateResidency) -> str:
    return f"slice{candidate.slice}_memory{candidate.memory}_{candidate.number}"
