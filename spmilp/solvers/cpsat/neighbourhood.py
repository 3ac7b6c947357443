"""Parts of the problem around a plan: most tasks keep their pool of cores, some are free."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan
from spmilp.solvers.cpsat.scope import Scope
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx

LEAST_FREE = 4
"""Tasks in the smallest neighbourhood."""


def pools_of_plan(tables: ProblemTables, plan: Plan) -> tuple[int, ...]:
    """Return the pool in which each task runs."""
    pool_of = {core: pool.index for pool in tables.pools for core in pool.cores}
    return tuple(pool_of[placement.core] for placement in plan.placements)


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

    def memories(slice_: SliceIdx) -> set[MemoryIdx]:
        if slice_ not in useful:
            useful[slice_] = set(_useful(tables, able, slice_))
        return useful[slice_]

    stays = tuple(stay for stay in whole.stays if stay.memory in memories(stay.slice))
    known = set(stays)
    return replace(
        whole,
        pools=kept,
        stays=stays,
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
