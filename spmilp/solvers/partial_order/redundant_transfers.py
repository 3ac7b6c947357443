"""Doing without transfers: what is given up and loaded again stays, where there is room."""

import numpy as np

from spmilp.compiled import kernel
from spmilp.solvers.kernels.records import (
    NEVER,
    NONE,
    Ints,
    Rows,
    inverted,
    owners_of,
    rows_from_pairs,
)
from spmilp.solvers.kernels.timeline import Timeline, occupy, step_at
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.profiles import line_of_memories
from spmilp.solvers.partial_order.schedule import Flags, PartialOrderSchedule, lifetimes


def without_redundant_transfers(
    context: ScheduleContext, schedule: PartialOrderSchedule, start: Ints, last: int, limit: Ints
) -> PartialOrderSchedule:
    """Return a schedule with fewer transfers, valid at the same times but for its addresses.

    Two stays of a slice in a memory become one, if there is room for it in the time between. Then
    nobody may be left to read what other transfers bring: these are dropped, too.
    """
    if not context.drops_transfers:
        return schedule
    begins, ends = lifetimes(schedule, start, last)
    order = np.lexsort((begins, schedule.slice, schedule.memory))
    room = line_of_memories(schedule, limit.size)
    stands_for = np.arange(schedule.filler.size)
    tasks = len(context.problem.tasks)
    single = np.diff(schedule.fills.begin) == 1
    # Twice the breakpoints of all lifetimes is room enough: a merger adds two.
    _merge(schedule, limit, room, order, begins, ends, tasks, single, stands_for)
    return without_unused_transfers(context, _with(schedule, stands_for))


@kernel
def _merge(
    schedule: PartialOrderSchedule,
    limit: Ints,
    room: Timeline,
    order: Ints,
    begins: Ints,
    ends: Ints,
    tasks: int,
    single: Flags,
    stands_for: Ints,
) -> None:
    for residency in order:
        if limit[schedule.memory[residency]] != NEVER and ends[residency] > begins[residency]:
            occupy(
                room,
                schedule.memory[residency],
                begins[residency],
                ends[residency],
                schedule.bytes[residency],
            )
    before = NONE
    for residency in order:
        memory, filler = schedule.memory[residency], schedule.filler[residency]
        if (
            limit[memory] == NEVER
            or schedule.slice[residency] == NONE
            or ends[residency] <= begins[residency]
        ):
            continue
        last = before
        before = residency
        if (
            last == NONE
            or schedule.memory[last] != memory
            or schedule.slice[last] != schedule.slice[residency]
        ):
            continue
        if filler < tasks or not single[filler] or schedule.overwritten_by[last] != NONE:
            continue
        if schedule.lasting[residency] and not schedule.lasting[last]:
            continue
        first, until = ends[last], begins[residency]
        fits = True
        if until > first:
            step = step_at(room, memory, first)
            row = room.resources[memory]
            past = row.begin + row.length
            while fits and step < past and room.steps[step].time < until:
                fits = room.steps[step].load + schedule.bytes[residency] <= limit[memory]
                step += 1
        if not fits:
            continue
        if until > first:
            occupy(room, memory, first, until, schedule.bytes[residency])
        elif first > until:
            occupy(room, memory, until, min(first, ends[residency]), -schedule.bytes[residency])
        stands_for[residency] = stands_for[last]
        ends[last] = max(first, ends[residency])
        ends[stands_for[last]] = ends[last]
        before = last


def _with(schedule: PartialOrderSchedule, stands_for: Ints) -> PartialOrderSchedule:
    """Let residencies stand for others, and drop the transfers that filled those."""
    gone = np.flatnonzero(stands_for != np.arange(stands_for.size))
    cycles = schedule.cycles.copy()
    cycles[schedule.filler[gone]] = 0
    overwrites, overwritten_by = schedule.overwrites.copy(), schedule.overwritten_by.copy()
    for one in gone.tolist():
        if overwritten_by[one] != NONE:
            overwritten_by[stands_for[one]], overwrites[overwritten_by[one]] = (
                overwritten_by[one],
                stands_for[one],
            )
            overwritten_by[one] = NONE
    reads = Rows(schedule.reads.begin, stands_for[schedule.reads.items])
    return without_dropped_reads(
        schedule._replace(
            cycles=cycles, reads=reads, overwrites=overwrites, overwritten_by=overwritten_by
        )
    )


def without_unused_transfers(
    context: ScheduleContext, schedule: PartialOrderSchedule
) -> PartialOrderSchedule:
    """Drop transfers that fill what nobody reads and nobody keeps."""
    droppable = np.zeros(context.usable.size, np.bool_)
    droppable[list(context.packed)] = True
    if context.dram_is_free:
        droppable[:] = True
    tasks = len(context.problem.tasks)
    while True:
        unread = (np.diff(schedule.readers.begin) == 0) & ~schedule.lasting.astype(np.bool_)
        idle = unread & droppable[schedule.memory]
        needed = np.zeros(schedule.cycles.size, np.bool_)
        owners = owners_of(schedule.fills)
        needed[owners[~idle[schedule.fills.items]]] = True
        needed[:tasks] = True
        if not (~needed & (schedule.cycles > 0)).any():
            return schedule
        schedule = without_dropped_reads(
            schedule._replace(cycles=np.where(needed, schedule.cycles, 0))
        )


def without_dropped_reads(schedule: PartialOrderSchedule) -> PartialOrderSchedule:
    """Let dropped transfers read nothing."""
    owners = owners_of(schedule.reads)
    kept = schedule.cycles[owners] > 0
    reads = rows_from_pairs(owners[kept], schedule.reads.items[kept], schedule.cycles.size)
    return schedule._replace(reads=reads, readers=inverted(reads, schedule.filler.size))
