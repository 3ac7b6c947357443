"""What a model may decide: where tasks may run, and which residencies there may be."""

from collections.abc import Mapping
from dataclasses import dataclass

from spmilp.solvers.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.formulation.places import SliceInMemory, overlapping_places
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import EngineIdx, MemoryIdx, SliceIdx, TaskIdx


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
        if capacity is not None and needed[memory] <= capacity
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
