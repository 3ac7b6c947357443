"""Redundant transfers: a slice that is given up and loaded again stays, where there is capacity."""

from dataclasses import replace
from typing import NamedTuple

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
from spmilp.solvers.kernels.timeline import Timeline, occupy
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.profiles import has_capacity, profiles_of_memories
from spmilp.solvers.partial_order.schedule import (
    KEEPS_TIME,
    Flags,
    PartialOrderSchedule,
    TimedSchedule,
    taken,
)


def without_redundant_transfers(
    context: ScheduleContext, before: TimedSchedule, limit: Ints
) -> TimedSchedule:
    """Return a schedule with fewer transfers, valid at the same times but for its addresses.

    Two residencies of a slice in a memory become one, if there is capacity in the time between.
    Other transfers that then fill what nobody reads are dropped, too.
    """
    if not context.drops_transfers:
        return before
    schedule = before.schedule
    begins, ends = before.lifetimes()
    state = _Merging(
        schedule=schedule,
        limit=limit,
        # Twice the breakpoints of all lifetimes is room enough: a merger adds two.
        occupancy=profiles_of_memories(schedule, limit.size),
        begins=begins,
        ends=ends,
        is_alone=np.diff(schedule.fills.begin) == 1,
        merged_into=np.arange(schedule.filler.size),
    )
    order = np.lexsort((begins, schedule.slice, schedule.memory))
    _merge(state, order, len(context.problem.tasks))
    merged = _merged(schedule, state.merged_into)
    return replace(before, schedule=without_unused_transfers(context, merged))


class _Merging(NamedTuple):
    """Residencies that become one with an earlier one.

    Attributes
    ----------
    begins, ends
        Of each residency, with what it was merged with.
    is_alone
        Of each activity, whether it fills one residency only.
    merged_into
        The residency that each has become; itself for most.
    """

    schedule: PartialOrderSchedule
    limit: Ints
    occupancy: Timeline
    begins: Ints
    ends: Ints
    is_alone: Flags
    merged_into: Ints


@kernel
def _merge(state: _Merging, order: Ints, tasks: int) -> None:
    """Merge residencies with the one of the same slice before them, where that is possible."""
    schedule, limit, occupancy = state.schedule, state.limit, state.occupancy
    begins, ends, merged_into = state.begins, state.ends, state.merged_into
    for residency in order:
        memory = schedule.memory[residency]
        if limit[memory] != NEVER and ends[residency] > begins[residency]:
            size = taken(schedule, residency, memory)
            occupy(occupancy, memory, begins[residency], ends[residency], size)
    before = NONE
    for residency in order:
        memory, filler = schedule.memory[residency], schedule.filler[residency]
        what, size = schedule.slice[residency], taken(schedule, residency, memory)
        if limit[memory] == NEVER or what == NONE or ends[residency] <= begins[residency]:
            continue
        last = before
        before = residency
        if last == NONE or schedule.memory[last] != memory or schedule.slice[last] != what:
            continue
        if filler < tasks or not state.is_alone[filler] or schedule.overwritten_by[last] != NONE:
            continue
        if schedule.lasting[residency] or schedule.fixed[filler] == KEEPS_TIME:
            continue
        first, until = ends[last], begins[residency]
        if until > first:
            if not has_capacity(occupancy, limit, memory, first, until, size):
                continue
            occupy(occupancy, memory, first, until, size)
        elif first > until:
            occupy(occupancy, memory, until, min(first, ends[residency]), -size)
        merged_into[residency] = merged_into[last]
        ends[last] = max(first, ends[residency])
        ends[merged_into[last]] = ends[last]
        before = last


def _merged(schedule: PartialOrderSchedule, merged_into: Ints) -> PartialOrderSchedule:
    """Read the residencies that others have become, and drop the transfers that filled those."""
    gone = np.flatnonzero(merged_into != np.arange(merged_into.size))
    cycles = schedule.cycles.copy()
    cycles[schedule.filler[gone]] = 0
    overwrites, overwritten_by = schedule.overwrites.copy(), schedule.overwritten_by.copy()
    for one in gone.tolist():
        successor = overwritten_by[one]
        if successor != NONE:
            overwritten_by[merged_into[one]] = successor
            overwrites[successor] = merged_into[one]
            overwritten_by[one] = NONE
    reads = Rows(schedule.reads.begin, merged_into[schedule.reads.items])
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
        needed[schedule.fixed == KEEPS_TIME] = True
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
