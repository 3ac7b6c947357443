"""Times from order: every activity as early, or as late, as its order and its resources allow."""

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NONE, ZERO, Ints, Rows
from spmilp.solvers.kernels.timeline import Timeline
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.profiles import first_room, hold, line_of_resources
from spmilp.solvers.partial_order.schedule import (
    PartialOrderSchedule,
    ReuseOrder,
    TimedSchedule,
    makespan_of,
)
from spmilp.units import Cycles

ROUNDS = 4
"""Passes to the right and back at most; most of the gain is in the first."""


def double_justified(context: ScheduleContext, incumbent: TimedSchedule) -> TimedSchedule:
    """Return a incumbent with better times, its decisions and addresses as they are.

    All is taken as late as it can be, then as early as it can be, until that gains nothing: the
    double justification of Valls, Ballestín and Quintanilla (European Journal of Operational
    Research 165, 2005). The makespan never grows.
    """
    schedule, start = incumbent.schedule, incumbent.start
    reuse_order = context.reuse_order(schedule, start)
    early = forward_pass(schedule, reuse_order, start)
    makespan = makespan_of(schedule, early)
    for _ in range(ROUNDS):
        later = backward_pass(schedule, reuse_order, early, makespan)
        early = forward_pass(schedule, reuse_order, later)
        before, makespan = makespan, makespan_of(schedule, early)
        if makespan == before:
            break
    return TimedSchedule(schedule, early, makespan)


def forward_pass(schedule: PartialOrderSchedule, reuse_order: ReuseOrder, start: Ints) -> Ints:
    """Return start cycles in which every activity starts as early as it can, taken in sequence.

    Activities are taken in the order of ``start``, which is that of a valid plan. Each begins at
    the first cycle at which all that it follows has ended and its resources have room next to those
    taken before. None begins later than in ``start``: at its old cycle there is room, for those
    taken before it began no later than it, and now end no later than they did.
    """
    sequence = np.argsort(start, kind="stable")
    line = line_of_resources(schedule)
    found = np.zeros(start.size, np.int64)
    valid, released = (np.zeros(schedule.filler.size, np.int64) for _ in range(2))
    _place_early(schedule, reuse_order, line, sequence, valid, released, found)
    return found


def backward_pass(
    schedule: PartialOrderSchedule, reuse_order: ReuseOrder, start: Ints, end: Cycles
) -> Ints:
    """Return start cycles in which every activity ends as late as it can, all by cycle ``end``.

    The mirror image of :func:`forward_pass`: activities are taken from the last to the first.
    """
    sequence = np.argsort(-(start + schedule.cycles), kind="stable")
    line = line_of_resources(schedule)
    found = np.full(start.size, end, np.int64)
    _place_late(schedule, reuse_order, line, sequence, end, found)
    return found


@kernel
def _place_early(
    schedule: PartialOrderSchedule,
    reuse_order: ReuseOrder,
    line: Timeline,
    sequence: Ints,
    valid: Ints,
    released: Ints,
    found: Ints,
) -> None:
    for act in sequence:
        if schedule.cycles[act] == 0:
            continue
        ready = earliest(schedule, reuse_order.earlier, act, found, valid, released)
        start = first_room(schedule, line, act, ready)
        hold(schedule, line, act, start)
        found[act] = start
        end = start + schedule.cycles[act]
        for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
            residency = schedule.reads.items[i]
            released[residency] = max(released[residency], end)
        for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[i]
            valid[residency] = end
            released[residency] = max(released[residency], end)


@kernel
def _place_late(
    schedule: PartialOrderSchedule,
    reuse_order: ReuseOrder,
    line: Timeline,
    sequence: Ints,
    last: int,
    found: Ints,
) -> None:
    for act in sequence:
        if schedule.cycles[act] == 0:
            continue
        limit = latest(schedule, reuse_order.later, act, last, found)
        mirrored = first_room(schedule, line, act, last - limit)
        hold(schedule, line, act, mirrored)
        found[act] = last - mirrored - schedule.cycles[act]


@part
def earliest(
    schedule: PartialOrderSchedule,
    earlier: Rows,
    act: int,
    found: Ints,
    valid: Ints,
    released: Ints,
) -> int:
    """Return the cycle at which all has ended that an activity follows, if that is placed.

    Parameters
    ----------
    earlier
        The residencies that had the bytes of each before.
    found
        Start cycles of the activities placed so far.
    valid, released
        When each residency has been filled, and when all have ended that fill or read it.
    """
    ready = ZERO
    for i in range(schedule.before.begin[act], schedule.before.begin[act + 1]):
        other = schedule.before.items[i]
        ready = max(ready, found[other] + schedule.cycles[other])
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        ready = max(ready, valid[schedule.reads.items[i]])
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        residency = schedule.fills.items[i]
        # Who else reads a value that is written over has been placed, and ends before.
        if schedule.overwrites[residency] != NONE:
            ready = max(ready, released[schedule.overwrites[residency]])
        for j in range(earlier.begin[residency], earlier.begin[residency + 1]):
            ready = max(ready, released[earlier.items[j]])
    return ready


@part
def latest(schedule: PartialOrderSchedule, later: Rows, act: int, last: int, found: Ints) -> int:
    """Return the cycle by which an activity has to end for all that follow it, or ``last``.

    Parameters
    ----------
    later
        The residencies that have the bytes of each next.
    found
        Start cycles of the activities placed so far, from the last one on.
    """
    limit = last
    for i in range(schedule.after.begin[act], schedule.after.begin[act + 1]):
        limit = min(limit, found[schedule.after.items[i]])
    for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
        residency = schedule.fills.items[i]
        for j in range(schedule.readers.begin[residency], schedule.readers.begin[residency + 1]):
            limit = min(limit, found[schedule.readers.items[j]])
        limit = min(limit, _next_start(schedule, later, act, residency, found))
    for i in range(schedule.reads.begin[act], schedule.reads.begin[act + 1]):
        residency = schedule.reads.items[i]
        limit = min(limit, _next_start(schedule, later, act, residency, found))
        overwritten_by = schedule.overwritten_by[residency]
        # Who reads a value that is written over must have ended before.
        if overwritten_by != NONE and schedule.filler[overwritten_by] != act:
            limit = min(limit, found[schedule.filler[overwritten_by]])
    return limit


@part
def _next_start(
    schedule: PartialOrderSchedule, later: Rows, act: int, residency: int, found: Ints
) -> int:
    """Return when what has the bytes next begins to be filled, by another activity."""
    limit = NEVER
    for i in range(later.begin[residency], later.begin[residency + 1]):
        filler = schedule.filler[later.items[i]]
        if filler != act:
            limit = min(limit, found[filler])
    return limit
