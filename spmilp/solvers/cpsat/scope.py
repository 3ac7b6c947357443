"""What a model may decide: where tasks may run, and which residencies there may be.

In the whole problem, or around a plan: its decisions, its residencies, or its cores.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spmilp.machine.machine import MemoryKind
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.formulation.places import SliceInMemory, overlapping_places
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import EngineIdx, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The decisions of one model.

    Parameters
    ----------
    pools
        For each task the pools of cores that it may run in.
    candidates
        The candidate residencies; the numbers of a slice in a memory count from 0.
    lasting
        Slices in memories where nothing is gained by ever giving them up: their one residency
        lasts from its filling to the end.
    conflicts
        Pairs of candidates whose elements of a DRAM tensor overlap: never both at one time.
    relaxed
        Whether the last candidate of a slice in a memory stands for all further ones too, which
        makes the model a relaxation of the problem; see
        :class:`~spmilp.solvers.cpsat.structure.Lifecycle`.
    fills, servers
        When given, the only source of a candidate's transfer with its engine, and the only
        candidate that serves a read.
    """

    pools: tuple[tuple[int, ...], ...]
    candidates: tuple[CandidateResidency, ...]
    lasting: frozenset[SliceInMemory]
    conflicts: tuple[tuple[CandidateResidency, CandidateResidency], ...] = ()
    relaxed: bool = False
    fills: Mapping[CandidateResidency, tuple[CandidateResidency, EngineIdx] | None] | None = None
    servers: Mapping[tuple[TaskIdx, int], CandidateResidency] | None = None


def whole_scope(
    tables: ProblemTables,
    memories: CandidateMemories,
    counts: Mapping[SliceInMemory, int],
    *,
    relaxed: bool,
    ample: bool = True,
) -> Scope:
    """Return the scope of the whole problem.

    Parameters
    ----------
    counts
        Residencies of a slice in a memory whose space is short; 1 where nothing is said.
    ample
        Whether slices may last in memories that have space for everything at once.

    Notes
    -----
    Where a memory has space for all that could ever lie in it, and in a DRAM without limit, one
    lasting residency is enough: replace those of a slice in such a memory by one, filled by
    whichever of the fills ends first; nothing else has to give way. The same holds at a place in a
    DRAM tensor whose elements no other buffer uses. Parts of a buffer at the place of a buffer that
    a task writes exist in the relaxation only.
    """
    unconstrained = _unconstrained(tables, memories) if ample else set[MemoryIdx]()
    candidates: list[CandidateResidency] = []
    lasting: set[SliceInMemory] = set()
    contested = {} if relaxed else _contested(tables, memories)
    for slice_ in memories.slices():
        whole = tables.problem.slices[slice_].buffer == slice_
        for memory in memories.of(slice_):
            placed = tables.at_place(slice_, memory)
            if placed and not whole and not (relaxed and _is_moved_there(tables, slice_, memory)):
                continue
            limited = tables.capacity[memory] is not None and memory not in unconstrained
            lasts = slice_ not in contested if placed else not limited
            count = 1 if lasts else counts.get((slice_, memory), 1)
            if lasts:
                lasting.add((slice_, memory))
            candidates += [CandidateResidency(slice_, memory, n) for n in range(count)]
    return Scope(
        pools=tuple(tables.pools_of(task.index) for task in tables.problem.tasks),
        candidates=tuple(candidates),
        lasting=frozenset(lasting),
        conflicts=tuple(_conflicts(tables, candidates, contested)),
        relaxed=relaxed,
    )


def _is_moved_there(tables: ProblemTables, slice_: SliceIdx, memory: MemoryIdx) -> bool:
    """Say whether a part may lie by itself at its buffer's place: not if the whole is there."""
    buffer = tables.problem.buffers[tables.problem.slices[slice_].buffer]
    return buffer.starts_in != memory


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


def _contested(tables: ProblemTables, memories: CandidateMemories) -> dict[SliceIdx, set[SliceIdx]]:
    """Return the buffers that share elements of a DRAM tensor with others, and which."""
    buffers = (buffer.index for buffer in tables.problem.buffers)
    pairs = ((buffer, memory) for buffer in buffers for memory in memories.of(buffer))
    found = overlapping_places(tables.problem, pairs)
    return {one: {other for other, _ in others} for (one, _), others in found.items()}


def _conflicts(
    tables: ProblemTables,
    candidates: list[CandidateResidency],
    contested: Mapping[SliceIdx, set[SliceIdx]],
) -> list[tuple[CandidateResidency, CandidateResidency]]:
    placed: dict[SliceIdx, list[CandidateResidency]] = {}
    for key in candidates:
        if key.slice in contested and tables.at_place(key.slice, key.memory):
            placed.setdefault(key.slice, []).append(key)
    return [
        (one, other)
        for first, others in sorted(contested.items())
        for second in sorted(others)
        if first < second
        for one in placed.get(first, ())
        for other in placed.get(second, ())
    ]


def scope_of_plan(tables: ProblemTables, reading: Reading, whole: Scope) -> Scope:
    """Return the scope in which every task keeps its pool, and every residency its filling.

    The order on every core, engine and link is free, and so are all times.
    """
    plan = reading.plan

    def key_of(residency: ResidencyIdx) -> CandidateResidency:
        key = reading.key[residency]
        return key._replace(number=0) if key[:2] in whole.lasting else key

    fills: dict[CandidateResidency, tuple[CandidateResidency, EngineIdx] | None] = {}
    for residency in sorted(reading.needed, key=lambda r: (reading.valid(r), r)):
        if plan.residencies[residency].slice is None:
            continue
        filler = plan.residencies[residency].filled_by_transfer
        given = None
        if filler is not None:
            move = plan.transfers[filler]
            given = (key_of(move.source), move.engine)
        fills.setdefault(key_of(residency), given)
    servers: dict[tuple[TaskIdx, int], CandidateResidency] = {
        (placement.task, position): key_of(residency)
        for placement in plan.placements
        for position, residency in enumerate(placement.reads)
    }
    return Scope(
        pools=tuple((pool,) for pool in tables.pools_of_plan(plan)),
        candidates=tuple(sorted(fills)),
        lasting=whole.lasting,
        conflicts=tuple((a, b) for a, b in whole.conflicts if a in fills and b in fills),
        fills=fills,
        servers=servers,
    )


def scope_of_residencies(tables: ProblemTables, reading: Reading, whole: Scope) -> Scope:
    """Return the scope with the residencies of a plan alone, in which tasks keep their pools.

    What fills a residency and what serves a read is free, and so are all orders and times.
    """
    return replace(scope_of_plan(tables, reading, whole), fills=None, servers=None)


def scope_around(
    tables: ProblemTables, whole: Scope, pools: Sequence[int], free: frozenset[TaskIdx]
) -> Scope:
    """Return the scope in which tasks keep these pools, the free ones excepted.

    Slices lie only where some task reads or writes them, where they begin and end, and outside of
    the scratchpads.
    """
    kept = tuple(
        all_pools if task in free else (pools[task],) for task, all_pools in enumerate(whole.pools)
    )
    able = [{tables.pools[pool].memory for pool in some} for some in kept]
    useful: dict[SliceIdx, set[MemoryIdx]] = {}
    for key in whole.candidates:
        if key.slice not in useful:
            useful[key.slice] = set(_useful(tables, able, key.slice))
    candidates = tuple(key for key in whole.candidates if key.memory in useful[key.slice])
    known = set(candidates)
    return replace(
        whole,
        pools=kept,
        candidates=candidates,
        conflicts=tuple((a, b) for a, b in whole.conflicts if a in known and b in known),
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
