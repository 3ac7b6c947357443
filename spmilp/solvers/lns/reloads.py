"""Doing without transfers: what is given up and loaded again stays, where there is room."""

import numpy as np

from spmilp.compiled import kernel
from spmilp.solvers.kernels.records import NEVER, NONE, Ints
from spmilp.solvers.kernels.timeline import Timeline, occupy, step_at
from spmilp.solvers.lns.draft import Draft, Flags, Rows
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import lifetimes
from spmilp.solvers.lns.rows import owners_of, rows_from_pairs, turned_round
from spmilp.solvers.lns.timelines import line_of_memories


def without_reloads(ground: Ground, draft: Draft, start: Ints, last: int, limit: Ints) -> Draft:
    """Return a draft with fewer transfers, valid at the same times but for its addresses.

    Two stays of a slice in a memory become one, if there is room for it in the time between. Then
    nobody may be left to read what other transfers bring: these are dropped, too.
    """
    if not ground.drops_reloads:
        return draft
    begins, ends = lifetimes(draft, start, last)
    order = np.lexsort((begins, draft.slice, draft.memory))
    room = line_of_memories(draft, limit.size)
    stands_for = np.arange(draft.filler.size)
    tasks = len(ground.problem.tasks)
    single = np.diff(draft.fills.begin) == 1
    # Twice the breakpoints of all lifetimes is room enough: a merger adds two.
    _merge(draft, limit, room, order, begins, ends, tasks, single, stands_for)
    return without_needless(ground, _with(draft, stands_for))


@kernel
def _merge(
    draft: Draft,
    limit: Ints,
    room: Timeline,
    order: Ints,
    begins: Ints,
    ends: Ints,
    tasks: int,
    single: Flags,
    stands_for: Ints,
) -> None:
    for held in order:
        if limit[draft.memory[held]] != NEVER and ends[held] > begins[held]:
            occupy(room, draft.memory[held], begins[held], ends[held], draft.bytes[held])
    before = NONE
    for held in order:
        memory, filler = draft.memory[held], draft.filler[held]
        if limit[memory] == NEVER or draft.slice[held] == NONE or ends[held] <= begins[held]:
            continue
        last = before
        before = held
        if last == NONE or draft.memory[last] != memory or draft.slice[last] != draft.slice[held]:
            continue
        if filler < tasks or not single[filler] or draft.heir[last] != NONE:
            continue
        if draft.lasting[held] and not draft.lasting[last]:
            continue
        first, until = ends[last], begins[held]
        fits = True
        if until > first:
            step = step_at(room, memory, first)
            row = room.resources[memory]
            past = row.begin + row.length
            while fits and step < past and room.steps[step].time < until:
                fits = room.steps[step].load + draft.bytes[held] <= limit[memory]
                step += 1
        if not fits:
            continue
        if until > first:
            occupy(room, memory, first, until, draft.bytes[held])
        elif first > until:
            occupy(room, memory, until, min(first, ends[held]), -draft.bytes[held])
        stands_for[held] = stands_for[last]
        ends[last] = max(first, ends[held])
        ends[stands_for[last]] = ends[last]
        before = last


def _with(draft: Draft, stands_for: Ints) -> Draft:
    """Let residencies stand for others, and drop the transfers that filled those."""
    gone = np.flatnonzero(stands_for != np.arange(stands_for.size))
    cycles = draft.cycles.copy()
    cycles[draft.filler[gone]] = 0
    parent, heir = draft.parent.copy(), draft.heir.copy()
    for one in gone.tolist():
        if heir[one] != NONE:
            heir[stands_for[one]], parent[heir[one]] = heir[one], stands_for[one]
            heir[one] = NONE
    reads = Rows(draft.reads.begin, stands_for[draft.reads.items])
    return read_again(draft._replace(cycles=cycles, reads=reads, parent=parent, heir=heir))


def without_needless(ground: Ground, draft: Draft) -> Draft:
    """Drop transfers that fill what nobody reads and nobody keeps."""
    droppable = np.zeros(ground.usable.size, np.bool_)
    droppable[list(ground.packed)] = True
    if ground.dram_is_free:
        droppable[:] = True
    tasks = len(ground.problem.tasks)
    while True:
        unread = (np.diff(draft.users.begin) == 0) & ~draft.lasting.astype(np.bool_)
        idle = unread & droppable[draft.memory]
        needed = np.zeros(draft.cycles.size, np.bool_)
        owners = owners_of(draft.fills)
        needed[owners[~idle[draft.fills.items]]] = True
        needed[:tasks] = True
        if not (~needed & (draft.cycles > 0)).any():
            return draft
        draft = read_again(draft._replace(cycles=np.where(needed, draft.cycles, 0)))


def read_again(draft: Draft) -> Draft:
    """Let dropped transfers read nothing."""
    owners = owners_of(draft.reads)
    kept = draft.cycles[owners] > 0
    reads = rows_from_pairs(owners[kept], draft.reads.items[kept], draft.cycles.size)
    return draft._replace(reads=reads, users=turned_round(reads, draft.filler.size))
