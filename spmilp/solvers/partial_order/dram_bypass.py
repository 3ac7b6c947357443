"""Sparing DRAM: slices come from scratchpads that hold them, and wait in some that have room.

What most plans of whole networks wait for are the ports of DRAM, while a third or more of all
scratchpad bytes, and most of the links between scratchpads, are idle. Only transfers change, within
the cycles that they have, so no plan gets longer; the next passes use what has become free.
"""

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints, owners_of, rows_from_pairs
from spmilp.solvers.partial_order.bypass_kernels import BypassState, Changes, bypass_dram
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.profiles import line_of_memories, line_of_resources
from spmilp.solvers.partial_order.redundant_transfers import (
    without_dropped_reads,
    without_unused_transfers,
)
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule, lifetimes

MOST_CHANGES = 1000
"""In one go: step functions need room for each."""


def with_dram_bypassed(
    context: ScheduleContext, schedule: PartialOrderSchedule, start: Ints, last: int, limit: Ints
) -> tuple[PartialOrderSchedule, Ints]:
    """Return a schedule with less traffic to and from DRAM, and its start cycles.

    Only what moved to or from a DRAM starts at another cycle than before, and is there in time.
    """
    if not context.bypasses_dram:
        return schedule, start
    begins, ends = lifetimes(schedule, start, last)
    is_there = (schedule.slice != NONE) & (ends > begins)
    residency = np.flatnonzero(is_there)
    state = BypassState(
        schedule=schedule,
        options=context.options,
        limit=limit,
        start=start,
        holders=rows_from_pairs(schedule.slice[residency], residency, context.options.slices.size),
        is_dram=context.is_dram,
        may_leave=is_there & (context.homes == NONE) & (schedule.lasting == 0),
        line=line_of_resources(schedule, MOST_CHANGES),
        room=line_of_memories(schedule, limit.size, MOST_CHANGES),
        changes=_no_changes(schedule, start, begins, ends),
    )
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    moves = moves[np.argsort(start[moves], kind="stable")]
    if bypass_dram(state, moves, MOST_CHANGES) == 0:
        return schedule, start
    return without_unused_transfers(context, _changed(state)), state.changes.start


def _no_changes(schedule: PartialOrderSchedule, start: Ints, begins: Ints, ends: Ints) -> Changes:
    read = np.full(start.size, NONE, np.int64)
    reads_some = np.flatnonzero(np.diff(schedule.reads.begin) > 0)
    read[reads_some] = schedule.reads.items[schedule.reads.begin[reads_some]]
    filled = schedule.filler != NONE
    first_use = np.full(schedule.filler.size, np.iinfo(np.int64).max)
    np.minimum.at(first_use, owners_of(schedule.readers), start[schedule.readers.items])
    return Changes(
        start=start.copy(),
        cycles=schedule.cycles.copy(),
        source=read,
        pair=np.full(start.size, NONE, np.int64),
        way=np.full(start.size, NONE, np.int64),
        begins=begins,
        valid=np.where(filled, start[schedule.filler] + schedule.cycles[schedule.filler], 0),
        first_use=first_use,
        ends=ends,
        memory=schedule.memory.copy(),
    )


def _changed(state: BypassState) -> PartialOrderSchedule:
    """Return a schedule with the new sources, ways and memories."""
    schedule, options, changes = state.schedule, state.options, state.changes
    acts = np.flatnonzero(changes.pair != NONE)
    source = schedule.reads.items.copy()
    source[schedule.reads.begin[acts]] = changes.source[acts]
    owners = owners_of(schedule.demands)
    stays = changes.pair[owners] == NONE
    who, which, amounts = (
        [owners[stays]],
        [schedule.demands.items[stays]],
        [schedule.amounts[stays]],
    )
    for act in acts.tolist():
        pair, way = options.pairs[changes.pair[act]], options.ways[changes.way[act]]
        links = options.links[pair.links_from : pair.links_to]
        which.append(options.first_engine + np.concatenate(([way.engine], links)))
        amounts.append(np.concatenate(([1], np.full(links.size, way.rate))))
        who.append(np.full(links.size + 1, act))
    owner = np.concatenate(who)
    return without_dropped_reads(
        schedule._replace(
            cycles=changes.cycles,
            reads=schedule.reads._replace(items=source),
            memory=changes.memory,
            demands=rows_from_pairs(owner, np.concatenate(which), schedule.cycles.size),
            amounts=np.concatenate(amounts)[np.argsort(owner, kind="stable")],
        )
    )
