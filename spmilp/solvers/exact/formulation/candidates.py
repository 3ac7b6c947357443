"""Which residencies a model may have, and what can fill and use each of them.

:class:`CandidateMemories` says where a slice may lie at all, a :class:`Scope` how often and where
tasks may run (in the whole problem, or around a plan), a :class:`Structure` which residency may
come from which and serve what. :class:`Reading` is a plan in these terms.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Problem
from spmilp.solvers.exact.formulation.tables import (
    ProblemTables,
    SliceInMemory,
    TransferOption,
    overlapping_places,
)
from spmilp.units import BufferIdx, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


class CandidateResidency(NamedTuple):
    """A residency that a model may have; those of a slice in a memory are numbered by time."""

    slice: SliceIdx
    memory: MemoryIdx
    number: int

    def __str__(self) -> str:
        return f"slice{self.slice},{self.memory},{self.number}"


PERMANENT = 99
"""The number of a residency that is there for ever: of a constant, in a stream."""


class CandidateMemories:
    """The memories of each slice in which some plan may use a residency of it.

    A residency that nothing reads, copies or needs at the end can be left out of any plan, together
    with the transfer that fills it. What remains lies on a chain of transfers from the slice's
    origin to a use; both ends of that chain are searched here. Only the residencies that a task
    writes must exist whether used or not, so they are always among the candidates.
    """

    def __init__(self, tables: ProblemTables) -> None:
        self._tables = tables
        self._memories = range(len(tables.machine.memories))
        self._of: dict[SliceIdx, tuple[MemoryIdx, ...]] = {}
        for buffer in tables.problem.buffers:
            self._find(buffer.index)

    def of(self, slice_: SliceIdx) -> tuple[MemoryIdx, ...]:
        """Return the memories of a slice, sorted; none for a slice that nothing reads."""
        return self._of.get(slice_, ())

    def slices(self) -> Iterable[SliceIdx]:
        """Return the slices that have candidates, in order."""
        return sorted(self._of)

    def _find(self, buffer: BufferIdx) -> None:
        tables, whole = self._tables, self._tables.problem.buffers[buffer]
        writer = tables.writers[buffer]
        origins = set() if writer is None else set(tables.memories_of(writer))
        if whole.starts_in is not None:
            origins = {whole.starts_in}
        reached = self._reachable_from(buffer, origins)
        wanted = self._uses(buffer)
        for part in tables.parts[buffer]:
            uses = self._uses(part)
            useful = self._leading_to(part, uses)
            first = {
                m
                for m in self._memories
                if any(self._leads(part, buffer, source, m) for source in reached)
            }
            self._of[part] = tuple(sorted(self._reachable_from(part, first) & useful))
            wanted |= uses
            wanted |= {
                m for m in self._memories if any(self._leads(part, buffer, m, to) for to in useful)
            }
        if whole.ends_in is not None:
            wanted.add(whole.ends_in)
        wanted |= {m for m in self._memories if tables.is_resident(buffer, m)}
        self._of[buffer] = tuple(sorted(reached & self._leading_to(buffer, wanted) | origins))

    def _uses(self, slice_: SliceIdx) -> set[MemoryIdx]:
        """Return the memories in which a residency of the slice could serve one of its readers."""
        tables = self._tables
        local = {m for task, _ in tables.readers[slice_] for m in tables.memories_of(task)}
        return {memory for memory in self._memories if tables.can_serve(slice_, memory, local)}

    def _reachable_from(self, slice_: SliceIdx, found: set[MemoryIdx]) -> set[MemoryIdx]:
        """Return the memories that copies reach from some first ones."""
        return self._closure(found, lambda here, there: self._leads(slice_, slice_, here, there))

    def _leading_to(self, slice_: SliceIdx, found: set[MemoryIdx]) -> set[MemoryIdx]:
        """Return the memories from which copies reach one of some last ones."""
        return self._closure(found, lambda there, here: self._leads(slice_, slice_, here, there))

    def _closure(
        self, found: set[MemoryIdx], leads: Callable[[MemoryIdx, MemoryIdx], bool]
    ) -> set[MemoryIdx]:
        found, waiting = set(found), sorted(found)
        while waiting:
            one = waiting.pop()
            new = [other for other in self._memories if other not in found and leads(one, other)]
            found.update(new)
            waiting += new
        return found

    def _leads(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> bool:
        return self._tables.fits(slice_, destination) and bool(
            self._tables.transfers.out_of(holder, slice_, source, destination)
        )


class Reading:
    """The residencies of a plan that something needs, numbered as candidates.

    ``key`` is the candidate that each needed residency is; what is there at cycle 0 is part of the
    whole buffer's. ``kept`` are the residencies of buffers that lie where they have to be at the
    end, or to which they are pinned. ``counts`` says how many residencies a slice has in a memory.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self.kept = tuple(self._kept())
        self.needed = self._needed()
        self.key: dict[ResidencyIdx, CandidateResidency] = {}
        self.counts: dict[SliceInMemory, int] = {}
        self._number()

    def in_time(self) -> list[ResidencyIdx]:
        """Return what is needed, in the order in which it is valid."""
        return sorted(self.needed, key=lambda index: (self.valid(index), index))

    def valid(self, residency: ResidencyIdx) -> Cycles:
        """Return the cycle from which a residency is valid."""
        one = self.plan.residencies[residency]
        if one.filled_by_task is not None:
            return self.plan.placements[one.filled_by_task].end
        if one.filled_by_transfer is not None:
            return self.plan.transfers[one.filled_by_transfer].end
        return one.start

    def _needed(self) -> set[ResidencyIdx]:
        waiting = [r for p in self.plan.placements for r in (*p.reads, *p.writes)]
        waiting += self.kept
        needed: set[ResidencyIdx] = set()
        while waiting:
            residency = waiting.pop()
            filler = self.plan.residencies[residency].filled_by_transfer
            if residency not in needed and filler is not None:
                waiting.append(self.plan.transfers[filler].source)
            needed.add(residency)
        return needed

    def _kept(self) -> Iterator[ResidencyIdx]:
        """Yield buffers where they have to be at the end, and what is pinned to be resident."""
        pins = {pin.buffer: pin.memories for pin in self.problem.pins.buffers if pin.resident}
        for one in self.plan.residencies:
            if one.slice is not None and one.slice < len(self.problem.buffers):
                ends = self.problem.buffers[one.slice].ends_in == one.memory
                lasts = ends and one.end >= self.plan.claim.makespan
                if lasts or one.memory in pins.get(one.slice, ()):
                    yield one.index

    def _number(self) -> None:
        together: dict[SliceInMemory, list[Residency]] = defaultdict(list)
        for index in self.needed:
            one = self.plan.residencies[index]
            if one.slice is not None:
                buffer = self.problem.slices[one.slice].buffer
                together[buffer if _is_initial(one) else one.slice, one.memory].append(one)
        for (slice_, memory), some in together.items():
            some.sort(key=lambda one: (not _is_initial(one), self.valid(one.index), one.index))
            number = 0
            for place, one in enumerate(some):
                # All that is there at cycle 0 lies in the whole buffer's first residency.
                if place and not _is_initial(one):
                    number += 1
                self.key[one.index] = CandidateResidency(slice_, memory, number)
            self.counts[slice_, memory] = number + 1


def _is_initial(one: Residency) -> bool:
    return one.filled_by_task is None and one.filled_by_transfer is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The decisions of one model.

    ``pools`` has for each task the pools of cores that it may run in. ``candidates`` are the
    candidate residencies; the numbers of a slice in a memory count from 0. For slices in memories
    that are ``lasting`` nothing is gained by ever giving them up: their one residency lasts from
    its filling to the end. ``conflicts`` are pairs of candidates whose elements of a DRAM tensor
    overlap: never both at one time. If it is ``relaxed``, the last candidate of a slice in a memory
    stands for all further ones too, which makes the model a relaxation of the problem; see
    :class:`Lifecycle`. With a ``period`` it is of a stream, and candidates may be ``PERMANENT``.
    """

    pools: tuple[tuple[int, ...], ...]
    candidates: tuple[CandidateResidency, ...] = ()
    lasting: frozenset[SliceInMemory] = frozenset()
    conflicts: tuple[tuple[CandidateResidency, CandidateResidency], ...] = ()
    relaxed: bool = False
    period: Cycles | None = None


def whole_scope(
    tables: ProblemTables,
    memories: CandidateMemories,
    counts: Mapping[SliceInMemory, int],
    *,
    relaxed: bool,
    ample: bool = True,
) -> Scope:
    """Return the scope of the whole problem.

    ``counts`` are residencies of a slice in a memory whose space is short; 1 where nothing is said.
    If it is ``ample``, slices may last in memories that have space for everything at once. Where a
    memory has space for all that could ever lie in it, and in a DRAM without limit, one lasting
    residency is enough: replace those of a slice in such a memory by one, filled by whichever of
    the fills ends first; nothing else has to give way. The same holds at a place in a DRAM tensor
    whose elements no other buffer uses. Parts of a buffer at the place of a buffer that a task
    writes exist in the relaxation only.
    """
    unconstrained = _unconstrained(tables, memories) if ample else set[MemoryIdx]()
    candidates: list[CandidateResidency] = []
    lasting: set[SliceInMemory] = set()
    buffers = (buffer.index for buffer in tables.problem.buffers)
    whole = ((buffer, memory) for buffer in buffers for memory in memories.of(buffer))
    contested = {} if relaxed else overlapping_places(tables.problem, whole)
    for slice_ in memories.slices():
        buffer = tables.problem.buffers[tables.problem.slices[slice_].buffer]
        for memory in memories.of(slice_):
            placed = tables.at_place(slice_, memory)
            # A part lies by itself at its buffer's place only if the whole is not there.
            moved_there = relaxed and buffer.starts_in != memory
            if placed and slice_ != buffer.index and not moved_there:
                continue
            limited = tables.capacity[memory] is not None and memory not in unconstrained
            lasts = slice_ not in contested if placed else not limited
            count = 1 if lasts else counts.get((slice_, memory), 1)
            if lasts:
                lasting.add((slice_, memory))
            candidates += [CandidateResidency(slice_, memory, n) for n in range(count)]
    placed_ones = [k for k in candidates if k.slice in contested and tables.at_place(*k[:2])]
    return Scope(
        pools=tuple(tables.pools_of(task.index) for task in tables.problem.tasks),
        candidates=tuple(candidates),
        lasting=frozenset(lasting),
        conflicts=tuple(
            (one, other)
            for one in placed_ones
            for other in placed_ones
            if one.slice < other.slice and other.slice in contested[one.slice]
        ),
        relaxed=relaxed,
    )


def _unconstrained(tables: ProblemTables, memories: CandidateMemories) -> set[MemoryIdx]:
    """Return the bounded memories that have space for everything that could lie there."""
    needed = [0] * len(tables.machine.memories)
    for slice_ in memories.slices():
        for memory in memories.of(slice_):
            if not tables.at_place(slice_, memory):
                needed[memory] += tables.blocks_of(slice_, memory)
    for pool in tables.pools:
        able = (t for t in tables.problem.tasks if t.cycles[pool.kind] is not None)
        largest = max((task.scratch for task in able), default=0)
        needed[pool.memory] += len(pool.cores) * tables.blocks(largest, pool.memory)
    return {
        memory
        for memory, capacity in enumerate(tables.capacity)
        if capacity is not None
        and needed[memory] <= capacity
        and memory not in tables.fixed_memories
    }


def scope_around(
    tables: ProblemTables,
    whole: Scope,
    pools: tuple[tuple[int, ...], ...],
    kept: Reading | None = None,
) -> Scope:
    """Return the scope in which each task keeps to some pools.

    Slices lie only where some task reads or writes them, where they begin and end, and outside of
    the scratchpads. ``kept`` is a plan whose residencies alone there are.
    """
    able = [{tables.pools[pool].memory for pool in some} for some in pools]
    slices = dict.fromkeys(key.slice for key in whole.candidates)
    useful = {slice_: set(_useful(tables, able, slice_)) for slice_ in slices}
    candidates = tuple(key for key in whole.candidates if key.memory in useful[key.slice])
    if kept is not None:
        keys = kept.key.values()
        own = {key._replace(number=0) if key[:2] in whole.lasting else key for key in keys}
        candidates = tuple(key for key in candidates if key in own)
    known = set(candidates)
    return replace(
        whole,
        pools=pools,
        candidates=candidates,
        conflicts=tuple(pair for pair in whole.conflicts if known.issuperset(pair)),
    )


def _useful(
    tables: ProblemTables, able: Sequence[set[MemoryIdx]], slice_: SliceIdx
) -> Iterator[MemoryIdx]:
    buffer = tables.problem.buffers[tables.problem.slices[slice_].buffer]
    yield from (
        memory.index
        for memory in tables.machine.memories
        if memory.kind is not MemoryKind.SPM
        or memory.index in (buffer.starts_in, buffer.ends_in)
        or tables.is_resident(slice_, memory.index)
    )
    whole = slice_ == buffer.index
    for one in (slice_, *(tables.parts[slice_] if whole else ())):
        for task, _ in tables.readers[one]:
            yield from able[task]
    writer = tables.writers[buffer.index]
    if whole and writer is not None:
        yield from able[writer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """How one candidate residency can come about, and whether it ends.

    Parameters
    ----------
    initial
        It is there at cycle 0, if it is there at all: only a permanent one may not be.
    writer
        The task that may write it here.
    sources
        The residencies from which a transfer may fill it.
    options
        The transfers that may do so.
    roots
        Residencies that may be filled by a multicast that fills this one as well, each with those
        of its transfer options that can.
    lasting
        It is kept from its filling to the end.
    open
        It stands for itself and for all later residencies of its slice in this memory. The
        candidate itself occupies bytes until ``end``. A *late* use is a use of one of the later
        residencies; it occupies bytes only while the use lasts.

        Thereby every plan is a solution of the model, however many residencies it has of a slice in
        a memory. Number them by the cycle from which they are valid: each is one candidate, and the
        last, open candidate stands for the rest. A use of one of the rest is a late use of the open
        candidate. That asks less than the plan has done: the open candidate is valid earlier, needs
        no bytes between late uses, and no further transfers. So the optimum of a model with open
        candidates is a lower bound, and a solution without late uses is a plan.
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
            local = {tables.pools[pool].memory for pool in pools}
            total += max((tables.cycles_on(task.index, pool) for pool in pools), default=0)
            for position, read in enumerate(task.reads):
                sources = {key.memory for key in self.servers[task.index, position]}
                extra = (tables.remote_cycles(read, a, b) or 0 for a in sources for b in local)
                total += max(extra, default=0)
        for lifecycle in self.lifecycles.values():
            total += max((option.cycles for option in lifecycle.options), default=0)
        return total


class StructureFinder:
    """Finds for each candidate of a scope what can fill it, and for each read what can serve it.

    ``addressed`` are the memories whose addresses the model knows: there a copy of a slice to
    another address of the same memory may be of use.
    """

    def __init__(
        self, tables: ProblemTables, scope: Scope, addressed: frozenset[MemoryIdx]
    ) -> None:
        self._tables = tables
        self._scope = scope
        self._addressed = addressed
        self._of_slice: dict[SliceIdx, list[CandidateResidency]] = defaultdict(list)
        for key in scope.candidates:
            self._of_slice[key.slice].append(key)
        self._known = set(scope.candidates)
        self._local = [{tables.pools[pool].memory for pool in some} for some in scope.pools]

    def structure(self) -> Structure:
        """Return the structure of the scope."""
        lifecycles = {key: self._lifecycle(key) for key in self._scope.candidates}
        has_multicast = any(engine.multicast for engine in self._tables.machine.engines)
        if has_multicast:
            lifecycles = {
                key: replace(one, roots=tuple(self._roots(one, lifecycles)))
                for key, one in lifecycles.items()
            }
        servers = {
            (task.index, position): tuple(
                key
                for key in self._holding(read)
                if self._tables.can_serve(read, key.memory, self._local[task.index])
            )
            for task in self._tables.problem.tasks
            for position, read in enumerate(task.reads)
        }
        return Structure(scope=self._scope, lifecycles=lifecycles, servers=servers)

    def _lifecycle(self, key: CandidateResidency) -> Lifecycle:
        tables, scope = self._tables, self._scope
        buffer = tables.problem.buffers[tables.problem.slices[key.slice].buffer]
        first_of_whole = key.slice == buffer.index and key.number == 0
        is_permanent = key.number == PERMANENT
        initial = is_permanent or (first_of_whole and buffer.starts_in == key.memory)
        lasting = key[:2] in scope.lasting
        writer = tables.writers[buffer.index] if first_of_whole else None
        if writer is not None and key.memory not in self._local[writer]:
            writer = None
        is_last = key._replace(number=key.number + 1) not in self._known
        is_open = scope.relaxed and is_last and not lasting
        sources, options = ((), ()) if initial else self._sources(key)
        return Lifecycle(
            key=key,
            initial=initial,
            writer=writer,
            sources=sources,
            options=options,
            lasting=lasting,
            open=is_open and not tables.is_resident(*key[:2]),
        )

    def _sources(
        self, key: CandidateResidency
    ) -> tuple[tuple[CandidateResidency, ...], tuple[TransferOption, ...]]:
        transfers = self._tables.transfers
        options: dict[TransferOption, None] = {}
        sources = []
        for source in self._holding(key.slice):
            copies = key.memory in self._addressed and source.number < key.number
            if source[:2] == key[:2] and not copies:
                continue
            found = transfers.out_of(source.slice, key.slice, source.memory, key.memory)
            if found:
                sources.append(source)
                options.update(dict.fromkeys(found))
        return tuple(sources), tuple(options)

    def _holding(self, slice_: SliceIdx) -> Iterator[CandidateResidency]:
        for holder in self._tables.holders(slice_):
            yield from self._of_slice[holder]

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
