"""A modulo reservation table (Rau, MICRO 1994): what is busy in a period, and passes that fill it.

Each resource is a step function over the period, on whose last cycle the first one follows: periods
are long. A pass goes through all activities in an order in which each follows what it needs.
"""

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import NamedTuple

import cython
import numpy as np

from spmilp.compiled import address, in_c
from spmilp.solvers.schedule.kernels.records import (
    NONE,
    Ints,
    Rows,
    Table,
    inverted,
    numbers,
    row_of,
    table,
)
from spmilp.solvers.schedule.kernels.timeline import Timeline, new_timeline
from spmilp.units import Cycles

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import longs_at, whole
    from spmilp.solvers.schedule.kernels.records import NEVER
    from spmilp.solvers.schedule.kernels.timeline import occupy, profile_at, step_at

    loop_at = timeline_in = whole
    busy_at = row_of


class Busy(NamedTuple):
    """Cycles of an activity, from its start on, in which it holds an amount of a resource."""

    resource: int
    start: Cycles
    end: Cycles
    amount: int


class Reservations(NamedTuple):
    """The activities of an inference, what is busy in a period, and where each starts.

    Attributes
    ----------
    ways
        Activity ``i`` takes one of the ways ``ways[i]`` to ``ways[i + 1]``.
    begin, busy
        A way is busy as ``busy[begin[way]:begin[way + 1]]`` say, rows of :class:`Busy`.
    capacity
        Of each resource, in the unit of amounts.
    left
        Of a resource that can be full, how long what has no place yet will hold it: the longest gap
        stays as long as that. 0 for others.
    cycles, before, after
        Of each activity: it starts when those before have ended, and ends before those after start.
    release
        The cycle from which on each activity may start.
    start, way
        Of each activity; its way is -1 as long as it has no place.
    """

    ways: Ints
    begin: Ints
    busy: Table
    capacity: Ints
    left: Ints
    cycles: Ints
    before: Rows
    after: Rows
    timeline: Timeline
    release: Ints
    start: Ints
    way: Ints
    period: Cycles

    def emptied(self, period: Cycles, left: Ints) -> "Reservations":
        """Return the same with another period, nothing busy, and what is ``left`` to be."""
        count, held = self.cycles.size, self.busy.size
        # Each reservation is cut in two at most, and a full step function moves elsewhere.
        return self._replace(
            left=left.copy(),
            timeline=new_timeline(self.capacity.size, 16 * (held + 2 * self.capacity.size)),
            start=np.zeros(count, np.int64),
            way=np.full(count, NONE, np.int64),
            period=period,
        )


def reservations_for(
    ways: Sequence[Sequence[Sequence[Busy]]],
    capacity: Sequence[int],
    cycles: Sequence[Cycles],
    before: Rows,
    release: Ints | None = None,
) -> Reservations:
    """Return what activities ask for: what each way of each is busy with; without a period."""
    each = [way for some in ways for way in some]
    busy = table(sum(map(len, each)), *Busy._fields)
    for field, values in zip(Busy._fields, zip(*chain(*each), strict=True), strict=True):
        busy[field] = values
    return Reservations(
        ways=numbers(accumulate(map(len, ways), initial=0)),
        begin=numbers(accumulate(map(len, each), initial=0)),
        busy=busy,
        capacity=numbers(capacity),
        left=numbers(()),
        cycles=numbers(cycles),
        before=before,
        after=inverted(before, len(cycles)),
        timeline=new_timeline(0, 0),
        release=np.zeros(len(cycles), np.int64) if release is None else release,
        start=numbers(()),
        way=numbers(()),
        period=0,
    )


def place(asked: Reservations) -> int:
    """Place all activities, each as early as it can start; return the first without a place.

    What has a place is taken away first and starts no later than before. -1 if all have places.
    """
    kept, count = in_c(asked), whole(asked.cycles.size)
    loop = loop_at(address(kept))
    with cython.nogil:
        failed = _place_all(loop, count)
    return int(failed)


def delay(asked: Reservations, some: Ints, latest: Ints) -> None:
    """Let some activities start as late as those after them allow, the last one first.

    Each starts by its ``latest`` cycle, unless it did not before.
    """
    kept, which, count = in_c(asked), longs_at(address(some)), whole(some.size)
    loop, limits = loop_at(address(kept)), longs_at(address(latest))
    with cython.nogil:
        _delay(loop, which, limits, count)


def _place_all(loop: Reservations, count: int) -> int:
    """Do what :func:`place` does."""
    for one in range(count):
        is_new = loop.way[one] == NONE
        if not is_new:
            _hold(loop, loop.way[one], loop.start[one], -1)
        ready = loop.release[one]
        for item in range(loop.before.begin[one], loop.before.begin[one + 1]):
            before = loop.before.items[item]
            ready = max(ready, loop.start[before] + loop.cycles[before])
        best, chosen = NEVER, NONE
        for way in range(loop.ways[one], loop.ways[one + 1]):
            at = _first_from(loop, way, ready)
            if at < best:
                best, chosen = at, way
            if best == ready:
                break
        if chosen == NONE:
            return one
        loop.start[one], loop.way[one] = best, chosen
        _hold(loop, chosen, best, 1)
        for place in range(loop.begin[chosen], is_new * loop.begin[chosen + 1]):
            each = busy_at(loop.busy, place)
            loop.left[each.resource] -= min(loop.left[each.resource], each.end - each.start)
    return NONE


def _delay(loop: Reservations, some: Ints, latest: Ints, count: int) -> None:
    """Do what :func:`delay` does."""
    for place in range(count):
        one = some[count - 1 - place]
        last = latest[one]
        for item in range(loop.after.begin[one], loop.after.begin[one + 1]):
            last = min(last, loop.start[loop.after.items[item]] - loop.cycles[one])
        if last <= loop.start[one]:
            continue
        _hold(loop, loop.way[one], loop.start[one], -1)
        loop.start[one] = _last_until(loop, loop.way[one], last, loop.start[one])
        _hold(loop, loop.way[one], loop.start[one], 1)


def _first_from(loop: Reservations, way: int, ready: int) -> int:
    """Return the first cycle from ``ready`` on at which all of a way is free; NEVER without any."""
    first, past = loop.begin[way], loop.begin[way + 1]
    start, asked, agreed = ready, first, 0
    # They are asked in turn until all agree.
    while agreed < past - first:
        one = busy_at(loop.busy, asked)
        found = _first_gap(loop, one.resource, start + one.start, one.end - one.start, one.amount)
        if found - one.start >= ready + loop.period:
            return NEVER
        agreed = agreed + 1 if found - one.start == start else 1
        start = found - one.start
        asked = asked + 1 if asked + 1 < past else first
    return start


def _last_until(loop: Reservations, way: int, latest: int, least: int) -> int:
    """Return the last cycle down to ``least``, itself free, at which all of a way is free."""
    first, past = loop.begin[way], loop.begin[way + 1]
    start, asked, agreed = latest, first, 0
    while agreed < past - first and start > least:
        one = busy_at(loop.busy, asked)
        found = _last_gap(loop, one.resource, start + one.end, one.end - one.start, one.amount)
        found = max(least, found - one.end)
        agreed = agreed + 1 if found == start else 1
        start = found
        asked = asked + 1 if asked + 1 < past else first
    return start


def _first_gap(loop: Reservations, resource: int, ready: int, cycles: int, amount: int) -> int:
    """Return the first cycle from ``ready`` on with room for an amount for so many cycles."""
    timeline = timeline_in(loop.timeline)
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    spare, cycle = loop.capacity[resource] - amount, ready % loop.period
    step, past, turn = step_at(timeline, resource, cycle), row.begin + row.length, ready - cycle
    start = ready
    if loop.left[resource] > 0 and row.length > 1:
        start = _unbroken(loop, resource, ready, cycles, spare)
    while start < ready + loop.period and cycles <= loop.period:
        end = turn + (steps[step + 1].time if step + 1 < past else loop.period)
        if steps[step].load > spare:
            start = max(start, end)
        elif end >= start + cycles:
            return start
        step += 1
        if step == past:
            step = row.begin
            turn += loop.period
    return NEVER


def _unbroken(loop: Reservations, resource: int, ready: int, cycles: int, spare: int) -> int:
    """Return the first cycle from ``ready`` on that leaves a gap long enough for all that is left.

    So that fits in any case. What does not lie in the longest gap takes nothing of it.
    """
    timeline = timeline_in(loop.timeline)
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    longest, second, at, begun, first = 0, 0, 0, 0, NONE
    # A gap ends where something is busy; behind the last cycle it goes on with the first ones.
    for number in range(row.length + 1):
        is_end = number == row.length
        if not is_end and steps[row.begin + number].load <= spare:
            continue
        time = loop.period + max(0, first) if is_end else steps[row.begin + number].time
        if first == NONE:
            first = time
        elif time - begun > longest:
            second, longest, at = longest, time - begun, begun
        else:
            second = max(second, time - begun)
        if number + 1 < row.length:
            begun = steps[row.begin + number + 1].time
        elif not is_end:
            begun = loop.period
    within, left = (ready - at) % loop.period, loop.left[resource]
    room = max(0, longest - left)
    if within >= longest or within <= room or second >= left - cycles:
        return ready
    last: int = ready - within + longest - cycles - room
    return max(ready, last)


def _last_gap(loop: Reservations, resource: int, end: int, cycles: int, amount: int) -> int:
    """Return the last cycle up to ``end`` before which there is room for so many cycles."""
    timeline = timeline_in(loop.timeline)
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    spare, cycle = loop.capacity[resource] - amount, (end - 1) % loop.period
    step, turn, until = step_at(timeline, resource, cycle), end - 1 - cycle, end
    while until > end - loop.period:
        start = turn + steps[step].time
        if steps[step].load > spare:
            until = start
        elif start <= until - cycles:
            return until
        step -= 1
        if step < row.begin:
            step = row.begin + row.length - 1
            turn -= loop.period
    return end - loop.period


def _hold(loop: Reservations, way: int, start: int, sign: int) -> None:
    """Reserve a way of an activity that starts at a cycle, or give it back: ``sign`` -1."""
    timeline = timeline_in(loop.timeline)
    for place in range(loop.begin[way], loop.begin[way + 1]):
        one = busy_at(loop.busy, place)
        first, cycles = (start + one.start) % loop.period, one.end - one.start
        past, amount = min(first + cycles, loop.period), sign * one.amount
        if first < past:
            occupy(timeline, one.resource, first, past, amount)
        if first + cycles > past:
            occupy(timeline, one.resource, 0, first + cycles - past, amount)
