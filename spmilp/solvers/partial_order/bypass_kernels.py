"""Transfers to and from DRAM become copies between scratchpads with capacity. Compiled."""

from typing import NamedTuple

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NONE, ONE, ZERO, Ints, Rows
from spmilp.solvers.kernels.timeline import Timeline, occupy
from spmilp.solvers.partial_order.profiles import has_capacity, hold
from spmilp.solvers.partial_order.schedule import Flags, PartialOrderSchedule, taken
from spmilp.solvers.partial_order.transfer_options import (
    Booking,
    Copy,
    OptionTables,
    earliest_option,
    hold_option,
)


class Changes(NamedTuple):
    """The times and places of a schedule, which change.

    Attributes
    ----------
    start, cycles
        Of each activity.
    source
        What each transfer reads.
    pair, option
        The transfer option of each transfer; -1 where it goes as before.
    begins, valid, first_use, ends, memory
        Of each residency.
    """

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


class BypassState(NamedTuple):
    """All that a decision looks at.

    Attributes
    ----------
    schedule, start
        What was before.
    limit
        Bytes of each memory that may be in use; ``NEVER`` for no limit.
    holders
        The residencies of each slice.
    may_leave
        The residencies that may lie in another memory.
    usage, occupancy
        What resources carry, and the bytes in use.
    """

    schedule: PartialOrderSchedule
    options: OptionTables
    limit: Ints
    start: Ints
    holders: Rows
    is_dram: Flags
    may_leave: Flags
    usage: Timeline
    occupancy: Timeline
    changes: Changes


@kernel
def bypass_dram(state: BypassState, moves: Ints, most: int) -> int:
    """Change up to ``most`` transfers, first loads and then what is stored; return how many."""
    schedule, now = state.schedule, state.changes
    for act in range(now.start.size):
        if now.cycles[act] > 0:
            _hold(state, act, ONE)
    for residency in range(now.memory.size):
        if (
            state.limit[now.memory[residency]] != NEVER
            and now.ends[residency] > now.begins[residency]
        ):
            _fill(state, residency, now.begins[residency], now.ends[residency], ONE)
    count = ZERO
    for act in moves:
        new = schedule.fills.items[schedule.fills.begin[act]]
        is_load = state.is_dram[now.memory[now.source[act]]] and not state.is_dram[now.memory[new]]
        if (
            count < most
            and is_load
            and _has_one_destination(schedule, act)
            and now.first_use[new] < NEVER
        ):
            count += _load_from_scratchpad(state, act, new)
    for act in moves:
        new = schedule.fills.items[schedule.fills.begin[act]]
        is_store = state.is_dram[now.memory[new]] and state.may_leave[new]
        if count < most and is_store and _has_one_destination(schedule, act):
            count += _store_in_scratchpad(state, act, new)
    return count


@part
def _has_one_destination(schedule: PartialOrderSchedule, act: int) -> bool:
    is_one: bool = schedule.fills.begin[act + 1] - schedule.fills.begin[act] == 1
    return is_one


@part
def _hold(state: BypassState, act: int, sign: int) -> None:
    """Take what an activity held before all changes, or give it back with ``sign`` -1."""
    hold(state.schedule, state.usage, act, state.start[act], sign)


@part
def _fill(state: BypassState, residency: int, first: int, until: int, sign: int) -> None:
    """Take the bytes of a residency from ``first`` to ``until``, or give them back."""
    if until > first:
        memory = state.changes.memory[residency]
        size = sign * taken(state.schedule, residency, memory)
        occupy(state.occupancy, memory, first, until, size)


@part
def _has_capacity(state: BypassState, residency: int, memory: int, first: int, until: int) -> bool:
    """Say whether a residency fits in a memory from ``first`` to ``until``."""
    size = taken(state.schedule, residency, memory)
    return has_capacity(state.occupancy, state.limit, memory, first, until, size)


@part
def _load_from_scratchpad(state: BypassState, act: int, new: int) -> int:
    """Let a load come from where the slice is kept longer for the fewest bytes and cycles."""
    schedule, now = state.schedule, state.changes
    what = schedule.moved_slice[act]
    buffer = state.options.slices[what].buffer
    _hold(state, act, -ONE)
    best, best_cost, best_booking = NONE, NEVER, Booking(NONE, ZERO, ZERO)
    for of in (what, buffer):
        for i in range(state.holders.begin[of], state.holders.begin[of + 1]):
            holder = state.holders.items[i]
            memory = now.memory[holder]
            pair = state.options.pair_at[memory, now.memory[new]]
            if pair == NONE or holder == new or state.limit[memory] == NEVER:
                continue
            ready, by = max(now.valid[holder], now.start[act]), now.first_use[new]
            if schedule.overwritten_by[holder] != NONE:
                by = min(by, now.start[schedule.filler[schedule.overwritten_by[holder]]])
            copy = Copy(pair, what, of != what, ready, by)
            booking = earliest_option(schedule, state.options, state.usage, copy)
            if booking.option == NONE:
                continue
            cost = max(ZERO, booking.end - now.ends[holder]) * schedule.bytes[holder]
            if cost >= best_cost:
                continue
            if cost == 0 or _has_capacity(state, holder, memory, now.ends[holder], booking.end):
                best, best_cost, best_booking = holder, cost, booking
        if what == buffer:
            break
    if best == NONE:
        _hold(state, act, ONE)
        return ZERO
    _fill(state, best, now.ends[best], best_booking.end, ONE)
    now.ends[best] = max(now.ends[best], best_booking.end)
    _fill(state, new, now.begins[new], best_booking.start, -ONE)
    _book(state, act, new, best, best_booking)
    return ONE


@part
def _book(state: BypassState, act: int, new: int, source: int, booking: Booking) -> None:
    """Write down from where, how and when a transfer fills ``new``."""
    now = state.changes
    pair = state.options.pair_at[now.memory[source], now.memory[new]]
    hold_option(state.options, state.usage, pair, booking, ONE)
    now.begins[new], now.valid[new] = booking.start, booking.end
    now.first_use[source] = min(now.first_use[source], booking.start)
    now.start[act], now.cycles[act] = booking.start, booking.end - booking.start
    now.source[act], now.pair[act], now.option[act] = source, pair, booking.option


@part
def _store_in_scratchpad(state: BypassState, act: int, new: int) -> int:
    """Let what is stored and loaded again wait in the next scratchpad with capacity."""
    schedule, now = state.schedule, state.changes
    last_load = NONE
    for i in range(schedule.readers.begin[new], schedule.readers.begin[new + 1]):
        reader = schedule.readers.items[i]
        if schedule.moved_slice[reader] == NONE or not _has_one_destination(schedule, reader):
            return ZERO
        if now.source[reader] == new:
            last_load = max(last_load, now.start[reader])
    if last_load == NONE:
        return ZERO
    dram, first = now.memory[new], now.start[act]
    for k in range(1, state.limit.size):
        memory = (now.memory[now.source[act]] + k) % state.limit.size
        if state.limit[memory] == NEVER:
            continue
        if _has_capacity(state, new, memory, first, last_load):
            now.memory[new] = memory
            if _store_and_load_there(state, act, new):
                return ONE
            now.memory[new] = dram
    return ZERO


@part
def _store_and_load_there(state: BypassState, act: int, new: int) -> bool:
    """Let a store, and the loads of what it stores, be copies, if all of them are in time."""
    schedule, now = state.schedule, state.changes
    readers = schedule.readers
    # What is stored need not be there longer than it was.
    by = min(now.first_use[new], now.start[act] + now.cycles[act])
    done = _copy_instead(state, act, now.source[act], new, by)
    until = now.valid[new]
    for i in range(readers.begin[new], readers.begin[new + 1]):
        reader = readers.items[i]
        if done and now.source[reader] == new:
            loaded = schedule.fills.items[schedule.fills.begin[reader]]
            done = _copy_instead(state, reader, new, loaded, now.first_use[loaded])
            until = max(until, now.valid[loaded])
    if done and _has_capacity(state, new, now.memory[new], now.begins[new], until):
        now.ends[new] = until
        _fill(state, new, now.begins[new], until, ONE)
        for i in range(readers.begin[new], readers.begin[new + 1]):
            reader = readers.items[i]
            if now.source[reader] == new:
                loaded = schedule.fills.items[schedule.fills.begin[reader]]
                _fill(state, loaded, state.start[reader], now.begins[loaded], -ONE)
        return True
    _restore(state, act, new)
    for i in range(readers.begin[new], readers.begin[new + 1]):
        reader = readers.items[i]
        if now.source[reader] == new:
            _restore(state, reader, schedule.fills.items[schedule.fills.begin[reader]])
    return False


@part
def _copy_instead(state: BypassState, act: int, source: int, new: int, by: int) -> bool:
    """Let a transfer be a copy that ends by a cycle; say whether there is one."""
    now = state.changes
    pair = state.options.pair_at[now.memory[source], now.memory[new]]
    if pair == NONE:
        return False
    what = state.schedule.moved_slice[act]
    ready = max(now.valid[source], now.start[act])
    copy = Copy(pair, what, state.schedule.slice[source] != what, ready, by)
    _hold(state, act, -ONE)
    booking = earliest_option(state.schedule, state.options, state.usage, copy)
    if booking.option == NONE:
        _hold(state, act, ONE)
        return False
    _book(state, act, new, source, booking)
    return True


@part
def _restore(state: BypassState, act: int, new: int) -> None:
    """Take back what :func:`_copy_instead` has decided."""
    now = state.changes
    if now.pair[act] == NONE:
        return
    booking = Booking(now.option[act], now.start[act], now.start[act] + now.cycles[act])
    hold_option(state.options, state.usage, now.pair[act], booking, -ONE)
    now.pair[act], now.option[act] = NONE, NONE
    now.start[act], now.cycles[act] = state.start[act], state.schedule.cycles[act]
    now.begins[new], now.valid[new] = now.start[act], now.start[act] + now.cycles[act]
    _hold(state, act, ONE)
