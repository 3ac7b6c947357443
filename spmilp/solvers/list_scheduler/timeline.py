"""What each engine and link carries over time, as step functions in one pool of arrays.

A resource (an engine with its channels, a link with its bytes per cycle) has steps:
from ``time`` to the time of the next step it carries ``load``. The last step is empty and
never ends. The pool grows by moving a full resource to its end with twice the room.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from spmilp.solvers.list_scheduler.records import Ints, Table, table

FIRST_ROOM = 8


class Timeline(NamedTuple):
    """The step functions of all resources.

    The steps of resource ``r`` are ``steps[base:base + length]`` of the pool, which is used up to
    ``used[0]``.
    """

    steps: Table
    resources: Table
    used: Ints


def new_timeline(resources: int, pool: int) -> Timeline:
    """Return empty step functions with room for ``pool`` breakpoints in all."""
    rows = table(resources, "base", "length", "room")
    rows["base"] = np.arange(resources) * FIRST_ROOM
    rows["length"] = 1
    rows["room"] = FIRST_ROOM
    return Timeline(
        steps=table(max(pool, resources * FIRST_ROOM * 2), "time", "load"),
        resources=rows,
        used=np.array([resources * FIRST_ROOM], np.int64),
    )


@njit(cache=True)
def earliest_gap(line: Timeline, resource: int, ready: int, cycles: int, spare: int) -> int:
    """Return the first cycle from ``ready`` on where ``spare`` is not exceeded for long enough.

    ``spare`` is the highest load that leaves room, the resource's capacity less what is asked.
    """
    base = line.resources[resource].base
    last = base + line.resources[resource].length - 1
    low, high = base, last
    while low < high:
        middle = (low + high + 1) >> 1
        if line.steps[middle].time <= ready:
            low = middle
        else:
            high = middle - 1
    step = low
    start = ready
    while step < last:
        if line.steps[step].load > spare:
            step += 1
            start = line.steps[step].time
        elif line.steps[step + 1].time >= start + cycles:
            return start
        else:
            step += 1
    return start


@njit(cache=True)
def occupy(line: Timeline, resource: int, start: int, end: int, demand: int) -> bool:
    """Add ``demand`` during ``[start, end)``; return False when the pool is full."""
    row = line.resources[resource]
    if row.length + 2 > row.room and not _move_to_a_larger_room(line, resource):
        return False
    first = _cut(line, resource, start)
    last = _cut(line, resource, end)
    base = line.resources[resource].base
    for step in range(first, last):
        line.steps[base + step].load += demand
    _merge(line, resource, last)
    _merge(line, resource, first)
    return True


@njit(cache=True)
def _cut(line: Timeline, resource: int, cycle: int) -> int:
    """Make ``cycle`` a breakpoint; return its position among the resource's steps."""
    base = line.resources[resource].base
    low, high = 0, line.resources[resource].length - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if line.steps[base + middle].time <= cycle:
            low = middle
        else:
            high = middle - 1
    if line.steps[base + low].time == cycle:
        return low
    for step in range(base + line.resources[resource].length, base + low + 1, -1):
        line.steps[step].time = line.steps[step - 1].time
        line.steps[step].load = line.steps[step - 1].load
    line.steps[base + low + 1].time = cycle
    line.steps[base + low + 1].load = line.steps[base + low].load
    line.resources[resource].length += 1
    return low + 1


@njit(cache=True)
def _merge(line: Timeline, resource: int, step: int) -> None:
    """Drop the breakpoint ``step`` when nothing changes there."""
    base = line.resources[resource].base
    if step == 0 or line.steps[base + step].load != line.steps[base + step - 1].load:
        return
    for later in range(base + step, base + line.resources[resource].length - 1):
        line.steps[later].time = line.steps[later + 1].time
        line.steps[later].load = line.steps[later + 1].load
    line.resources[resource].length -= 1


@njit(cache=True)
def _move_to_a_larger_room(line: Timeline, resource: int) -> bool:
    room = 2 * line.resources[resource].room
    base = line.used[0]
    if base + room > line.steps.size:
        return False
    old = line.resources[resource].base
    for step in range(line.resources[resource].length):
        line.steps[base + step].time = line.steps[old + step].time
        line.steps[base + step].load = line.steps[old + step].load
    line.resources[resource].base = base
    line.resources[resource].room = room
    line.used[0] = base + room
    return True
