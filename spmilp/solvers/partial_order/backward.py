"""The backward pass of serial schedule generation, the mirror image of the forward pass."""

from typing import NamedTuple

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NONE, ONE, ZERO, Ints
from spmilp.solvers.kernels.timeline import Timeline, occupy, step_at
from spmilp.solvers.partial_order.profiles import (
    earliest_start,
    hold,
    profiles_of_memories,
    profiles_of_resources,
)
from spmilp.solvers.partial_order.schedule import (
    KEEPS_TIME,
    Memories,
    PartialOrderSchedule,
    TimedSchedule,
    lifetimes,
    taken,
)
from spmilp.units import Cycles


def backward_pass(
    before: TimedSchedule, memories: Memories, last: Cycles | None = None
) -> TimedSchedule:
    """Return a schedule in which each activity ends as late as it can, all by cycle ``last``.

    None starts earlier than before. See :mod:`spmilp.solvers.partial_order.forward`.

    Parameters
    ----------
    last
        No less than the makespan, which it is by default.
    """
    schedule, last = before.schedule, before.makespan if last is None else last
    begins, _ = lifetimes(schedule, before.start, last)
    state = _Backward(
        schedule=schedule,
        memories=memories,
        last=last,
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
    """The state of a backward pass.

    Attributes
    ----------
    last
        The cycle by which all ends.
    old, begins
        Before: start cycles of activities, and when each residency begins.
    usage, occupancy
        What is held of each resource and of each memory, in mirrored time: what is placed next then
        comes behind most of what was placed before, so that few steps have to move.
    until
        Until when each residency is counted in its memory; -1 for not yet.
    found
        New start cycles.
    """

    schedule: PartialOrderSchedule
    memories: Memories
    last: int
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
    due: int = state.last - schedule.tail[act]
    if schedule.fixed[act] == KEEPS_TIME:
        due = state.old[act] + schedule.cycles[act]
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
