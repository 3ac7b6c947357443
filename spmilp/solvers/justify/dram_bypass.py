"""Slices come from scratchpads that hold them, and not through DRAM.

What most plans of whole networks wait for are the ports of DRAM, while a third or more of all
scratchpad bytes, and most of the links between scratchpads, are idle. Only transfers change, within
the cycles that they have, so no plan gets longer; the next passes use what has become free.
"""

from typing import NamedTuple

import cython
import numpy as np

from spmilp.compiled import address, in_c
from spmilp.solvers.justify.context import ScheduleContext
from spmilp.solvers.justify.profiles import profiles_of_memories, profiles_of_resources
from spmilp.solvers.justify.schedule import Demands, Flags, PartialOrderSchedule, TimedSchedule
from spmilp.solvers.justify.transfer_options import Booking, Copy, OptionTables
from spmilp.solvers.schedule.kernels.records import (
    Ints,
    Rows,
    inverted,
    owners_of,
    ranges_of,
    rows_from_pairs,
)
from spmilp.solvers.schedule.kernels.timeline import Timeline

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import longs_at, whole
    from spmilp.solvers.justify.profiles import earliest_option, has_capacity, hold, taken
    from spmilp.solvers.justify.transfer_options import AT_PLACE, PART, WHOLE
    from spmilp.solvers.schedule.kernels.records import NEVER, NONE
    from spmilp.solvers.schedule.kernels.timeline import occupy

    CBooking, CCopy = Booking, Copy
    bypass_at = schedule_in = options_in = timeline_in = whole


def _without_unused_transfers(
    context: ScheduleContext, schedule: PartialOrderSchedule
) -> PartialOrderSchedule:
    """Drop transfers that fill what nobody reads and nobody keeps."""
    droppable = ~context.is_dram | context.dram_is_free
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
        schedule = _without_dropped_reads(
            schedule._replace(cycles=np.where(needed, schedule.cycles, 0))
        )


def _without_dropped_reads(schedule: PartialOrderSchedule) -> PartialOrderSchedule:
    """Let dropped transfers read nothing."""
    owners = owners_of(schedule.reads)
    kept = schedule.cycles[owners] > 0
    reads = rows_from_pairs(owners[kept], schedule.reads.items[kept], schedule.cycles.size)
    return schedule._replace(reads=reads, readers=inverted(reads, schedule.filler.size))


MOST_CHANGES = 1000
"""Most changes in one go: profiles need room for each."""


class _Bypass(NamedTuple):
    """All that a decision looks at, and what has changed by then.

    At most ``limit`` bytes of each memory may be in use; ``NEVER`` for no limit. ``holders`` are
    the residencies of each slice; ``usage`` is what resources carry, ``occupancy`` the bytes in
    use. Of each activity there are ``start`` and ``cycles``; of each transfer its ``source``, what
    it reads, and its ``option``, -1 where it goes as before; of each residency when it ``begins``,
    is ``valid``, has its ``first_use``, and ``ends``.
    """

    schedule: PartialOrderSchedule
    options: OptionTables
    limit: Ints
    holders: Rows
    is_dram: Flags
    usage: Timeline
    occupancy: Timeline
    start: Ints
    cycles: Ints
    source: Ints
    option: Ints
    begins: Ints
    valid: Ints
    first_use: Ints
    ends: Ints
    activities: int
    residencies: int


def with_dram_bypassed(
    context: ScheduleContext, before: TimedSchedule, limit: Ints
) -> TimedSchedule:
    """Return a schedule with fewer loads from DRAM.

    Only what moved from a DRAM starts at another cycle than before, and is there in time.
    """
    if context.keeps_transfers:
        return before
    schedule, start = before.schedule, before.start
    begins, ends = before.lifetimes()
    there = np.flatnonzero((schedule.slice != NONE) & (ends > begins))
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    moves = moves[np.argsort(start[moves], kind="stable")]
    source = np.full(start.size, NONE, np.int64)
    source[moves] = schedule.reads.items[schedule.reads.begin[moves]]
    first_use = np.full(schedule.filler.size, NEVER)
    np.minimum.at(first_use, owners_of(schedule.readers), start[schedule.readers.items])
    state = _Bypass(
        schedule=schedule,
        options=context.options,
        limit=limit,
        holders=rows_from_pairs(schedule.slice[there], there, context.options.slices.size),
        is_dram=context.is_dram,
        usage=profiles_of_resources(schedule, MOST_CHANGES),
        occupancy=profiles_of_memories(schedule, limit.size, MOST_CHANGES),
        start=start.copy(),
        cycles=schedule.cycles.copy(),
        source=source,
        option=np.full(start.size, NONE, np.int64),
        begins=begins,
        valid=np.where(schedule.filler != NONE, (start + schedule.cycles)[schedule.filler], 0),
        first_use=first_use,
        ends=ends,
        activities=start.size,
        residencies=schedule.filler.size,
    )
    kept = in_c(state)
    bypass, sequence = bypass_at(address(kept)), longs_at(address(moves))
    count, most = whole(moves.size), whole(MOST_CHANGES)
    with cython.nogil:
        changes = _bypass_dram(bypass, sequence, count, most)
    if changes == 0:
        return before
    changed = _without_unused_transfers(context, _changed(state))
    return TimedSchedule(changed, state.start, before.makespan)


def _changed(state: _Bypass) -> PartialOrderSchedule:
    """Return a schedule with the new sources and transfer options."""
    schedule, changed = state.schedule, np.flatnonzero(state.option != NONE)
    options = state.options
    reads = schedule.reads.items.copy()
    reads[schedule.reads.begin[changed]] = state.source[changed]
    return _without_dropped_reads(
        schedule._replace(
            cycles=state.cycles,
            latency=np.where(
                state.option == NONE, schedule.latency, options.options["latency"][state.option]
            ),
            reads=schedule.reads._replace(items=reads),
            demands=_with_options(schedule.demands, options.demands, state.option),
        )
    )


def _with_options(before: Demands, options: Demands, option: Ints) -> Demands:
    """Return demands of activities, of which some take an option instead."""
    is_changed = option != NONE
    first = np.where(is_changed, options.begin[option] + before.items.size, before.begin[:-1])
    length = np.where(is_changed, np.diff(options.begin)[option], np.diff(before.begin))
    of_both = (np.append(*both) for both in zip(before[1:], options[1:], strict=True))
    columns = [ranges_of(column, first, length) for column in of_both]
    return Demands(columns[0].begin, *(column.items for column in columns))


def _bypass_dram(state: _Bypass, moves: Ints, count: int, most: int) -> int:
    """Change up to ``most`` loads among ``count`` transfers; return how many."""
    schedule = schedule_in(state.schedule)
    for act in range(state.activities):
        if state.cycles[act] > 0:
            _hold(state, act, 1)
    for residency in range(state.residencies):
        _fill(state, residency, state.begins[residency], state.ends[residency], 1)
    changes = 0
    for place in range(count):
        act = moves[place]
        first, past = schedule.fills.begin[act], schedule.fills.begin[act + 1]
        new = schedule.fills.items[first]
        from_dram = state.is_dram[schedule.memory[state.source[act]]]
        is_load = from_dram and not state.is_dram[schedule.memory[new]]
        if changes < most and is_load and past - first == 1 and state.first_use[new] < NEVER:
            changes += _load_from_scratchpad(state, act, new)
    return changes


def _hold(state: _Bypass, act: int, sign: int) -> None:
    """Take what an activity held before all changes, or give it back with ``sign`` -1."""
    end = state.start[act] + state.cycles[act]
    hold(state.schedule.demands, timeline_in(state.usage), act, state.start[act], end, sign)


def _fill(state: _Bypass, residency: int, first: int, until: int, sign: int) -> None:
    """Take the bytes of a residency from ``first`` to ``until``, or give them back."""
    memory = state.schedule.memory[residency]
    if until > first and state.limit[memory] != NEVER:
        size = sign * taken(schedule_in(state.schedule), residency, memory)
        occupy(timeline_in(state.occupancy), memory, first, until, size)


def _load_from_scratchpad(state: _Bypass, act: int, new: int) -> int:
    """Let a load come from where the slice is kept longer for the fewest bytes and cycles."""
    schedule, options = schedule_in(state.schedule), options_in(state.options)
    usage, occupancy = timeline_in(state.usage), timeline_in(state.occupancy)
    what = schedule.moved_slice[act]
    buffer = options.slices[what].buffer
    _hold(state, act, -1)
    best, best_cost, booking = NONE, NEVER, CBooking(NONE, 0, 0)
    for form in range(WHOLE, AT_PLACE):  # from its own copies, then out of whole buffers
        if form == PART and what == buffer:
            continue
        of = what if form == WHOLE else buffer
        for i in range(state.holders.begin[of], state.holders.begin[of + 1]):
            holder = state.holders.items[i]
            memory = schedule.memory[holder]
            pair = options.pair_at[memory * options.memories + schedule.memory[new]]
            if pair == NONE or holder == new or state.limit[memory] == NEVER:
                continue
            ready, by = max(state.valid[holder], state.start[act]), state.first_use[new]
            if schedule.overwritten_by[holder] != NONE:
                by = min(by, state.start[schedule.filler[schedule.overwritten_by[holder]]])
            copy = CCopy(pair, what, form, ready, by)
            found = earliest_option(options, schedule.capacity, usage, copy)
            if found.option == NONE:
                continue
            ends, size = state.ends[holder], taken(schedule, holder, memory)
            sent = found.end - options.options[found.option].latency
            cost = max(0, sent - ends) * schedule.bytes[holder]
            if cost >= best_cost:
                continue
            if cost == 0 or has_capacity(occupancy, state.limit, memory, ends, sent, size):
                best, best_cost, booking = holder, cost, found
    if best == NONE:
        _hold(state, act, 1)
        return 0
    sent = booking.end - options.options[booking.option].latency
    _fill(state, best, state.ends[best], sent, 1)
    _fill(state, new, state.begins[new], booking.start, -1)
    hold(options.demands, usage, booking.option, booking.start, booking.end, 1)
    state.ends[best] = max(state.ends[best], sent)
    state.first_use[best] = min(state.first_use[best], booking.start)
    state.begins[new], state.valid[new] = booking.start, booking.end
    state.start[act], state.cycles[act] = booking.start, booking.end - booking.start
    state.source[act], state.option[act] = best, booking.option
    return 1
