"""Which stay may come from which, and which may serve what: the model before its variables."""

from collections.abc import Iterator
from dataclasses import dataclass

from spmilp.solvers.cpsat.scope import Scope
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, MemoryIdx, SliceIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How one stay can come about.

    Parameters
    ----------
    initial
        It is there at cycle 0.
    writer
        The task that may write it here.
    sources
        The stays from which a transfer may fill it.
    ways
        The transfers that may do so.
    leaders
        The stays whose multicast may fill it too, with the leader's ways that can.
    lasting
        It is kept from its filling to the end.
    open
        It stands for itself and for all later residencies of its slice here. Its own occupies bytes
        until ``end``; a *late* use is one of a later residency, and occupies bytes while it lasts.

        Any number of residencies of a slice in a memory, numbered by the cycle from which they are
        valid, so become stays: one each, and the last, open one for the rest. Whatever uses one of
        the rest uses the open stay late: it was valid earlier than what the use really found, and
        is dispensed from occupying bytes between uses and from further transfers. Nothing that the
        problem allows is lost, so the optimum of a model with open stays is a lower bound whatever
        the number of stays; and a solution of it without late uses is a plan.
    """

    stay: CandidateResidency
    initial: bool
    writer: TaskIdx | None
    sources: tuple[CandidateResidency, ...]
    ways: tuple[TransferOption, ...]
    leaders: tuple[tuple[CandidateResidency, tuple[TransferOption, ...]], ...]
    lasting: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """All stays with their sources, and the stays that may serve each read."""

    scope: Scope
    shapes: dict[CandidateResidency, Shape]
    servers: dict[tuple[TaskIdx, int], tuple[CandidateResidency, ...]]

    @property
    def literals(self) -> int:
        """Roughly how many literals the model has."""
        stays = sum(4 + len(s.sources) + len(s.ways) + len(s.leaders) for s in self.shapes.values())
        return stays + sum(map(len, self.servers.values())) + sum(map(len, self.scope.pools))

    def numbers(self) -> Iterator[tuple[CandidateResidency, CandidateResidency]]:
        """Yield each stay with the next one of its slice in its memory."""
        for stay in self.shapes:
            following = stay._replace(number=stay.number + 1)
            if following in self.shapes:
                yield stay, following

    def cycles_in_turn(self, tables: ProblemTables) -> Cycles:
        """Return the cycles of all tasks and transfers one after another, at their slowest."""
        total = 0
        for task in tables.problem.tasks:
            pools = self.scope.pools[task.index]
            total += max((tables.cycles_on(task.index, pool) for pool in pools), default=0)
            for position, read in enumerate(task.reads):
                total += self._slowest_remote_read(tables, task.index, position, read)
        for shape in self.shapes.values():
            total += max((way.cycles for way in shape.ways), default=0)
        return total

    def _slowest_remote_read(
        self, tables: ProblemTables, task: TaskIdx, position: int, read: SliceIdx
    ) -> Cycles:
        if tables.machine.remote is None:
            return 0
        local = {tables.pools[pool].memory for pool in self.scope.pools[task]}
        sources = {stay.memory for stay in self.servers[task, position]}
        found = (tables.remote_cycles(read, a, b) for a in sources for b in local)
        return max((cycles for cycles in found if cycles is not None), default=0)


def structure_of(tables: ProblemTables, scope: Scope, moving: frozenset[MemoryIdx]) -> Structure:
    """Return the structure of a scope.

    Parameters
    ----------
    moving
        Memories in which a copy of a slice to another address of the same memory may be of use:
        those whose addresses the model knows.
    """
    return _Builder(tables, scope, moving).structure()


class _Builder:
    def __init__(self, tables: ProblemTables, scope: Scope, moving: frozenset[MemoryIdx]) -> None:
        self._tables = tables
        self._scope = scope
        self._moving = moving
        self._stays: dict[SliceIdx, list[CandidateResidency]] = {}
        for stay in scope.stays:
            self._stays.setdefault(stay.slice, []).append(stay)
        self._known = set(scope.stays)

    def structure(self) -> Structure:
        shapes = {stay: self._shape(stay) for stay in self._scope.stays}
        if any(engine.multicast for engine in self._tables.machine.engines):
            shapes = self._with_leaders(shapes)
        return Structure(scope=self._scope, shapes=shapes, servers=dict(self._servers()))

    def _shape(self, stay: CandidateResidency) -> Shape:
        problem, scope = self._tables.problem, self._scope
        buffer = problem.buffers[problem.slices[stay.slice].buffer]
        first_of_whole = stay.slice == buffer.index and stay.number == 0
        initial = first_of_whole and buffer.starts_in == stay.memory
        lasting = (stay.slice, stay.memory) in scope.lasting
        sources, ways = ((), ()) if initial else self._sources(stay)
        return Shape(
            stay=stay,
            initial=initial,
            writer=self._writer(stay) if first_of_whole else None,
            sources=sources,
            ways=ways,
            leaders=(),
            lasting=lasting,
            open=scope.relaxed
            and not lasting
            and stay._replace(number=stay.number + 1) not in self._known,
        )

    def _writer(self, stay: CandidateResidency) -> TaskIdx | None:
        tables = self._tables
        writer = tables.writers[stay.slice]
        if writer is None:
            return None
        pools = self._scope.pools[writer]
        return writer if any(tables.pools[p].memory == stay.memory for p in pools) else None

    def _sources(
        self, stay: CandidateResidency
    ) -> tuple[tuple[CandidateResidency, ...], tuple[TransferOption, ...]]:
        if self._scope.fills is not None and stay in self._scope.fills:
            return self._given_source(stay)
        ways: dict[TransferOption, None] = {}
        sources = []
        for source in self._possible_sources(stay):
            found = [
                way
                for way in self._tables.transfers.between(stay.slice, source.memory, stay.memory)
                if self._tables.transfers.can_copy(way, stay.slice, source.slice)
            ]
            if found:
                sources.append(source)
                ways.update(dict.fromkeys(found))
        return tuple(sources), tuple(ways)

    def _given_source(
        self, stay: CandidateResidency
    ) -> tuple[tuple[CandidateResidency, ...], tuple[TransferOption, ...]]:
        given = (self._scope.fills or {})[stay]
        if given is None:
            return (), ()
        source, engine = given
        ways = self._tables.transfers.between(stay.slice, source.memory, stay.memory)
        return (source,), tuple(way for way in ways if way.engine == engine)

    def _possible_sources(self, stay: CandidateResidency) -> Iterator[CandidateResidency]:
        parent = self._tables.problem.slices[stay.slice].buffer
        for holder in dict.fromkeys((stay.slice, parent)):
            for source in self._stays.get(holder, ()):
                same = source.slice == stay.slice and source.memory == stay.memory
                if not same or (stay.memory in self._moving and source.number < stay.number):
                    yield source

    def _with_leaders(
        self, shapes: dict[CandidateResidency, Shape]
    ) -> dict[CandidateResidency, Shape]:
        """Add the stays that a multicast to another, lower memory can fill besides.

        The destinations of a transfer lie in different memories, so the one in the lowest memory
        can stand for the transfer.
        """
        found = {}
        for stay, shape in shapes.items():
            leaders = []
            for leader in self._stays[stay.slice]:
                if leader.memory >= stay.memory or shape.initial or self._scope.fills is not None:
                    continue
                ways = tuple(w for w in shapes[leader].ways if self._can_join(w, stay))
                if ways:
                    leaders.append((leader, ways))
            found[stay] = Shape(
                stay=stay,
                initial=shape.initial,
                writer=shape.writer,
                sources=shape.sources,
                ways=shape.ways,
                leaders=tuple(leaders),
                lasting=shape.lasting,
                open=shape.open,
            )
        return found

    def _can_join(self, way: TransferOption, stay: CandidateResidency) -> bool:
        engine = self._tables.machine.engines[way.engine]
        serves = engine.multicast and engine.serves(way.source, stay.memory)
        return serves and self._tables.routes.between(way.source, stay.memory) is not None

    def _servers(self) -> Iterator[tuple[tuple[TaskIdx, int], tuple[CandidateResidency, ...]]]:
        tables, scope = self._tables, self._scope
        for task in tables.problem.tasks:
            local = {tables.pools[pool].memory for pool in scope.pools[task.index]}
            for position, read in enumerate(task.reads):
                key = task.index, position
                if scope.servers is not None:
                    yield key, (scope.servers[key],)
                    continue
                holders = dict.fromkeys((read, tables.problem.slices[read].buffer))
                yield (
                    key,
                    tuple(
                        stay
                        for holder in holders
                        for stay in self._stays.get(holder, ())
                        if self._is_near(read, stay.memory, local)
                    ),
                )

    def _is_near(self, read: SliceIdx, memory: MemoryIdx, local: set[MemoryIdx]) -> bool:
        return any(self._tables.remote_cycles(read, memory, m) is not None for m in local)
