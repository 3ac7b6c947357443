"""The variables of the model, with bounds from what must come before and after."""

from dataclasses import dataclass
from fractions import Fraction

from spmilp.solvers.milp.linear import Linear
from spmilp.solvers.milp.lookup import Lookup
from spmilp.solvers.milp.program import Program, total
from spmilp.solvers.milp.stays import Fill, Origin, Ride, Server, Shape, Stay, Structure
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

    def by(self, stay: Stay) -> Linear:
        """Return whether a stay serves the read, and not late."""
        return total(found for server, found in self.on.items() if server.stay == stay)

    def late_by(self, stay: Stay) -> Linear:
        """Return whether a stay serves the read late."""
        return total(found for server, found in self.late.items() if server.stay == stay)


@dataclass(frozen=True, slots=True, kw_only=True)
class StayVars:
    """A residency that may exist.

    Parameters
    ----------
    start, valid
        When it begins, and when what fills it has ended. Of a stay that does not exist they are
        equal, or its task's.
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
    fills: dict[Fill, Linear]
    late_fills: dict[Fill, Linear]
    rides: dict[Ride, Linear]

    def transfers(self) -> list[tuple[Fill, Linear]]:
        """Return every transfer of its own that may fill it."""
        return [*self.fills.items(), *self.late_fills.items()]

    def fills_from(self, source: Stay) -> Linear:
        """Return whether a transfer out of that stay fills it, the stay not being used late."""
        return total(found for fill, found in self.fills.items() if fill.source == source)

    def late_fills_from(self, source: Stay) -> Linear:
        """Return whether a transfer out of that stay fills it, the stay being used late."""
        return total(found for fill, found in self.late_fills.items() if fill.source == source)


class Variables:
    """All variables of a structure.

    Parameters
    ----------
    horizon
        A cycle by which the plans that are looked for have ended.
    """

    def __init__(
        self, program: Program, lookup: Lookup, structure: Structure, horizon: Cycles
    ) -> None:
        self.program = program
        self.lookup = lookup
        self.structure = structure
        self.horizon = horizon
        self.makespan = program.number("makespan", 0, horizon)
        self._leading = {ride.leader for s in structure.shapes.values() for ride in s.rides}
        pools = [self._pools(task.index) for task in lookup.problem.tasks]
        self.reads = {key: self._read(key, servers) for key, servers in structure.servers.items()}
        self.tasks = tuple(self._task(task, some) for task, some in enumerate(pools))
        self.stays = {stay: self._stay(shape) for stay, shape in structure.shapes.items()}
        self.in_place: dict[tuple[TaskIdx, Stay, Stay], Linear] = {}
        self.extra_links: dict[Stay, dict[tuple[LinkIdx, Fraction], Linear]] = {}
        self.kept: dict[Stay, Linear] = {}
        self.late_outputs: list[tuple[Stay, Linear]] = []

    def late(self) -> list[tuple[Stay, Linear]]:
        """Return every variable that says that something is used late, with what is."""
        found = [
            (server.stay, late)
            for read in self.reads.values()
            for server, late in read.late.items()
        ]
        for stay in self.stays.values():
            found += [(fill.source, late) for fill, late in stay.late_fills.items()]
        return found + self.late_outputs

    def _pools(self, task: TaskIdx) -> dict[int, Linear]:
        pools = self.lookup.tables.pools_of(task)
        if not pools:
            self.program.is_impossible = True
        if len(pools) == 1:
            return {pools[0]: ONE}
        return {pool: self.program.binary(f"task{task}_pool{pool}") for pool in pools}

    def _read(self, key: tuple[TaskIdx, int], servers: tuple[Server, ...]) -> ReadVars:
        name = f"task{key[0]}_read{key[1]}"
        shapes = self.structure.shapes
        sole = len(servers) == 1 and not shapes[servers[0].stay].open
        return ReadVars(
            on={
                s: ONE if sole else self.program.binary(f"{name}_{_name(s.stay)}") for s in servers
            },
            late={
                s: self.program.binary(f"{name}_late_{_name(s.stay)}")
                for s in servers
                if shapes[s.stay].open
            },
        )

    def _task(self, task: TaskIdx, pools: dict[int, Linear]) -> TaskVars:
        lookup, paths = self.lookup, self.lookup.paths
        start = self.program.number(
            f"task{task}_start", paths.head[task], self.horizon - paths.tail[task]
        )
        cycles = [lookup.tables.cycles_on(task, pool) * here for pool, here in pools.items()]
        for position, slice_ in enumerate(lookup.problem.tasks[task].reads):
            read = self.reads[task, position]
            for server, found in (*read.on.items(), *read.late.items()):
                extra = lookup.tables.remote_cycles(slice_, server.stay.memory, server.local)
                cycles.append((extra or 0) * found)
        memories: dict[MemoryIdx, Linear] = {}
        for pool, here in pools.items():
            memory = lookup.tables.pools[pool].memory
            memories[memory] = memories.get(memory, NONE) + here
        if len(memories) == 1:
            memories = dict.fromkeys(memories, ONE)
        return TaskVars(start=start, end=start + total(cycles), pools=pools, memories=memories)

    def _stay(self, shape: Shape) -> StayVars:
        if shape.origin is Origin.MOVED:
            return self._moved(shape)
        present, start, valid = ONE, NONE, NONE
        if shape.writer is not None:
            task = self.tasks[shape.writer]
            present = task.memories[shape.stay.memory]
            start, valid = task.start, task.end
        return StayVars(
            shape=shape,
            present=present,
            start=start,
            valid=valid,
            end=self._end(shape),
            fills={},
            late_fills={},
            rides={},
        )

    def _moved(self, shape: Shape) -> StayVars:
        name, program = _name(shape.stay), self.program
        present = program.binary(name)
        first, latest = self._window(shape)
        if first > latest:
            program.at_most(present, 0)
            latest = first
        start = program.number(f"{name}_start", first, latest)
        known = self.structure.shapes
        able = [fill for fill in shape.fills if fill.source in known]
        fills = {f: program.binary(f"{name}_from_{_name(f.source)}_by{f.way.engine}") for f in able}
        late = {
            f: program.binary(f"{name}_late_from_{_name(f.source)}_by{f.way.engine}")
            for f in able
            if known[f.source].open
        }
        rides = {
            r: program.binary(f"{name}_with_{_name(r.leader)}_by{r.way.engine}")
            for r in shape.rides
            if r.leader in known
        }
        cycles = [fill.way.cycles * found for fill, found in (*fills.items(), *late.items())]
        valid = start + total(cycles)
        if shape.rides or shape.stay in self._leading:
            valid = program.number(f"{name}_valid", first, self.horizon)
        return StayVars(
            shape=shape,
            present=present,
            start=start,
            valid=valid,
            end=self._end(shape),
            fills=fills,
            late_fills=late,
            rides=rides,
        )

    def _window(self, shape: Shape) -> tuple[Cycles, Cycles]:
        """Return the cycles in which a transfer that fills a stay can begin."""
        windows, pair = self.lookup.windows, shape.stay[:2]
        ways = [fill.way for fill in shape.fills] + [ride.own for ride in shape.rides]
        shortest = min(way.cycles for way in ways)
        return windows.start(pair), self.horizon - windows.rest(pair) - shortest

    def _end(self, shape: Shape) -> Linear | None:
        if shape.lasting:
            return None
        return self.program.number(f"{_name(shape.stay)}_end", 0, self.horizon)


def _name(stay: Stay) -> str:
    return f"slice{stay.slice}_memory{stay.memory}_{stay.number}"
