"""Times from order where addresses are left open: each memory has so many bytes, wherever they lie.

Both passes start from times at which all bytes fit (those of a valid plan, or of another pass), and
keep that: an activity moves only as far as there is room for what it fills (or reads) all the way.
What comes out are times that an offset packing may find addresses for, or not.
"""

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NO, NONE, YES, ZERO, Ints
from spmilp.solvers.kernels.timeline import Timeline, occupy, step_at
from spmilp.solvers.lns.draft import Draft, Tenants
from spmilp.solvers.lns.lifetimes import lifetimes
from spmilp.solvers.lns.sequence import earliest, latest
from spmilp.solvers.lns.timelines import first_room, hold, line_of_memories, line_of_resources


def loosely_left(
    draft: Draft, kept: Tenants, limit: Ints, start: Ints, last: int, pause: Ints | None = None
) -> Ints:
    """Return start cycles in which each activity, taken in turn, starts as early as it can.

    None begins later than in ``start``.

    Parameters
    ----------
    kept
        Who follows whom where addresses stay as they are.
    limit
        Bytes of each memory that may be in use where an activity moves to; ``NEVER`` for no limit.
    last
        A cycle by which all has ended.
    pause
        Cycles for which each activity waits though it could start, as long as it starts no later.
    """
    if pause is None:
        pause = np.zeros(start.size, np.int64)
    by = np.full(start.size, NEVER)
    return _left(draft, kept, limit, start, last, pause, by)[1]


def loosely_left_by(
    draft: Draft, kept: Tenants, limit: Ints, start: Ints, last: int, by: Ints
) -> Ints | None:
    """Return the same, or ``None`` as soon as an activity starts later than at its cycle of ``by``.

    Most attempts to change a plan show soon after the change that they do not pay.
    """
    is_in_time, found = _left(draft, kept, limit, start, last, np.zeros(start.size, np.int64), by)
    return found if is_in_time else None


def _left(
    draft: Draft, kept: Tenants, limit: Ints, start: Ints, last: int, pause: Ints, by: Ints
) -> tuple[bool, Ints]:
    _, ends = lifetimes(draft, start, last)
    room = line_of_memories(draft, limit.size)
    _hold_what_is_there(draft, limit, ends, room)
    turn = np.argsort(start, kind="stable")
    found = np.zeros(start.size, np.int64)
    line = line_of_resources(draft)
    valid, over = (np.zeros(draft.filler.size, np.int64) for _ in range(2))
    waiting = np.diff(draft.users.begin)
    is_in_time = _place_early(
        draft, kept, limit, line, room, turn, start, pause, by, ends, valid, over, waiting, found
    )
    return is_in_time, found


def loosely_right(draft: Draft, kept: Tenants, limit: Ints, start: Ints, last: int) -> Ints:
    """Return start cycles in which each activity ends as late as it can, all by cycle ``last``.

    The mirror image of :func:`loosely_left`; none begins earlier than in ``start``.
    """
    begins, _ = lifetimes(draft, start, last)
    room = line_of_memories(draft, limit.size)
    turn = np.argsort(-(start + draft.cycles), kind="stable")
    found = np.full(start.size, last, np.int64)
    line = line_of_resources(draft)
    until = np.full(draft.filler.size, -1, np.int64)
    _place_late(draft, kept, limit, line, room, turn, start, begins, last, until, found)
    return found


@kernel
def _hold_what_is_there(draft: Draft, limit: Ints, ends: Ints, room: Timeline) -> None:
    for held in range(draft.filler.size):
        memory = draft.memory[held]
        if draft.filler[held] == NONE and limit[memory] != NEVER:
            occupy(room, memory, ZERO, ends[held], draft.bytes[held])


@kernel
def _place_early(
    draft: Draft,
    kept: Tenants,
    limit: Ints,
    line: Timeline,
    room: Timeline,
    turn: Ints,
    start: Ints,
    pause: Ints,
    by: Ints,
    ends: Ints,
    valid: Ints,
    over: Ints,
    waiting: Ints,
    found: Ints,
) -> bool:
    for act in turn:
        if draft.cycles[act] == 0:
            continue
        ready = earliest(draft, kept.earlier, act, found, valid, over)
        ready = room_before(draft, limit, room, act, ready, start[act])
        ready = max(ready, min(start[act], ready + pause[act]))
        begin = first_room(draft, line, act, ready)
        if begin > by[act]:
            return NO
        hold(draft, line, act, begin)
        found[act] = begin
        end = begin + draft.cycles[act]
        for i in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
            held = draft.fills.items[i]
            memory = draft.memory[held]
            valid[held] = over[held] = end
            if limit[memory] == NEVER:
                continue
            if waiting[held] == 0 and not draft.lasting[held]:
                ends[held] = end
            # What takes over bytes counts from the end of the task that writes it.
            own = draft.bytes[held]
            if draft.parent[held] != NONE:
                own = max(0, own - draft.bytes[draft.parent[held]])
            occupy(room, memory, begin, end, own)
            if ends[held] > end:
                occupy(room, memory, end, ends[held], draft.bytes[held])
        for i in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
            held = draft.reads.items[i]
            over[held] = max(over[held], end)
            waiting[held] -= 1
            memory = draft.memory[held]
            if waiting[held] > 0 or draft.lasting[held] or limit[memory] == NEVER:
                continue
            if over[held] < ends[held]:
                occupy(room, memory, over[held], ends[held], -draft.bytes[held])
                ends[held] = over[held]
    return YES


@part
def room_before(draft: Draft, limit: Ints, room: Timeline, act: int, ready: int, start: int) -> int:
    """Return the first cycle from which there is room until ``start`` for what an activity fills.

    From ``start`` on there is, whatever becomes of the others.
    """
    for i in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
        memory = draft.memory[draft.fills.items[i]]
        if ready >= start or limit[memory] == NEVER:
            continue
        need = ZERO
        for j in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
            held = draft.fills.items[j]
            if draft.memory[held] == memory:
                need += draft.bytes[held]
                if draft.parent[held] != NONE:
                    need -= min(draft.bytes[held], draft.bytes[draft.parent[held]])
        steps, first = room.steps, room.resources[memory].begin
        step = step_at(room, memory, start - 1)
        while step > first and steps[step].load + need <= limit[memory]:
            if steps[step].time <= ready:
                break
            step -= 1
        if need > 0 and steps[step].load + need > limit[memory]:
            ready = max(ready, min(start, steps[step + 1].time))
    return ready


@kernel
def _place_late(
    draft: Draft,
    kept: Tenants,
    limit: Ints,
    line: Timeline,
    room: Timeline,
    turn: Ints,
    start: Ints,
    begins: Ints,
    last: int,
    until: Ints,
    found: Ints,
) -> None:
    for held in range(draft.filler.size):
        memory = draft.memory[held]
        if draft.lasting[held] and limit[memory] != NEVER:
            until[held] = last
            occupy(room, memory, begins[held], last, draft.bytes[held])
    for act in turn:
        if draft.cycles[act] == 0:
            continue
        by = latest(draft, kept.later, act, last, found)
        by = _room_behind(draft, limit, room, until, act, by, start[act])
        mirrored = first_room(draft, line, act, last - by)
        hold(draft, line, act, mirrored)
        end = last - mirrored
        found[act] = end - draft.cycles[act]
        for i in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
            held = draft.reads.items[i]
            heir = draft.heir[held]
            stays = heir == NONE or draft.filler[heir] != act
            _extend(draft, limit, room, until, held, begins[held], end if stays else found[act])
        for i in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
            held = draft.fills.items[i]
            _extend(draft, limit, room, until, held, begins[held], end)
            if limit[draft.memory[held]] != NEVER and found[act] > begins[held]:
                occupy(room, draft.memory[held], begins[held], found[act], -draft.bytes[held])


@part
def _extend(
    draft: Draft, limit: Ints, room: Timeline, until: Ints, held: int, begin: int, end: int
) -> None:
    """Let a residency last until ``end`` at least."""
    memory = draft.memory[held]
    if limit[memory] == NEVER or until[held] >= end:
        return
    first = begin if until[held] < 0 else until[held]
    if end > first:
        occupy(room, memory, first, end, draft.bytes[held])
        until[held] = end


@part
def _room_behind(
    draft: Draft,
    limit: Ints,
    room: Timeline,
    until: Ints,
    act: int,
    by: int,
    start: int,
) -> int:
    """Return the last cycle, up to ``by``, until which there is room for what an activity reads.

    Up to the old end there is, whatever becomes of the others.
    """
    old_end = start + draft.cycles[act]
    for i in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
        held = draft.reads.items[i]
        memory = draft.memory[held]
        first = max(old_end, until[held])
        if by <= first or limit[memory] == NEVER:
            continue
        need = ZERO
        for j in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
            other = draft.reads.items[j]
            if draft.memory[other] != memory or max(old_end, until[other]) > first:
                continue
            need += draft.bytes[other]
            heir = draft.heir[other]
            if heir != NONE and draft.filler[heir] == act:
                need -= min(draft.bytes[other], draft.bytes[heir])
        steps, row = room.steps, room.resources[memory]
        step = step_at(room, memory, first)
        past = row.begin + row.length
        while step < past and steps[step].time < by:
            if need > 0 and steps[step].load + need > limit[memory]:
                by = max(first, steps[step].time)
                break
            step += 1
    return by
