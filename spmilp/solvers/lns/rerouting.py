"""Transfers to and from DRAM become copies between scratchpads where these have room. Compiled."""

from typing import NamedTuple

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NONE, ONE, ZERO, Ints
from spmilp.solvers.kernels.timeline import Timeline, occupy, step_at
from spmilp.solvers.lns.copies import Copies, earliest_copy, hold_way
from spmilp.solvers.lns.draft import Draft, Flags, Rows


class Changes(NamedTuple):
    """The times and places of a draft, which change.

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


class Scene(NamedTuple):
    """All that a decision looks at.

    Attributes
    ----------
    draft, start
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

    draft: Draft
    copies: Copies
    limit: Ints
    start: Ints
    holders: Rows
    is_dram: Flags
    may_leave: Flags
    line: Timeline
    room: Timeline
    changes: Changes


@kernel
def reroute(scene: Scene, moves: Ints, most: int) -> int:
    """Change up to ``most`` transfers, first loads and then what is stored; return how many."""
    draft, now = scene.draft, scene.changes
    for act in range(now.start.size):
        if now.cycles[act] > 0:
            _hold(scene, act, ONE)
    for held in range(now.memory.size):
        if scene.limit[now.memory[held]] != NEVER and now.ends[held] > now.begins[held]:
            _fill(scene, held, now.begins[held], now.ends[held], ONE)
    count = ZERO
    for act in moves:
        new = draft.fills.items[draft.fills.begin[act]]
        is_load = scene.is_dram[now.memory[now.source[act]]] and not scene.is_dram[now.memory[new]]
        if count < most and is_load and _is_for_one(draft, act) and now.first_use[new] < NEVER:
            count += _comes_from_a_scratchpad(scene, act, new)
    for act in moves:
        new = draft.fills.items[draft.fills.begin[act]]
        is_store = scene.is_dram[now.memory[new]] and scene.may_leave[new]
        if count < most and is_store and _is_for_one(draft, act):
            count += _waits_in_a_scratchpad(scene, act, new)
    return count


@part
def _is_for_one(draft: Draft, act: int) -> bool:
    is_one: bool = draft.fills.begin[act + 1] - draft.fills.begin[act] == 1
    return is_one


@part
def _hold(scene: Scene, act: int, sign: int) -> None:
    """Take what an activity held before all changes, or give it back with ``sign`` -1."""
    demands, start = scene.draft.demands, scene.start[act]
    for i in range(demands.begin[act], demands.begin[act + 1]):
        end = start + scene.draft.cycles[act]
        occupy(scene.line, demands.items[i], start, end, sign * scene.draft.amounts[i])


@part
def _fill(scene: Scene, held: int, first: int, until: int, sign: int) -> None:
    """Take the bytes of a residency from ``first`` to ``until``, or give them back."""
    if until > first:
        size = sign * scene.draft.bytes[held]
        occupy(scene.room, scene.changes.memory[held], first, until, size)


@part
def _has_room(scene: Scene, memory: int, first: int, until: int, need: int) -> bool:
    """Say whether so many bytes of a memory are free from ``first`` to ``until``."""
    steps, row = scene.room.steps, scene.room.resources[memory]
    step = step_at(scene.room, memory, first)
    past = row.begin + row.length
    while step < past and steps[step].time < until:
        if steps[step].load + need > scene.limit[memory]:
            return False
        step += 1
    return True


@part
def _comes_from_a_scratchpad(scene: Scene, act: int, new: int) -> int:
    """Let a load come from where the slice is kept longer for the fewest bytes and cycles."""
    draft, now = scene.draft, scene.changes
    what = draft.part[act]
    buffer = scene.copies.slices[what].buffer
    _hold(scene, act, -ONE)
    best, best_cost, best_way, best_start, best_end = NONE, NEVER, NONE, ZERO, ZERO
    for of in (what, buffer):
        for i in range(scene.holders.begin[of], scene.holders.begin[of + 1]):
            held = scene.holders.items[i]
            memory = now.memory[held]
            pair = scene.copies.pair_at[memory, now.memory[new]]
            ready, by = max(now.valid[held], now.start[act]), now.first_use[new]
            if pair == NONE or held == new or scene.limit[memory] == NEVER:
                continue
            if draft.heir[held] != NONE:
                by = min(by, now.start[draft.filler[draft.heir[held]]])
            way, start, end = earliest_copy(
                draft, scene.copies, scene.line, pair, what, ready, by, of != what
            )
            if way == NONE:
                continue
            cost = max(ZERO, end - now.ends[held]) * draft.bytes[held]
            if cost >= best_cost:
                continue
            if cost == 0 or _has_room(scene, memory, now.ends[held], end, draft.bytes[held]):
                best, best_cost, best_way, best_start, best_end = held, cost, way, start, end
        if what == buffer:
            break
    if best == NONE:
        _hold(scene, act, ONE)
        return ZERO
    _fill(scene, best, now.ends[best], best_end, ONE)
    now.ends[best] = max(now.ends[best], best_end)
    _fill(scene, new, now.begins[new], best_start, -ONE)
    _go(scene, act, new, best, best_way, best_start, best_end)
    return ONE


@part
def _go(scene: Scene, act: int, new: int, source: int, way: int, start: int, end: int) -> None:
    """Write down how and when a transfer goes."""
    now = scene.changes
    pair = scene.copies.pair_at[now.memory[source], now.memory[new]]
    hold_way(scene.copies, scene.line, pair, way, start, end, ONE)
    now.begins[new], now.valid[new] = start, end
    now.first_use[source] = min(now.first_use[source], start)
    now.start[act], now.cycles[act] = start, end - start
    now.source[act], now.pair[act], now.way[act] = source, pair, way


@part
def _waits_in_a_scratchpad(scene: Scene, act: int, new: int) -> int:
    """Let what is stored and loaded again wait in the next memory with room."""
    draft, now = scene.draft, scene.changes
    last_load = NONE
    for i in range(draft.users.begin[new], draft.users.begin[new + 1]):
        user = draft.users.items[i]
        if draft.part[user] == NONE or not _is_for_one(draft, user):
            return ZERO
        if now.source[user] == new:
            last_load = max(last_load, now.start[user])
    if last_load == NONE:
        return ZERO
    dram, first = now.memory[new], now.start[act]
    for k in range(1, scene.limit.size):
        memory = (now.memory[now.source[act]] + k) % scene.limit.size
        if scene.limit[memory] == NEVER:
            continue
        if _has_room(scene, memory, first, last_load, draft.bytes[new]):
            now.memory[new] = memory
            if _all_go_there(scene, act, new):
                return ONE
            now.memory[new] = dram
    return ZERO


@part
def _all_go_there(scene: Scene, act: int, new: int) -> bool:
    """Let a store, and the loads of what it stores, be copies, if all of them are in time."""
    draft, now = scene.draft, scene.changes
    users = draft.users
    # What is stored need not be there longer than it was.
    by = min(now.first_use[new], now.start[act] + now.cycles[act])
    done = _goes_there(scene, act, now.source[act], new, by)
    until = now.valid[new]
    for i in range(users.begin[new], users.begin[new + 1]):
        user = users.items[i]
        if done and now.source[user] == new:
            copy = draft.fills.items[draft.fills.begin[user]]
            done = _goes_there(scene, user, new, copy, now.first_use[copy])
            until = max(until, now.valid[copy])
    if done and _has_room(scene, now.memory[new], now.begins[new], until, draft.bytes[new]):
        now.ends[new] = until
        _fill(scene, new, now.begins[new], until, ONE)
        for i in range(users.begin[new], users.begin[new + 1]):
            user = users.items[i]
            if now.source[user] == new:
                copy = draft.fills.items[draft.fills.begin[user]]
                _fill(scene, copy, scene.start[user], now.begins[copy], -ONE)
        return True
    _goes_as_before(scene, act, new)
    for i in range(users.begin[new], users.begin[new + 1]):
        user = users.items[i]
        if now.source[user] == new:
            _goes_as_before(scene, user, draft.fills.items[draft.fills.begin[user]])
    return False


@part
def _goes_there(scene: Scene, act: int, source: int, new: int, by: int) -> bool:
    """Let a transfer be a copy that ends by a cycle; say whether there is one."""
    now = scene.changes
    pair = scene.copies.pair_at[now.memory[source], now.memory[new]]
    if pair == NONE:
        return False
    what = scene.draft.part[act]
    ready = max(now.valid[source], now.start[act])
    is_part = scene.draft.slice[source] != what
    _hold(scene, act, -ONE)
    way, start, end = earliest_copy(
        scene.draft, scene.copies, scene.line, pair, what, ready, by, is_part
    )
    if way == NONE:
        _hold(scene, act, ONE)
        return False
    _go(scene, act, new, source, way, start, end)
    return True


@part
def _goes_as_before(scene: Scene, act: int, new: int) -> None:
    """Take back what :func:`_goes_there` has decided."""
    now = scene.changes
    start, end = now.start[act], now.start[act] + now.cycles[act]
    if now.pair[act] == NONE:
        return
    hold_way(scene.copies, scene.line, now.pair[act], now.way[act], start, end, -ONE)
    now.pair[act], now.way[act] = NONE, NONE
    now.start[act], now.cycles[act] = scene.start[act], scene.draft.cycles[act]
    now.begins[new], now.valid[new] = now.start[act], now.start[act] + now.cycles[act]
    _hold(scene, act, ONE)
