"""Transfers that a plan can do without, or that need not go through DRAM.

- A slice that is given up and loaded again stays, where there is capacity.
- Slices come from scratchpads that hold them, and wait in some that have capacity. What most plans
  of whole networks wait for are the ports of DRAM, while a third or more of all scratchpad bytes,
  and most of the links between scratchpads, are idle. Only transfers change, within the cycles that
  they have, so no plan gets longer; the next passes use what has become free.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.justify.context import ScheduleContext
from spmilp.solvers.justify.schedule import (
    Flags,
    PartialOrderSchedule,
    TimedSchedule,
    has_capacity,
    hold,
    profiles_of_memories,
    profiles_of_resources,
    taken,
)
from spmilp.solvers.justify.transfer_options import (
    PART,
    WHOLE,
    Booking,
    Copy,
    OptionTables,
    earliest_option,
    hold_option,
)
from spmilp.solvers.schedule.kernels.records import (
    NEVER,
    NONE,
    ONE,
    ZERO,
    Ints,
    Rows,
    inverted,
    owners_of,
    rows_from_pairs,
)
from spmilp.solvers.schedule.kernels.timeline import Timeline, occupy


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
    """Residencies that become one with an earlier one; itself for most (``merged_into``).

    An activity ``is_alone`` where it fills one residency only.
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
        if schedule.lasting[residency]:
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


MOST_CHANGES = 1000
"""Most changes in one go: profiles need room for each."""


class _Bypass(NamedTuple):
    """All that a decision looks at, and what has changed by then.

    Attributes
    ----------
    schedule, old
        What was before; and its start cycles.
    limit
        Bytes of each memory that may be in use; ``NEVER`` for no limit.
    holders
        The residencies of each slice.
    may_leave
        The residencies that may lie in another memory.
    usage, occupancy
        What resources carry, and the bytes in use.
    start, cycles
        Now, of each activity.
    source, pair, option
        What each transfer reads, and its transfer option; -1 where it goes as before.
    begins, valid, first_use, ends, memory
        Of each residency.
    """

    schedule: PartialOrderSchedule
    options: OptionTables
    limit: Ints
    holders: Rows
    is_dram: Flags
    may_leave: Flags
    usage: Timeline
    occupancy: Timeline
    old: Ints
    start: Ints
    cycles: Ints
    source: Ints
    pair: Ints
    option: Ints
    begins: Ints
    valid: Ints
    first_use: Ints
    ends: Ints
    memory: Ints


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
    source = np.full(start.size, NONE, np.int64)
    reads_some = np.flatnonzero(np.diff(schedule.reads.begin) > 0)
    source[reads_some] = schedule.reads.items[schedule.reads.begin[reads_some]]
    first_use = np.full(schedule.filler.size, np.iinfo(np.int64).max)
    np.minimum.at(first_use, owners_of(schedule.readers), start[schedule.readers.items])
    state = _Bypass(
        schedule=schedule,
        options=context.options,
        limit=limit,
        holders=rows_from_pairs(schedule.slice[there], there, context.options.slices.size),
        is_dram=context.is_dram,
        may_leave=is_there & (context.homes == NONE) & (schedule.lasting == 0),
        usage=profiles_of_resources(schedule, MOST_CHANGES),
        occupancy=profiles_of_memories(schedule, limit.size, MOST_CHANGES),
        old=start,
        start=start.copy(),
        cycles=schedule.cycles.copy(),
        source=source,
        pair=np.full(start.size, NONE, np.int64),
        option=np.full(start.size, NONE, np.int64),
        begins=begins,
        valid=np.where(schedule.filler != NONE, (start + schedule.cycles)[schedule.filler], 0),
        first_use=first_use,
        ends=ends,
        memory=schedule.memory.copy(),
    )
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    moves = moves[np.argsort(start[moves], kind="stable")]
    if _bypass_dram(state, moves, MOST_CHANGES) == 0:
        return before
    changed = without_unused_transfers(context, _changed(state))
    return TimedSchedule(changed, state.start, before.makespan)


def _changed(state: _Bypass) -> PartialOrderSchedule:
    """Return a schedule with the new sources, transfer options and memories."""
    schedule, options = state.schedule, state.options
    acts = np.flatnonzero(state.pair != NONE)
    source = schedule.reads.items.copy()
    source[schedule.reads.begin[acts]] = state.source[acts]
    owners = owners_of(schedule.demands)
    stays = state.pair[owners] == NONE
    holders, demands = [owners[stays]], [schedule.demands.items[stays]]
    amounts = [schedule.amounts[stays]]
    for act in acts.tolist():
        resources, held = options.demands_of(state.pair[act], state.option[act])
        demands.append(resources)
        amounts.append(held)
        holders.append(np.full(resources.size, act))
    owner = np.concatenate(holders)
    return without_dropped_reads(
        schedule._replace(
            cycles=state.cycles,
            reads=schedule.reads._replace(items=source),
            memory=state.memory,
            demands=rows_from_pairs(owner, np.concatenate(demands), schedule.cycles.size),
            amounts=np.concatenate(amounts)[np.argsort(owner, kind="stable")],
        )
    )


@kernel
def _bypass_dram(state: _Bypass, moves: Ints, most: int) -> int:
    """Change up to ``most`` transfers, first loads and then what is stored; return how many."""
    schedule = state.schedule
    for act in range(state.start.size):
        if state.cycles[act] > 0:
            _hold(state, act, ONE)
    for residency in range(state.memory.size):
        if (
            state.limit[state.memory[residency]] != NEVER
            and state.ends[residency] > state.begins[residency]
        ):
            _fill(state, residency, state.begins[residency], state.ends[residency], ONE)
    count = ZERO
    for act in moves:
        new = schedule.fills.items[schedule.fills.begin[act]]
        source, target = state.memory[state.source[act]], state.memory[new]
        is_load = state.is_dram[source] and not state.is_dram[target]
        is_alone = _has_one_destination(schedule, act)
        if count < most and is_load and is_alone and state.first_use[new] < NEVER:
            count += _load_from_scratchpad(state, act, new)
    for act in moves:
        new = schedule.fills.items[schedule.fills.begin[act]]
        is_store = state.is_dram[state.memory[new]] and state.may_leave[new]
        if count < most and is_store and _has_one_destination(schedule, act):
            count += _store_in_scratchpad(state, act, new)
    return count


@part
def _has_one_destination(schedule: PartialOrderSchedule, act: int) -> bool:
    is_one: bool = schedule.fills.begin[act + 1] - schedule.fills.begin[act] == 1
    return is_one


@part
def _hold(state: _Bypass, act: int, sign: int) -> None:
    """Take what an activity held before all changes, or give it back with ``sign`` -1."""
    hold(state.schedule, state.usage, act, state.old[act], sign)


@part
def _fill(state: _Bypass, residency: int, first: int, until: int, sign: int) -> None:
    """Take the bytes of a residency from ``first`` to ``until``, or give them back."""
    if until > first:
        memory = state.memory[residency]
        size = sign * taken(state.schedule, residency, memory)
        occupy(state.occupancy, memory, first, until, size)


@part
def _has_capacity(state: _Bypass, residency: int, memory: int, first: int, until: int) -> bool:
    """Say whether a residency fits in a memory from ``first`` to ``until``."""
    size = taken(state.schedule, residency, memory)
    return has_capacity(state.occupancy, state.limit, memory, first, until, size)


@part
def _load_from_scratchpad(state: _Bypass, act: int, new: int) -> int:
    """Let a load come from where the slice is kept longer for the fewest bytes and cycles."""
    schedule = state.schedule
    what = schedule.moved_slice[act]
    buffer = state.options.slices[what].buffer
    _hold(state, act, -ONE)
    best, best_cost, best_booking = NONE, NEVER, Booking(NONE, ZERO, ZERO)
    for of in (what, buffer):
        for i in range(state.holders.begin[of], state.holders.begin[of + 1]):
            holder = state.holders.items[i]
            memory = state.memory[holder]
            pair = state.options.pair_at[memory, state.memory[new]]
            if pair == NONE or holder == new or state.limit[memory] == NEVER:
                continue
            ready, by = max(state.valid[holder], state.start[act]), state.first_use[new]
            if schedule.overwritten_by[holder] != NONE:
                by = min(by, state.start[schedule.filler[schedule.overwritten_by[holder]]])
            copy = Copy(pair, what, WHOLE if of == what else PART, ready, by)
            booking = earliest_option(schedule, state.options, state.usage, copy)
            if booking.option == NONE:
                continue
            cost = max(ZERO, booking.end - state.ends[holder]) * schedule.bytes[holder]
            if cost >= best_cost:
                continue
            if cost == 0 or _has_capacity(state, holder, memory, state.ends[holder], booking.end):
                best, best_cost, best_booking = holder, cost, booking
        if what == buffer:
            break
    if best == NONE:
        _hold(state, act, ONE)
        return ZERO
    _fill(state, best, state.ends[best], best_booking.end, ONE)
    state.ends[best] = max(state.ends[best], best_booking.end)
    _fill(state, new, state.begins[new], best_booking.start, -ONE)
    _book(state, act, new, best, best_booking)
    return ONE


@part
def _book(state: _Bypass, act: int, new: int, source: int, booking: Booking) -> None:
    """Write down from where, how and when a transfer fills ``new``."""
    pair = state.options.pair_at[state.memory[source], state.memory[new]]
    hold_option(state.options, state.usage, pair, booking, ONE)
    state.begins[new], state.valid[new] = booking.start, booking.end
    state.first_use[source] = min(state.first_use[source], booking.start)
    state.start[act], state.cycles[act] = booking.start, booking.end - booking.start
    state.source[act], state.pair[act], state.option[act] = source, pair, booking.option


@part
def _store_in_scratchpad(state: _Bypass, act: int, new: int) -> int:
    """Let what is stored and loaded again wait in the next scratchpad with capacity."""
    schedule = state.schedule
    last_load = NONE
    for i in range(schedule.readers.begin[new], schedule.readers.begin[new + 1]):
        reader = schedule.readers.items[i]
        if schedule.moved_slice[reader] == NONE or not _has_one_destination(schedule, reader):
            return ZERO
        if state.source[reader] == new:
            last_load = max(last_load, state.start[reader])
    if last_load == NONE:
        return ZERO
    dram, first = state.memory[new], state.start[act]
    for k in range(1, state.limit.size):
        memory = (state.memory[state.source[act]] + k) % state.limit.size
        if state.limit[memory] == NEVER:
            continue
        if _has_capacity(state, new, memory, first, last_load):
            state.memory[new] = memory
            if _store_and_load_there(state, act, new):
                return ONE
            state.memory[new] = dram
    return ZERO


@part
def _store_and_load_there(state: _Bypass, act: int, new: int) -> bool:
    """Let a store, and the loads of what it stores, be copies, if all of them are in time."""
    schedule = state.schedule
    readers = schedule.readers
    # What is stored need not be there longer than it was.
    by = min(state.first_use[new], state.start[act] + state.cycles[act])
    done = _copy_instead(state, act, state.source[act], new, by)
    until = state.valid[new]
    for i in range(readers.begin[new], readers.begin[new + 1]):
        reader = readers.items[i]
        if done and state.source[reader] == new:
            loaded = schedule.fills.items[schedule.fills.begin[reader]]
            done = _copy_instead(state, reader, new, loaded, state.first_use[loaded])
            until = max(until, state.valid[loaded])
    if done and _has_capacity(state, new, state.memory[new], state.begins[new], until):
        state.ends[new] = until
        _fill(state, new, state.begins[new], until, ONE)
        for i in range(readers.begin[new], readers.begin[new + 1]):
            reader = readers.items[i]
            if state.source[reader] == new:
                loaded = schedule.fills.items[schedule.fills.begin[reader]]
                _fill(state, loaded, state.old[reader], state.begins[loaded], -ONE)
        return True
    _restore(state, act, new)
    for i in range(readers.begin[new], readers.begin[new + 1]):
        reader = readers.items[i]
        if state.source[reader] == new:
            _restore(state, reader, schedule.fills.items[schedule.fills.begin[reader]])
    return False


@part
def _copy_instead(state: _Bypass, act: int, source: int, new: int, by: int) -> bool:
    """Let a transfer be a copy that ends by a cycle; say whether there is one."""
    pair = state.options.pair_at[state.memory[source], state.memory[new]]
    if pair == NONE:
        return False
    what = state.schedule.moved_slice[act]
    ready = max(state.valid[source], state.start[act])
    form = WHOLE if state.schedule.slice[source] == what else PART
    copy = Copy(pair, what, form, ready, by)
    _hold(state, act, -ONE)
    booking = earliest_option(state.schedule, state.options, state.usage, copy)
    if booking.option == NONE:
        _hold(state, act, ONE)
        return False
    _book(state, act, new, source, booking)
    return True


@part
def _restore(state: _Bypass, act: int, new: int) -> None:
    """Take back what :func:`_copy_instead` has decided."""
    if state.pair[act] == NONE:
        return
    booking = Booking(state.option[act], state.start[act], state.start[act] + state.cycles[act])
    hold_option(state.options, state.usage, state.pair[act], booking, -ONE)
    state.pair[act], state.option[act] = NONE, NONE
    state.start[act], state.cycles[act] = state.old[act], state.schedule.cycles[act]
    state.begins[new], state.valid[new] = state.start[act], state.start[act] + state.cycles[act]
    _hold(state, act, ONE)
