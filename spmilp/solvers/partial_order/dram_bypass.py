"""DRAM bypass: slices come from scratchpads that hold them, and wait in some that have capacity.

What most plans of whole networks wait for are the ports of DRAM, while a third or more of all
scratchpad bytes, and most of the links between scratchpads, are idle. Only transfers change, within
the cycles that they have, so no plan gets longer; the next passes use what has become free.
"""

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints, owners_of, rows_from_pairs
from spmilp.solvers.partial_order.bypass_kernels import BypassState, Changes, bypass_dram
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.profiles import profiles_of_memories, profiles_of_resources
from spmilp.solvers.partial_order.redundant_transfers import (
    without_dropped_reads,
    without_unused_transfers,
)
from spmilp.solvers.partial_order.schedule import FREE, PartialOrderSchedule, TimedSchedule

MOST_CHANGES = 1000
"""In one go: profiles need room for each."""


def with_dram_bypassed(
    context: ScheduleContext, before: TimedSchedule, limit: Ints
) -> TimedSchedule:
    """Return a schedule with less traffic to and from DRAM.

    Only what moved to or from a DRAM starts at another cycle than before, and is there in time.
    """
    if not context.bypasses_dram:
        return before
    schedule, start = before.schedule, before.start
    begins, ends = before.lifetimes()
    is_there = (schedule.slice != NONE) & (ends > begins)
    there = np.flatnonzero(is_there)
    state = BypassState(
        schedule=schedule,
        options=context.options,
        limit=limit,
        start=start,
        holders=rows_from_pairs(schedule.slice[there], there, context.options.slices.size),
        is_dram=context.is_dram,
        may_leave=is_there & (context.homes == NONE) & (schedule.lasting == 0),
        usage=profiles_of_resources(schedule, MOST_CHANGES),
        occupancy=profiles_of_memories(schedule, limit.size, MOST_CHANGES),
        changes=_no_changes(schedule, start, begins, ends),
    )
    may_change = (schedule.cycles > 0) & (schedule.fixed == FREE)
    moves = np.flatnonzero((schedule.moved_slice != NONE) & may_change)
    moves = moves[np.argsort(start[moves], kind="stable")]
    if bypass_dram(state, moves, MOST_CHANGES) == 0:
        return before
    changed = without_unused_transfers(context, _changed(state))
    return TimedSchedule(changed, state.changes.start, before.makespan)


def _no_changes(schedule: PartialOrderSchedule, start: Ints, begins: Ints, ends: Ints) -> Changes:
    source = np.full(start.size, NONE, np.int64)
    reads_some = np.flatnonzero(np.diff(schedule.reads.begin) > 0)
    source[reads_some] = schedule.reads.items[schedule.reads.begin[reads_some]]
    filled = schedule.filler != NONE
    first_use = np.full(schedule.filler.size, np.iinfo(np.int64).max)
    np.minimum.at(first_use, owners_of(schedule.readers), start[schedule.readers.items])
    return Changes(
        start=start.copy(),
        cycles=schedule.cycles.copy(),
        source=source,
        pair=np.full(start.size, NONE, np.int64),
        option=np.full(start.size, NONE, np.int64),
        begins=begins,
        valid=np.where(filled, start[schedule.filler] + schedule.cycles[schedule.filler], 0),
        first_use=first_use,
        ends=ends,
        memory=schedule.memory.copy(),
    )


def _changed(state: BypassState) -> PartialOrderSchedule:
    """Return a schedule with the new sources, transfer options and memories."""
    schedule, options, changes = state.schedule, state.options, state.changes
    acts = np.flatnonzero(changes.pair != NONE)
    source = schedule.reads.items.copy()
    source[schedule.reads.begin[acts]] = changes.source[acts]
    owners = owners_of(schedule.demands)
    stays = changes.pair[owners] == NONE
    holders, demands = [owners[stays]], [schedule.demands.items[stays]]
    amounts = [schedule.amounts[stays]]
    for act in acts.tolist():
        resources, held = options.demands_of(changes.pair[act], changes.option[act])
        demands.append(resources)
        amounts.append(held)
        holders.append(np.full(resources.size, act))
    owner = np.concatenate(holders)
    return without_dropped_reads(
        schedule._replace(
            cycles=changes.cycles,
            reads=schedule.reads._replace(items=source),
            memory=changes.memory,
            demands=rows_from_pairs(owner, np.concatenate(demands), schedule.cycles.size),
            amounts=np.concatenate(amounts)[np.argsort(owner, kind="stable")],
        )
    )
