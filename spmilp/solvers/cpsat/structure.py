"""Which residency may come from which, and which may serve what: the model before its variables."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from spmilp.solvers.cpsat.scope import Scope
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, MemoryIdx, SliceIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """How one candidate residency can come about, and whether it ends.

    Parameters
    ----------
    initial
        It is there at cycle 0.
    writer
        The task that may write it here.
    sources
        The residencies from which a transfer may fill it.
    options
        The transfers that may do so.
    roots
        The residencies whose multicast may fill it too, with the root's transfers that can.
    lasting
        It is kept from its filling to the end.
    open
        It stands for itself and for all later residencies of its slice here. Its own occupies bytes
        until ``end``; a *late* use is one of a later residency, and occupies bytes while it lasts.

        Any number of residencies of a slice in a memory, numbered by the cycle from which they are
        valid, so become candidates: one each, and the last, open one for the rest. Whatever uses
        one of the rest uses the open candidate late: it was valid earlier than what the use really
        found, and is dispensed from occupying bytes between uses and from further transfers.
        Nothing that the problem allows is lost, so the optimum of a model with open candidates is a
        lower bound whatever their number; and a solution of it without late uses is a plan.
    """

    key: CandidateResidency
    initial: bool
    writer: TaskIdx | None
    sources: tuple[CandidateResidency, ...]
    options: tuple[TransferOption, ...]
    roots: tuple[tuple[CandidateResidency, tuple[TransferOption, ...]], ...] = ()
    lasting: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """All candidates with their sources, and those that may serve each read."""

    scope: Scope
    lifecycles: dict[CandidateResidency, Lifecycle]
    servers: dict[tuple[TaskIdx, int], tuple[CandidateResidency, ...]]

    @property
    def literals(self) -> int:
        """Roughly how many literals the model has."""
        lives = self.lifecycles.values()
        residencies = sum(4 + len(one.sources) + len(one.options) + len(one.roots) for one in lives)
        return residencies + sum(map(len, [*self.servers.values(), *self.scope.pools]))

    def successive(self) -> Iterator[tuple[CandidateResidency, CandidateResidency]]:
        """Yield each candidate with the next one of its slice in its memory."""
        for key in self.lifecycles:
            following = key._replace(number=key.number + 1)
            if following in self.lifecycles:
                yield key, following

    def sequential_cycles(self, tables: ProblemTables) -> Cycles:
        """Return the cycles of all tasks and transfers one after another, at their slowest."""
        total = 0
        for task in tables.problem.tasks:
            pools = self.scope.pools[task.index]
            total += max((tables.cycles_on(task.index, pool) for pool in pools), default=0)
            for position, read in enumerate(task.reads):
                total += self._slowest_remote_read(tables, task.index, position, read)
        for lifecycle in self.lifecycles.values():
            total += max((option.cycles for option in lifecycle.options), default=0)
        return total

    def _slowest_remote_read(
        self, tables: ProblemTables, task: TaskIdx, position: int, read: SliceIdx
    ) -> Cycles:
        if tables.machine.remote is None:
            return 0
        local = {tables.pools[pool].memory for pool in self.scope.pools[task]}
        sources = {key.memory for key in self.servers[task, position]}
        found = (tables.remote_cycles(read, a, b) for a in sources for b in local)
        return max((cycles for cycles in found if cycles is not None), default=0)


def structure_of(tables: ProblemTables, scope: Scope, addressed: frozenset[MemoryIdx]) -> Structure:
    """Return the structure of a scope.

    Parameters
    ----------
    addressed
        Memories whose addresses the model knows: there a copy of a slice to another address of the
        same memory may be of use.
    """
    return _Builder(tables, scope, addressed).structure()


class _Builder:
    def __init__(
        self, tables: ProblemTables, scope: Scope, addressed: frozenset[MemoryIdx]
    ) -> None:
        self._tables = tables
        self._scope = scope
        self._addressed = addressed
        self._of_slice: dict[SliceIdx, list[CandidateResidency]] = {}
        for key in scope.candidates:
            self._of_slice.setdefault(key.slice, []).append(key)
        self._known = set(scope.candidates)

    def structure(self) -> Structure:
        lifecycles = {key: self._lifecycle(key) for key in self._scope.candidates}
        has_multicast = any(engine.multicast for engine in self._tables.machine.engines)
        if has_multicast and self._scope.fills is None:
            lifecycles = {
                key: replace(one, roots=tuple(self._roots(one, lifecycles)))
                for key, one in lifecycles.items()
            }
        return Structure(scope=self._scope, lifecycles=lifecycles, servers=dict(self._servers()))

    def _lifecycle(self, key: CandidateResidency) -> Lifecycle:
        problem, scope = self._tables.problem, self._scope
        buffer = problem.buffers[problem.slices[key.slice].buffer]
        first_of_whole = key.slice == buffer.index and key.number == 0
        initial = first_of_whole and buffer.starts_in == key.memory
        lasting = (key.slice, key.memory) in scope.lasting
        is_last = key._replace(number=key.number + 1) not in self._known
        sources, options = ((), ()) if initial else self._sources(key)
        return Lifecycle(
            key=key,
            initial=initial,
            writer=self._writer(key) if first_of_whole else None,
            sources=sources,
            options=options,
            lasting=lasting,
            open=scope.relaxed
            and not lasting
            and is_last
            and not self._tables.is_resident(key.slice, key.memory),
        )

    def _writer(self, key: CandidateResidency) -> TaskIdx | None:
        tables = self._tables
        writer = tables.writers[key.slice]
        if writer is None:
            return None
        pools = self._scope.pools[writer]
        return writer if any(tables.pools[p].memory == key.memory for p in pools) else None

    def _sources(
        self, key: CandidateResidency
    ) -> tuple[tuple[CandidateResidency, ...], tuple[TransferOption, ...]]:
        transfers = self._tables.transfers
        if self._scope.fills is not None and key in self._scope.fills:
            given = self._scope.fills[key]
            if given is None:
                return (), ()
            source, engine = given
            able = transfers.between(key.slice, source.memory, key.memory)
            return (source,), tuple(option for option in able if option.engine == engine)
        options: dict[TransferOption, None] = {}
        sources = []
        for source in self._possible_sources(key):
            found = transfers.out_of(source.slice, key.slice, source.memory, key.memory)
            if found:
                sources.append(source)
                options.update(dict.fromkeys(found))
        return tuple(sources), tuple(options)

    def _possible_sources(self, key: CandidateResidency) -> Iterator[CandidateResidency]:
        for holder in self._tables.holders(key.slice):
            for source in self._of_slice.get(holder, ()):
                same = source[:2] == key[:2]
                if not same or (key.memory in self._addressed and source.number < key.number):
                    yield source

    def _roots(
        self, one: Lifecycle, lifecycles: dict[CandidateResidency, Lifecycle]
    ) -> Iterator[tuple[CandidateResidency, tuple[TransferOption, ...]]]:
        """Yield the residencies in lower memories whose multicast can fill this one too.

        The destinations of a transfer lie in different memories, so the one in the lowest memory
        can stand for the transfer.
        """
        for root in self._of_slice[one.key.slice]:
            if root.memory < one.key.memory and not one.initial:
                options = tuple(o for o in lifecycles[root].options if self._can_join(o, one.key))
                if options:
                    yield root, options

    def _can_join(self, option: TransferOption, key: CandidateResidency) -> bool:
        engine = self._tables.machine.engines[option.engine]
        serves = engine.multicast and engine.serves(option.source, key.memory)
        return serves and self._tables.routes.between(option.source, key.memory) is not None

    def _servers(
        self,
    ) -> Iterator[tuple[tuple[TaskIdx, int], tuple[CandidateResidency, ...]]]:
        tables, scope = self._tables, self._scope
        for task in tables.problem.tasks:
            local = {tables.pools[pool].memory for pool in scope.pools[task.index]}
            for position, read in enumerate(task.reads):
                if scope.servers is not None:
                    yield (task.index, position), (scope.servers[task.index, position],)
                    continue
                able = (
                    key
                    for holder in tables.holders(read)
                    for key in self._of_slice.get(holder, ())
                    if tables.can_serve(read, key.memory, local)
                )
                yield (task.index, position), tuple(able)
