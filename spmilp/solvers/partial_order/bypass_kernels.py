"""Transfers to and from DRAM become copies between scratchpads where these have room. Compiled."""

from typing import NamedTuple

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NONE, ONE, ZERO, Ints, Rows
from spmilp.solvers.kernels.timeline import Timeline, occupy, step_at
from spmilp.solvers.partial_order.schedule import Flags, PartialOrderSchedule
from spmilp.solvers.partial_order.transfer_options import OptionTables, earliest_option, hold_option


class Changes(NamedTuple):
    """The times and places of a schedule, which change.

    Attributes
    ----------
    start, cycles
        Of each activity.
    source, pair, way
        What each transfer reads; how it goes, -1 where it goes as before.
    begins, valid, first_use, ends, memory
        Of each residency.
    """

    start: Ints
    cycles: Ints
    source: Ints
    pair: Ints
    way: Ints
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
    line, room
        What resources carry, and the bytes in use.
    """

    schedule: PartialOrderSchedule
    options: OptionTables
    limit: Ints
    start: Ints
    holders: Rows
    is_dram: Flags
    may_leave: Flags
    line: Timeline
    room: Timeline
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
        if count < most and is_load and _is_for_one(schedule, act) and now.first_use[new] < NEVER:
            count += _comes_from_a_scratchpad(state, act, new)
    for act in moves:
        new = schedule.fills.items[schedule.fills.begin[act]]
        is_store = state.is_dram[now.memory[new]] and state.may_leave[new]
        if count < most and is_store and _is_for_one(schedule, act):
            count += _waits_in_a_scratchpad(state, act, new)
    return count


@part
def _is_for_one(schedule: PartialOrderSchedule, act: int) -> bool:
    is_one: bool = schedule.fills.begin[act + 1] - schedule.fills.begin[act] == 1
    return is_one


@part
def _hold(state: BypassState, act: int, sign: int) -> None:
    """Take what an activity residency before all changes, or give it back with ``sign`` -1."""
    demands, start = state.schedule.demands, state.start[act]
    for i in range(demands.begin[act], demands.begin[act + 1]):
        end = start + state.schedule.cycles[act]
        occupy(state.line, demands.items[i], start, end, sign * state.schedule.amounts[i])


@part
def _fill(state: BypassState, residency: int, first: int, until: int, sign: int) -> None:
    """Take the bytes of a residency from ``first`` to ``until``, or give them back."""
    if until > first:
        size = sign * state.schedule.bytes[residency]
        occupy(state.room, state.changes.memory[residency], first, until, size)


@part
def _has_room(state: BypassState, memory: int, first: int, until: int, need: int) -> bool:
    """Say whether so many bytes of a memory are free from ``first`` to ``until``."""
    steps, row = state.room.steps, state.room.resources[memory]
    step = step_at(state.room, memory, first)
    past = row.begin + row.length
    while step < past and steps[step].time < until:
        if steps[step].load + need > state.limit[memory]:
            return False
        step += 1
    return True


@part
def _comes_from_a_scratchpad(state: BypassState, act: int, new: int) -> int:
    """Let a load come from where the slice is kept longer for the fewest bytes and cycles."""
    schedule, now = state.schedule, state.changes
    what = schedule.moved_slice[act]
    buffer = state.options.slices[what].buffer
    _hold(state, act, -ONE)
    best, best_cost, best_way, best_start, best_end = NONE, NEVER, NONE, ZERO, ZERO
    for of in (what, buffer):
        for i in range(state.holders.begin[of], state.holders.begin[of + 1]):
            residency = state.holders.items[i]
            memory = now.memory[residency]
            pair = state.options.pair_at[memory, now.memory[new]]
            ready, by = max(now.valid[residency], now.start[act]), now.first_use[new]
            if pair == NONE or residency == new or state.limit[memory] == NEVER:
                continue
            if schedule.overwritten_by[residency] != NONE:
                by = min(by, now.start[schedule.filler[schedule.overwritten_by[residency]]])
            way, start, end = earliest_option(
                schedule, state.options, state.line, pair, what, ready, by, of != what
            )
            if way == NONE:
                continue
            cost = max(ZERO, end - now.ends[residency]) * schedule.bytes[residency]
            if cost >= best_cost:
                continue
            if cost == 0 or _has_room(
                state, memory, now.ends[residency], end, schedule.bytes[residency]
            ):
                best, best_cost, best_way, best_start, best_end = residency, cost, way, start, end
        if what == buffer:
            break
    if best == NONE:
        _hold(state, act, ONE)
        return ZERO
    _fill(state, best, now.ends[best], best_end, ONE)
    now.ends[best] = max(now.ends[best], best_end)
    _fill(state, new, now.begins[new], best_start, -ONE)
    _go(state, act, new, best, best_way, best_start, best_end)
    return ONE


@part
def _go(
    state: BypassState, act: int, new: int, source: int, way: int, start: int, end: int
) -> None:
    """Write down how and when a transfer goes."""
    now = state.changes
    pair = state.options.pair_at[now.memory[source], now.memory[new]]
    hold_option(state.options, state.line, pair, way, start, end, ONE)
    now.begins[new], now.valid[new] = start, end
    now.first_use[source] = min(now.first_use[source], start)
    now.start[act], now.cycles[act] = start, end - start
    now.source[act], now.pair[act], now.way[act] = source, pair, way


@part
def _waits_in_a_scratchpad(state: BypassState, act: int, new: int) -> int:
    """Let what is stored and loaded again wait in the next memory with room."""
    schedule, now = state.schedule, state.changes
    last_load = NONE
    for i in range(schedule.readers.begin[new], schedule.readers.begin[new + 1]):
        user = schedule.readers.items[i]
        if schedule.moved_slice[user] == NONE or not _is_for_one(schedule, user):
            return ZERO
        if now.source[user] == new:
            last_load = max(last_load, now.start[user])
    if last_load == NONE:
        return ZERO
    dram, first = now.memory[new], now.start[act]
    for k in range(1, state.limit.size):
        memory = (now.memory[now.source[act]] + k) % state.limit.size
        if state.limit[memory] == NEVER:
            continue
        if _has_room(state, memory, first, last_load, schedule.bytes[new]):
            now.memory[new] = memory
            if _all_go_there(state, act, new):
                return ONE
            now.memory[new] = dram
    return ZERO


@part
def _all_go_there(state: BypassState, act: int, new: int) -> bool:
    """Let a store, and the loads of what it stores, be copies, if all of them are in time."""
    schedule, now = state.schedule, state.changes
    readers = schedule.readers
    # What is stored need not be there longer than it was.
    by = min(now.first_use[new], now.start[act] + now.cycles[act])
    done = _goes_there(state, act, now.source[act], new, by)
    until = now.valid[new]
    for i in range(readers.begin[new], readers.begin[new + 1]):
        user = readers.items[i]
        if done and now.source[user] == new:
            copy = schedule.fills.items[schedule.fills.begin[user]]
            done = _goes_there(state, user, new, copy, now.first_use[copy])
            until = max(until, now.valid[copy])
    if done and _has_room(state, now.memory[new], now.begins[new], until, schedule.bytes[new]):
        now.ends[new] = until
        _fill(state, new, now.begins[new], until, ONE)
        for i in range(readers.begin[new], readers.begin[new + 1]):
            user = readers.items[i]
            if now.source[user] == new:
                copy = schedule.fills.items[schedule.fills.begin[user]]
                _fill(state, copy, state.start[user], now.begins[copy], -ONE)
        return True
    _goes_as_before(state, act, new)
    for i in range(readers.begin[new], readers.begin[new + 1]):
        user = readers.items[i]
        if now.source[user] == new:
            _goes_as_before(state, user, schedule.fills.items[schedule.fills.begin[user]])
    return False


@part
def _goes_there(state: BypassState, act: int, source: int, new: int, by: int) -> bool:
    """Let a transfer be a copy that ends by a cycle; say whether there is one."""
    now = state.changes
    pair = state.options.pair_at[now.memory[source], now.memory[new]]
    if pair == NONE:
        return False
    what = state.schedule.moved_slice[act]
    ready = max(now.valid[source], now.start[act])
    is_part = state.schedule.slice[source] != what
    _hold(state, act, -ONE)
    way, start, end = earliest_option(
        state.schedule, state.options, state.line, pair, what, ready, by, is_part
    )
    if way == NONE:
        _hold(state, act, ONE)
        return False
    _go(state, act, new, source, way, start, end)
    return True


@part
def _goes_as_before(state: BypassState, act: int, new: int) -> None:
    """Take back what :func:`_goes_there` has decided."""
    now = state.changes
    start, end = now.start[act], now.start[act] + now.cycles[act]
    if now.pair[act] == NONE:
        return
    hold_option(state.options, state.line, now.pair[act], now.way[act], start, end, -ONE)
    now.pair[act], now.way[act] = NONE, NONE
    now.start[act], now.cycles[act] = state.start[act], state.schedule.cycles[act]
    now.begins[new], now.valid[new] = now.start[act], now.start[act] + now.cycles[act]
    _hold(state, act, ONE)
