"""Loads of engines and links over time, as step functions in one pool of arrays.

A resource (an engine with its channels, a link with its bytes per cycle) has steps:
from ``time`` to the time of the next step it carries ``load``. The last step is empty and
never ends. The pool grows by moving a full resource to its end with twice the slots.
"""

from typing import NamedTuple

import cython
import numpy as np

from spmilp.solvers.schedule.kernels.records import Ints, Table, row_of, table

if cython.compiled:
    pass  # the .pxd says what is a row in C
else:
    profile_at = row_of

FIRST_SLOTS = 8
"""Of each resource at the beginning; a full one gets twice as many."""


class Timeline(NamedTuple):
    """The step functions of all resources.

    The steps of resource ``r`` are ``steps[begin:begin + length]`` of the pool, which has room for
    ``pool`` of them and is used up to ``used[0]``.
    """

    steps: Table
    resources: Table
    used: Ints
    pool: int


def new_timeline(resources: int, pool: int) -> Timeline:
    """Return empty step functions with ``pool`` slots for breakpoints in all."""
    rows = table(resources, "begin", "length", "slots")
    rows["begin"] = np.arange(resources) * FIRST_SLOTS
    rows["length"] = 1
    rows["slots"] = FIRST_SLOTS
    pool = max(pool, resources * FIRST_SLOTS * 2)
    used = np.array([resources * FIRST_SLOTS], np.int64)
    return Timeline(table(pool, "time", "load"), rows, used, pool)


def earliest_gap(timeline: Timeline, resource: int, ready: int, cycles: int, spare: int) -> int:
    """Return the first cycle from ``ready`` on where ``spare`` is not exceeded for long enough.

    ``spare`` is the highest load that still fits: the resource's capacity less what is asked.
    """
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    last = row.begin + row.length - 1
    if steps[last].time <= ready:
        return ready
    step = step_at(timeline, resource, ready)
    start = ready
    while step < last:
        if steps[step].load > spare:
            step += 1
            start = steps[step].time
        elif steps[step + 1].time >= start + cycles:
            return start
        else:
            step += 1
    return start


def step_at(timeline: Timeline, resource: int, cycle: int) -> int:
    """Return the position in the pool of the step of a resource that holds ``cycle``."""
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    low, high = row.begin, row.begin + row.length - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if steps[middle].time <= cycle:
            low = middle
        else:
            high = middle - 1
    return low


def occupy(timeline: Timeline, resource: int, start: int, end: int, demand: int) -> bool:
    """Add ``demand`` during ``[start, end)``; return False when the pool is full."""
    row = profile_at(timeline.resources, resource)
    if row.length + 2 > row.slots and not _grow(timeline, resource):
        return False
    first = _cut(timeline, resource, start)
    last = _cut(timeline, resource, end)
    for step in range(first, last):
        timeline.steps[step].load += demand
    _merge(timeline, resource, last)
    _merge(timeline, resource, first)
    return True


def _cut(timeline: Timeline, resource: int, cycle: int) -> int:
    """Make ``cycle`` a breakpoint; return its position in the pool."""
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    before = step_at(timeline, resource, cycle)
    if steps[before].time == cycle:
        return before
    for step in range(row.begin + row.length, before, -1):
        steps[step] = steps[step - 1]
    steps[before + 1].time = cycle
    row.length += 1
    return before + 1


def _merge(timeline: Timeline, resource: int, step: int) -> None:
    """Drop the breakpoint ``step`` when nothing changes there."""
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    if step == row.begin or steps[step].load != steps[step - 1].load:
        return
    for later in range(step, row.begin + row.length - 1):
        steps[later] = steps[later + 1]
    row.length -= 1


def _grow(timeline: Timeline, resource: int) -> bool:
    """Move a resource to the end of the pool with twice the slots; False when the pool is full."""
    steps, row = timeline.steps, profile_at(timeline.resources, resource)
    begin = timeline.used[0]
    if begin + 2 * row.slots > timeline.pool:
        return False
    for step in range(row.length):
        steps[begin + step] = steps[row.begin + step]
    row.begin = begin
    row.slots *= 2
    timeline.used[0] = begin + row.slots
    return True
