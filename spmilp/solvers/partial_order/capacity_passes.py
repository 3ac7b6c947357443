"""Times from order where addresses are left open: each memory has so many bytes, wherever they lie.

Both passes start from times at which all bytes fit (those of a valid plan, or of another pass), and
keep that: an activity moves only as far as there is room for what it fills (or reads) all the way.
What comes out are times that an offset packing may find addresses for, or not.
"""

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NO, NONE, YES, ZERO, Ints
from spmilp.solvers.kernels.timeline import Timeline, occupy, step_at
from spmilp.solvers.partial_order.justification import earliest, latest
from spmilp.solvers.partial_order.profiles import (
    first_room,
    hold,
    line_of_memories,
    line_of_resources,
)
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule, ReuseOrder, lifetimes


def capacity_forward_pass(
    schedule: PartialOrderSchedule,
    kept: ReuseOrder,
    limit: Ints,
    start: Ints,
    last: int,
    pause: Ints | None = None,
) -> Ints:
    """Return start cycles in which each activity, taken in sequence, starts as early as it can.

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
    return _left(schedule, kept, limit, start, last, pause, by)[1]


def capacity_forward_pass_by(
    schedule: PartialOrderSchedule, kept: ReuseOrder, limit: Ints, start: Ints, last: int, by: Ints
) -> Ints | None:
    """Return the same, or ``None`` as soon as an activity starts later than at its cycle of ``by``.

    Most attempts to change a plan show soon after the change that they do not pay.
    """
    is_in_time, found = _left(
        schedule, kept, limit, start, last, np.zeros(start.size, np.int64), by
    )
    return found if is_in_time else None


def _left(
    schedule: PartialOrderSchedule,
    kept: ReuseOrder,
    limit: Ints,
    start: Ints,
    last: int,
    pause: Ints,
    by: Ints,
) -> tuple[bool, Ints]:
    _, ends = lifetimes(schedule, start, last)
    room = line_of_memories(schedule, limit.size)
    _hold_what_is_there(schedule, limit, ends, room)
    sequence = np.argsort(start, kind="stable")
    found = np.zeros(start.size, np.int64)
    line = line_of_resources(schedule)
    valid, over = (np.zeros(schedule.filler.size, np.int64) for _ in range(2))
    waiting = np.diff(schedule.readers.begin)
    is_in_time = _place_early(
        schedule,
        kept,
        limit,
        line,
        room,
        sequence,
        start,
        pause,
        by,
        ends,
        valid,
        over,
        waiting,
        found,
    )
    return is_in_time, found


def capacity_backward_pass(
    schedule: PartialOrderSchedule, kept: ReuseOrder, limit: Ints, start: Ints, last: int
) -> Ints:
    """Return start cycles in which each activity ends as late as it can, all by cycle ``last``.

    The mirror image of :func:`capacity_forward_pass`; none begins earlier than in ``start``.
    """
    begins, _ = lifetimes(schedule, start, last)
    room = line_of_memories(schedule, limit.size)
    sequence = np.argsort(-(start + schedule.cycles), kind="stable")
    found = np.full(start.size, last, np.int64)
    line = line_of_resources(schedule)
    until = np.full(schedule.filler.size, -1, np.int64)
    _place_late(schedule, kept, limit, line, room, sequence, start, begins, last, until, found)
    return found


@kernel
def _hold_what_is_there(
    schedule: PartialOrderSchedule, limit: Ints, ends: Ints, room: Timeline
) -> None:
    for residency in range(schedule.filler.size):
        memory = schedule.memory[residency]
        if schedule.filler[residency] == NONE and limit[memory] != NEVER:
            occupy(room, memory, ZERO, ends[residency], schedule.bytes[residency])


@kernel
def _place_early(
    schedule: PartialOrderSchedule,
    kept: ReuseOrder,
    limit: Ints,
    line: Timeline,
    room: Timeline,
    sequence: Ints,
    start: Ints,
    pause: Ints,
    by: Ints,
    ends: Ints,
    valid: Ints,
    over: Ints,
    waiting: Ints,
    found: Ints,
) -> bool:
    for act in sequence:
        if schedule.cycles[act] == 0:
            continue
        ready = earliest(schedule, kept.earlier, act, found, valid, over)
        ready = room_before(schedule, limit, room, act, ready, start[act])
        ready = max(ready, min(start[act], ready + pause[act]))
        begin = first_room(schedule, line, act, ready)
        if begin > by[act]:
            return NO
        hold(schedule, line, act, begin)
        found[act] = begin
        end = begin + schedule.cycles[act]
        for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[i]
            memory = schedule.memory[residency]
            valid[residency] = over[residency] = end
            if limit[memory] == NEVER:
                continue
            if waiting[residency] == 0 and not schedule.lasting[residency]:
                ends[residency] = end
            # What takes over bytes counts from the end of the task that writes it.
            own = schedule.bytes[residency]
            if schedule.overwrites[residency] != NONE:
                own = max(0, own - schedule.bytes[schedule.overwrites[residency]])
            occupy(room, memory, begin, end, own)
            if ends[residency] > end:
                occupy(room, memory, end, ends[residency], schedule.bytes[residency])
        for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
            residency = schedule.reads.items[i]
            over[residency] = max(over[residency], end)
            waiting[residency] -= 1
            memory = schedule.memory[residency]
            if waiting[residency] > 0 or schedule.lasting[residency] or limit[memory] == NEVER:
                continue
            if over[residency] < ends[residency]:
                occupy(room, memory, over[residency], ends[residency], -schedule.bytes[residency])
                ends[residency] = over[residency]
    return YES


@part
def room_before(
    schedule: PartialOrderSchedule, limit: Ints, room: Timeline, act: int, ready: int, start: int
) -> int:
    """Return the first cycle from which there is room until ``start`` for what an activity fills.

    From ``start`` on there is, whatever becomes of the others.
    """
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        memory = schedule.memory[schedule.fills.items[i]]
        if ready >= start or limit[memory] == NEVER:
            continue
        need = ZERO
        for j in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[j]
            if schedule.memory[residency] == memory:
                need += schedule.bytes[residency]
                if schedule.overwrites[residency] != NONE:
                    need -= min(
                        schedule.bytes[residency], schedule.bytes[schedule.overwrites[residency]]
                    )
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
    schedule: PartialOrderSchedule,
    kept: ReuseOrder,
    limit: Ints,
    line: Timeline,
    room: Timeline,
    sequence: Ints,
    start: Ints,
    begins: Ints,
    last: int,
    until: Ints,
    found: Ints,
) -> None:
    for residency in range(schedule.filler.size):
        memory = schedule.memory[residency]
        if schedule.lasting[residency] and limit[memory] != NEVER:
            until[residency] = last
            occupy(room, memory, begins[residency], last, schedule.bytes[residency])
    for act in sequence:
        if schedule.cycles[act] == 0:
            continue
        by = latest(schedule, kept.later, act, last, found)
        by = _room_behind(schedule, limit, room, until, act, by, start[act])
        mirrored = first_room(schedule, line, act, last - by)
        hold(schedule, line, act, mirrored)
        end = last - mirrored
        found[act] = end - schedule.cycles[act]
        for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
            residency = schedule.reads.items[i]
            overwritten_by = schedule.overwritten_by[residency]
            stays = overwritten_by == NONE or schedule.filler[overwritten_by] != act
            _extend(
                schedule,
                limit,
                room,
                until,
                residency,
                begins[residency],
                end if stays else found[act],
            )
        for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[i]
            _extend(schedule, limit, room, until, residency, begins[residency], end)
            if limit[schedule.memory[residency]] != NEVER and found[act] > begins[residency]:
                occupy(
                    room,
                    schedule.memory[residency],
                    begins[residency],
                    found[act],
                    -schedule.bytes[residency],
                )


@part
def _extend(
    schedule: PartialOrderSchedule,
    limit: Ints,
    room: Timeline,
    until: Ints,
    residency: int,
    begin: int,
    end: int,
) -> None:
    """Let a residency last until ``end`` at least."""
    memory = schedule.memory[residency]
    if limit[memory] == NEVER or until[residency] >= end:
        return
    first = begin if until[residency] < 0 else until[residency]
    if end > first:
        occupy(room, memory, first, end, schedule.bytes[residency])
        until[residency] = end


@part
def _room_behind(
    schedule: PartialOrderSchedule,
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
    old_end = start + schedule.cycles[act]
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        residency = schedule.reads.items[i]
        memory = schedule.memory[residency]
        first = max(old_end, until[residency])
        if by <= first or limit[memory] == NEVER:
            continue
        need = ZERO
        for j in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
            other = schedule.reads.items[j]
            if schedule.memory[other] != memory or max(old_end, until[other]) > first:
                continue
            need += schedule.bytes[other]
            overwritten_by = schedule.overwritten_by[other]
            if overwritten_by != NONE and schedule.filler[overwritten_by] == act:
                need -= min(schedule.bytes[other], schedule.bytes[overwritten_by])
        steps, row = room.steps, room.resources[memory]
        step = step_at(room, memory, first)
        past = row.begin + row.length
        while step < past and steps[step].time < by:
            if need > 0 and steps[step].load + need > limit[memory]:
                by = max(first, steps[step].time)
                break
            step += 1
    return by
