"""Scopes around a plan: its decisions with free times, or some tasks free and the others not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.scope import Scope
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import EngineIdx, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx

LEAST_FREE = 4
"""Tasks in the smallest neighbourhood."""


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


def free_sets(plan: Plan, seed: int) -> Iterator[frozenset[TaskIdx]]:
    """Yield sets of tasks to free: none, then windows of successive ones, ever larger."""
    yield frozenset()
    random = Random(seed)
    size = LEAST_FREE
    tasks = [placement.task for placement in sorted(plan.placements, key=lambda p: p.start)]
    while size < len(tasks):
        starts = list(range(0, len(tasks), size))
        random.shuffle(starts)
        yield from (frozenset(tasks[first : first + 2 * size]) for first in starts)
        size *= 2


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
        if memory.kind is not MemoryKind.SPM or memory.index in (buffer.starts_in, buffer.ends_in)
    )
    whole = slice_ == buffer.index
    for one in (slice_, *(tables.parts[slice_] if whole else ())):
        for task, _ in tables.readers[one]:
            yield from able[task]
    writer = tables.writers[buffer.index]
    if whole and writer is not None:
        yield from able[writer]
