"""Serial schedule generation: new times from the order of the old ones, forward and backward.

Activities are placed one after another in the order of a valid schedule's times: by a *forward
pass* each as early as it can start next to those placed before, by a *backward pass* each as late
as it can end. A backward pass and then a forward pass are a double justification, which never
lengthens a schedule (Valls, Ballestín and Quintanilla, European Journal of Operational Research
165, 2005).

Cores, channels and links are renewable resources and treated as usual. Memories are not: bytes are
held from one activity to another. They are respected in one of two ways, see :class:`Memories`:

- Addresses stay: each residency waits until those have ended that had its bytes before.
- With capacity only, addresses are open: all bytes fit at the old times, and an activity moves only
  as far as there is capacity for what it fills (or, backward, reads) all the way. Offset packing
  may find addresses for the new times, or not.
"""

from typing import NamedTuple

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.justify.schedule import (
    Memories,
    PartialOrderSchedule,
    TimedSchedule,
    earliest_start,
    hold,
    lifetimes,
    profiles_of_memories,
    profiles_of_resources,
    taken,
    timed,
)
from spmilp.solvers.schedule.kernels.records import NEVER, NO, NONE, ONE, YES, ZERO, Ints, Rows
from spmilp.solvers.schedule.kernels.timeline import Timeline, occupy, step_at
from spmilp.units import Cycles


def forward_pass(before: TimedSchedule, memories: Memories) -> TimedSchedule:
    """Return a schedule in which each activity starts as early as it can, placed in turn.

    None starts later than before: at its old cycle there is room, for those placed before it began
    no later than it, and now end no later than they did.
    """
    state = _forward(before, memories)
    _place_forward(state, np.argsort(before.start, kind="stable"))
    return timed(before.schedule, state.found)


def forward_pass_by(before: TimedSchedule, memories: Memories, due: Ints) -> TimedSchedule | None:
    """Return the same, or ``None`` once an activity starts later than at its cycle of ``due``.

    Most attempts to change a plan show soon after the change that they do not pay.
    """
    state = _forward(before, memories, due)
    is_in_time = _place_forward(state, np.argsort(before.start, kind="stable"))
    return timed(before.schedule, state.found) if is_in_time else None


def _forward(before: TimedSchedule, memories: Memories, due: Ints | None = None) -> "_Forward":
    schedule, activities = before.schedule, before.start.size
    filled, released = (np.zeros(schedule.filler.size, np.int64) for _ in range(2))
    return _Forward(
        schedule=schedule,
        memories=memories,
        old=before.start,
        due=np.full(activities, NEVER) if due is None else due,
        usage=profiles_of_resources(schedule),
        occupancy=profiles_of_memories(schedule, memories.limit.size),
        filled=filled,
        released=released,
        unread=np.diff(schedule.readers.begin),
        ends=before.lifetimes()[1],
        found=np.zeros(activities, np.int64),
    )


class _Forward(NamedTuple):
    """The state of a forward pass: of activities ``old``, ``due`` and ``found`` start cycles.

    Of residencies when each has been ``filled``, when all placed so far have ended that touch it
    (``released``), its readers not placed yet, and until when it is counted in its memory.
    """

    schedule: PartialOrderSchedule
    memories: Memories
    old: Ints
    due: Ints
    usage: Timeline
    occupancy: Timeline
    filled: Ints
    released: Ints
    unread: Ints
    ends: Ints
    found: Ints


@kernel
def _place_forward(state: _Forward, sequence: Ints) -> bool:
    """Place activities in a sequence; return False once one starts later than it is due."""
    schedule, limit, found = state.schedule, state.memories.limit, state.found
    for residency in range(schedule.filler.size):
        memory = schedule.memory[residency]
        if schedule.filler[residency] == NONE and limit[memory] != NEVER:
            size = taken(schedule, residency, memory)
            occupy(state.occupancy, memory, ZERO, state.ends[residency], size)
    for act in sequence:
        if schedule.cycles[act] == 0:
            continue
        ready = precedence_ready(
            schedule, state.memories.reuse.earlier, act, found, state.filled, state.released
        )
        ready = capacity_ready(schedule, limit, state.occupancy, act, ready, state.old[act])
        start = earliest_start(schedule, state.usage, act, ready)
        if start > state.due[act]:
            return NO
        hold(schedule, state.usage, act, start, ONE)
        found[act] = start
        _fill(state, act)
        _read(state, act)
    return YES


@part
def _fill(state: _Forward, act: int) -> None:
    """Count what an activity fills in its memory: from its new start until the old end."""
    schedule, limit = state.schedule, state.memories.limit
    start, end = state.found[act], state.found[act] + schedule.cycles[act]
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        residency = schedule.fills.items[i]
        memory = schedule.memory[residency]
        state.filled[residency] = state.released[residency] = end
        if limit[memory] == NEVER:
            continue
        if state.unread[residency] == 0 and not schedule.lasting[residency]:
            state.ends[residency] = end
        # Bytes that are overwritten in place count twice only when the writer has ended.
        own = whole = taken(schedule, residency, memory)
        if schedule.overwrites[residency] != NONE:
            own = max(0, whole - taken(schedule, schedule.overwrites[residency], memory))
        occupy(state.occupancy, memory, start, end, own)
        if state.ends[residency] > end:
            occupy(state.occupancy, memory, end, state.ends[residency], whole)


@part
def _read(state: _Forward, act: int) -> None:
    """Free what an activity reads from its end on, if it is the last reader."""
    schedule, released, ends = state.schedule, state.released, state.ends
    end = state.found[act] + schedule.cycles[act]
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        residency = schedule.reads.items[i]
        released[residency] = max(released[residency], end)
        state.unread[residency] -= 1
        memory = schedule.memory[residency]
        if state.unread[residency] > 0 or schedule.lasting[residency]:
            continue
        if state.memories.limit[memory] != NEVER and released[residency] < ends[residency]:
            size = taken(schedule, residency, memory)
            occupy(state.occupancy, memory, released[residency], ends[residency], -size)
            ends[residency] = released[residency]


@part
def precedence_ready(
    schedule: PartialOrderSchedule,
    earlier: Rows,
    act: int,
    found: Ints,
    filled: Ints,
    released: Ints,
) -> int:
    """Return the cycle at which all has ended that an activity follows, as far as it is placed.

    Parameters
    ----------
    earlier
        The residencies that had the bytes of each before.
    found
        Start cycles of the activities placed so far.
    filled, released
        When each residency has been filled, and when all have ended that fill or read it.
    """
    ready = ZERO
    for i in range(schedule.before.begin[act], schedule.before.begin[act + 1]):
        other = schedule.before.items[i]
        ready = max(ready, found[other] + schedule.cycles[other])
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        ready = max(ready, filled[schedule.reads.items[i]])
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        residency = schedule.fills.items[i]
        # Other readers of a value that is overwritten in place have been placed, and end before.
        if schedule.overwrites[residency] != NONE:
            ready = max(ready, released[schedule.overwrites[residency]])
        for j in range(earlier.begin[residency], earlier.begin[residency + 1]):
            ready = max(ready, released[earlier.items[j]])
    return ready


@part
def capacity_ready(
    schedule: PartialOrderSchedule, limit: Ints, occupancy: Timeline, act: int, ready: int, old: int
) -> int:
    """Return the first cycle from which memories have capacity for what an activity fills.

    They have it from there until its old start; from then on, wherever others are placed.
    """
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        memory = schedule.memory[schedule.fills.items[i]]
        if ready >= old or limit[memory] == NEVER:
            continue
        need = ZERO
        for j in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[j]
            if schedule.memory[residency] == memory:
                need += taken(schedule, residency, memory)
                overwritten = schedule.overwrites[residency]
                if overwritten != NONE:
                    shared = taken(schedule, overwritten, memory)
                    need -= min(taken(schedule, residency, memory), shared)
        steps, first = occupancy.steps, occupancy.resources[memory].begin
        step = step_at(occupancy, memory, old - 1)
        while step > first and steps[step].load + need <= limit[memory]:
            if steps[step].time <= ready:
                break
            step -= 1
        if need > 0 and steps[step].load + need > limit[memory]:
            ready = max(ready, min(old, steps[step + 1].time))
    return ready


def backward_pass(
    before: TimedSchedule,
    memories: Memories,
    last: Cycles | None = None,
    due: Ints | None = None,
) -> TimedSchedule:
    """Return a schedule in which each activity ends as late as it can, all by cycle ``last``.

    None starts earlier than before. It is the mirror image of the forward pass.

    Parameters
    ----------
    last
        No less than the makespan, which it is by default.
    due
        When each activity has to end at the latest, no earlier than it did; ``last`` by default.
    """
    schedule, last = before.schedule, before.makespan if last is None else last
    begins, _ = lifetimes(schedule, before.start, last)
    state = _Backward(
        schedule=schedule,
        memories=memories,
        last=last,
        due=np.full(before.start.size, last) if due is None else due,
        old=before.start,
        begins=begins,
        usage=profiles_of_resources(schedule),
        occupancy=profiles_of_memories(schedule, memories.limit.size),
        until=np.full(schedule.filler.size, -1, np.int64),
        found=np.full(before.start.size, last, np.int64),
    )
    _place_backward(state, np.argsort(-(before.start + schedule.cycles), kind="stable"))
    return TimedSchedule(schedule, state.found, last)


class _Backward(NamedTuple):
    """The state of a backward pass: ``old`` and ``found`` start cycles, ``begins`` of residencies.

    Profiles are in mirrored time: what is placed next then comes behind most of what was placed
    before, so that few steps have to move. Each residency is counted ``until`` a cycle; -1 for not
    yet.
    """

    schedule: PartialOrderSchedule
    memories: Memories
    last: int
    due: Ints
    old: Ints
    begins: Ints
    usage: Timeline
    occupancy: Timeline
    until: Ints
    found: Ints


@kernel
def _place_backward(state: _Backward, sequence: Ints) -> None:
    """Place activities in a sequence, the last one first."""
    schedule, limit, begins = state.schedule, state.memories.limit, state.begins
    for residency in range(schedule.filler.size):
        if schedule.lasting[residency]:
            _extend(state, residency, state.last)
    for act in sequence:
        if schedule.cycles[act] == 0:
            continue
        due = _capacity_due(state, act, _precedence_due(state, act))
        mirrored = earliest_start(schedule, state.usage, act, state.last - due)
        hold(schedule, state.usage, act, mirrored, ONE)
        end = state.last - mirrored
        start = state.found[act] = end - schedule.cycles[act]
        for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
            residency = schedule.reads.items[i]
            successor = schedule.overwritten_by[residency]
            stays = successor == NONE or schedule.filler[successor] != act
            _extend(state, residency, end if stays else start)
        for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[i]
            memory = schedule.memory[residency]
            _extend(state, residency, end)
            if limit[memory] != NEVER and start > begins[residency]:
                _count(state, residency, begins[residency], start, -ONE)


@part
def _extend(state: _Backward, residency: int, end: int) -> None:
    """Count a residency in its memory until ``end`` at least."""
    memory, until = state.schedule.memory[residency], state.until
    if state.memories.limit[memory] == NEVER or until[residency] >= end:
        return
    first = state.begins[residency] if until[residency] < 0 else until[residency]
    if end > first:
        _count(state, residency, first, end, ONE)
        until[residency] = end


@part
def _count(state: _Backward, residency: int, first: int, end: int, sign: int) -> None:
    """Count a residency's bytes from ``first`` to ``end``, or no longer with ``sign`` -1."""
    memory = state.schedule.memory[residency]
    size = taken(state.schedule, residency, memory)
    occupy(state.occupancy, memory, state.last - end, state.last - first, sign * size)


@part
def _precedence_due(state: _Backward, act: int) -> int:
    """Return the cycle by which an activity has to end for all that follow it."""
    schedule, found = state.schedule, state.found
    due: int = state.due[act]
    for i in range(schedule.after.begin[act], schedule.after.begin[act + 1]):
        due = min(due, found[schedule.after.items[i]])
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        residency = schedule.fills.items[i]
        for j in range(schedule.readers.begin[residency], schedule.readers.begin[residency + 1]):
            due = min(due, found[schedule.readers.items[j]])
        due = min(due, _reused_from(state, act, residency))
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        residency = schedule.reads.items[i]
        due = min(due, _reused_from(state, act, residency))
        successor = schedule.overwritten_by[residency]
        # Other readers of a value that is overwritten in place must have ended before.
        if successor != NONE and schedule.filler[successor] != act:
            due = min(due, found[schedule.filler[successor]])
    return due


@part
def _reused_from(state: _Backward, act: int, residency: int) -> int:
    """Return when another activity begins to fill what has the bytes of a residency next."""
    later, first = state.memories.reuse.later, NEVER
    for i in range(later.begin[residency], later.begin[residency + 1]):
        filler = state.schedule.filler[later.items[i]]
        if filler != act:
            first = min(first, state.found[filler])
    return first


@part
def _capacity_due(state: _Backward, act: int, due: int) -> int:
    """Return the last cycle, up to ``due``, until which there is capacity for what is read.

    Up to the old end of the activity there is, wherever others are placed.
    """
    schedule, limit, until = state.schedule, state.memories.limit, state.until
    old_end = state.old[act] + schedule.cycles[act]
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        residency = schedule.reads.items[i]
        memory = schedule.memory[residency]
        first = max(old_end, until[residency])
        if due <= first or limit[memory] == NEVER:
            continue
        need = ZERO
        for j in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
            other = schedule.reads.items[j]
            if schedule.memory[other] != memory or max(old_end, until[other]) > first:
                continue
            need += taken(schedule, other, memory)
            successor = schedule.overwritten_by[other]
            if successor != NONE and schedule.filler[successor] == act:
                shared = taken(schedule, successor, memory)
                need -= min(taken(schedule, other, memory), shared)
        if need > 0:
            due = _with_capacity_until(state, memory, first, due, need)
    return due


@part
def _with_capacity_until(state: _Backward, memory: int, first: int, due: int, need: int) -> int:
    """Return until when a memory has so many bytes more from ``first`` on, or ``due``."""
    steps, until = state.occupancy.steps, first
    step = step_at(state.occupancy, memory, state.last - first - 1)
    while until < due and steps[step].load + need <= state.memories.limit[memory]:
        until = state.last - steps[step].time
        step -= 1
    return min(until, due)
