"""What a model may decide: where tasks may run, and which residencies there may be."""

from collections.abc import Mapping
from dataclasses import dataclass

from spmilp.solvers.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.formulation.places import overlapping_places
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import EngineIdx, MemoryIdx, SliceIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The decisions of one model.

    Parameters
    ----------
    pools
        For each task the pools of cores that it may run in.
    stays
        The possible residencies; the numbers of a slice in a memory count from 0.
    lasting
        Slices in memories where nothing is gained by ever giving them up: their one residency
        lasts from its filling to the end.
    conflicts
        Pairs of stays whose elements of a DRAM tensor overlap: never both at one time.
    relaxed
        Whether the last stay of a slice in a memory stands for all further ones too, which makes
        the model a relaxation of the problem; see :class:`~spmilp.solvers.cpsat.structure.Shape`.
    fills, servers
        When given, the only source of a stay's transfer with its engine, and the only stay that
        serves a read.
    """

    pools: tuple[tuple[int, ...], ...]
    stays: tuple[CandidateResidency, ...]
    lasting: frozenset[tuple[SliceIdx, MemoryIdx]]
    conflicts: tuple[tuple[CandidateResidency, CandidateResidency], ...] = ()
    relaxed: bool = False
    fills: Mapping[CandidateResidency, tuple[CandidateResidency, EngineIdx] | None] | None = None
    servers: Mapping[tuple[TaskIdx, int], CandidateResidency] | None = None


def whole_scope(
    tables: ProblemTables,
    candidates: CandidateMemories,
    counts: Mapping[tuple[SliceIdx, MemoryIdx], int],
    *,
    relaxed: bool,
    ample: bool = True,
) -> Scope:
    """Return the scope of the whole problem.

    Parameters
    ----------
    counts
        Stays of a slice in a memory that is short of room; 1 where nothing is said.
    ample
        Whether slices may last in memories that have room for everything at once.

    Notes
    -----
    Where there is room for all that could ever lie in a memory, and in a DRAM without limit, one
    lasting stay is enough: replace the residencies of a slice in such a memory by one, filled by
    whichever of the fills ends first; nothing else has to give way. The same holds at a place in a
    DRAM tensor whose elements no other buffer uses. Parts of a buffer at the place of a buffer that
    a task writes exist in the relaxation only.
    """
    rooms = _roomy(tables, candidates) if ample else set[MemoryIdx]()
    stays: list[CandidateResidency] = []
    lasting: set[tuple[SliceIdx, MemoryIdx]] = set()
    contested = {} if relaxed else _contested(tables, candidates)
    for slice_ in candidates.slices():
        whole = tables.problem.slices[slice_].buffer == slice_
        for memory in candidates.of(slice_):
            placed = tables.at_place(slice_, memory)
            if placed and not whole and not _is_used_at_place(tables, slice_, memory, relaxed):
                continue
            limited = tables.capacity[memory] is not None and memory not in rooms
            stays_for_ever = slice_ not in contested if placed else not limited
            count = 1 if stays_for_ever else counts.get((slice_, memory), 1)
            if stays_for_ever:
                lasting.add((slice_, memory))
            stays.extend(CandidateResidency(slice_, memory, number) for number in range(count))
    return Scope(
        pools=tuple(tables.pools_of(task.index) for task in tables.problem.tasks),
        stays=tuple(stays),
        lasting=frozenset(lasting),
        conflicts=tuple(_conflicts(tables, stays, contested)),
        relaxed=relaxed,
    )


def _is_used_at_place(
    tables: ProblemTables, slice_: SliceIdx, memory: MemoryIdx, relaxed: bool
) -> bool:
    """Say whether a part may lie by itself at its buffer's place.

    Never where the whole buffer lies from the start, which serves as well.
    """
    buffer = tables.problem.buffers[tables.problem.slices[slice_].buffer]
    return relaxed and buffer.starts_in != memory


def _roomy(tables: ProblemTables, candidates: CandidateMemories) -> set[MemoryIdx]:
    """Return the bounded memories that have room for everything that could lie there."""
    needed = [0] * len(tables.machine.memories)
    for slice_ in candidates.slices():
        size = tables.problem.slices[slice_].bytes
        for memory in candidates.of(slice_):
            if not tables.at_place(slice_, memory):
                needed[memory] += tables.blocks(size, memory)
    for pool in tables.pools:
        able = (t for t in tables.problem.tasks if t.cycles[pool.kind] is not None)
        largest = max((task.scratch for task in able), default=0)
        needed[pool.memory] += len(pool.cores) * tables.blocks(largest, pool.memory)
    return {
        memory
        for memory, capacity in enumerate(tables.capacity)
        if capacity is not None and needed[memory] <= capacity
    }


def _contested(
    tables: ProblemTables, candidates: CandidateMemories
) -> dict[SliceIdx, set[SliceIdx]]:
    """Return the buffers that share elements of a DRAM tensor with others, and which."""
    buffers = (buffer.index for buffer in tables.problem.buffers)
    pairs = ((buffer, memory) for buffer in buffers for memory in candidates.of(buffer))
    found = overlapping_places(tables.problem, pairs)
    return {one: {other for other, _ in others} for (one, _), others in found.items()}


def _conflicts(
    tables: ProblemTables,
    stays: list[CandidateResidency],
    contested: Mapping[SliceIdx, set[SliceIdx]],
) -> list[tuple[CandidateResidency, CandidateResidency]]:
    placed: dict[SliceIdx, list[CandidateResidency]] = {}
    for stay in stays:
        if stay.slice in contested and tables.at_place(stay.slice, stay.memory):
            placed.setdefault(stay.slice, []).append(stay)
    return [
        (one, other)
        for first, others in sorted(contested.items())
        for second in sorted(others)
        if first < second
        for one in placed.get(first, ())
        for other in placed.get(second, ())
    ]
