"""The tasks before one, and the least cycles between them and it: see :func:`.paths_of`."""

from typing import NamedTuple

from spmilp.bounds.cut_tables import Edges, Ints, Tasks
from spmilp.bounds.least_times import until_arrived, until_done
from spmilp.compiled import part


class Window(NamedTuple):
    """Arrays for tasks before one task; of each task the last one that has written it counts."""

    seen: Ints
    near: Ints
    away: Ints
    heap: Ints
    found: Ints


class Between(NamedTuple):
    """Arrays for what lies between one task and another: of the former, in ``row``, by column."""

    seen: Ints
    row: Ints
    listed: Ints


COUNT, WORK, SHORTEST, USE, MOST, NEAR_IN, AWAY_IN, NEAR_OUT, AWAY_OUT = range(9)
"""Columns of :class:`Between`."""


@part
def tasks_before(
    t: int,
    tasks: Tasks,
    edges: Edges,
    window: Window,
    between: Between,
    cores: int,
    width: int,
    count_between: bool,
) -> int:
    """Find the tasks before ``t`` with their lags, the nearest first; return how many."""
    size = 0
    for edge in range(edges.first[t], edges.first[t + 1]):
        x = edges.earlier[edge]
        size = _reach(window, t, x, edges.near[edge], edges.away[edge], size)
    if count_between and edges.first[t + 1] - edges.first[t] > 1:
        size = _reach_over_several(t, tasks, edges, window, between, cores, size)
    found = 0
    while size > 0 and found < width:
        x, size = _pop(window.heap, size)
        window.found[found] = x
        found += 1
        for edge in range(edges.first[x], edges.first[x + 1]):
            near = window.near[x] + tasks.cycles[x] + edges.near[edge]
            # One of the two edges leads to another memory.
            away = min(
                window.away[x] + tasks.cycles[x] + edges.near[edge],
                window.near[x] + tasks.cycles[x] + edges.away[edge],
            )
            size = _reach(window, t, edges.earlier[edge], near, away, size)
    return found


@part
def _reach(window: Window, t: int, x: int, near: int, away: int, size: int) -> int:
    """Note a way from ``x`` to ``t``; return the size of the heap of tasks to go on from."""
    if window.seen[x] != t:
        window.seen[x] = t
        window.near[x] = near
        window.away[x] = max(near, away)
        return _push(window.heap, size, x)
    window.near[x] = max(window.near[x], near)
    window.away[x] = max(window.away[x], near, away)
    return size


@part
def _push(heap: Ints, size: int, x: int) -> int:
    at = size
    while at > 0 and heap[(at - 1) // 2] < x:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = x
    return size + 1


@part
def _pop(heap: Ints, size: int) -> tuple[int, int]:
    """Take the largest number out of the heap."""
    top, last = heap[0], heap[size - 1]
    size -= 1
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return top, size


@part
def _reach_over_several(
    t: int,
    tasks: Tasks,
    edges: Edges,
    window: Window,
    between: Between,
    cores: int,
    size: int,
) -> int:
    """Note the ways to ``t`` from tasks that are before several of those straight before it."""
    count = 0
    row = between.row
    for out in range(edges.first[t], edges.first[t + 1]):
        x = edges.earlier[out]
        for edge in range(edges.first[x], edges.first[x + 1]):
            j = edges.earlier[edge]
            if between.seen[j] != t:
                between.seen[j] = t
                between.listed[count] = j
                count += 1
                row[j, COUNT] = row[j, WORK] = row[j, USE] = row[j, MOST] = 0
                row[j, SHORTEST] = tasks.cycles[x]
                row[j, NEAR_IN], row[j, AWAY_IN] = edges.near[edge], edges.away[edge]
                row[j, NEAR_OUT], row[j, AWAY_OUT] = edges.near[out], edges.away[out]
            row[j, COUNT] += 1
            row[j, WORK] += tasks.cycles[x]
            row[j, USE] += edges.use[out]
            row[j, MOST] = max(row[j, MOST], edges.use[out])
            row[j, SHORTEST] = min(row[j, SHORTEST], tasks.cycles[x])
            row[j, NEAR_IN] = min(row[j, NEAR_IN], edges.near[edge])
            row[j, AWAY_IN] = min(row[j, AWAY_IN], edges.away[edge])
            row[j, NEAR_OUT] = min(row[j, NEAR_OUT], edges.near[out])
            row[j, AWAY_OUT] = min(row[j, AWAY_OUT], edges.away[out])
    for number in range(count):
        j = between.listed[number]
        if row[j, COUNT] > 1:
            near, away = _lags_over(row[j], tasks, t, cores)
            size = _reach(window, t, j, near, away, size)
    return size


@part
def _lags_over(row: Ints, tasks: Tasks, t: int, cores: int) -> tuple[int, int]:
    """Return the least cycles from a task to ``t``, between which there are several others.

    At least, and at least if the two run in different memories.
    """
    some = min(tasks.sharing[t], cores)
    number, work, shortest = row[COUNT], row[WORK], row[SHORTEST]
    both = row[AWAY_IN] + row[AWAY_OUT]
    together = until_done(
        some, cores - some, row[NEAR_IN] + row[NEAR_OUT], both, number, work, shortest
    )
    arrived = until_arrived(
        t, tasks, row[USE], row[MOST], row[NEAR_IN], row[AWAY_IN] + shortest, shortest
    )
    together = max(together, arrived)
    two = min(2 * some, cores)
    least = min(row[NEAR_IN] + row[AWAY_OUT], row[AWAY_IN] + row[NEAR_OUT])
    apart = until_done(two, cores - two, least, both, number, work, shortest)
    arrived = until_arrived(
        t, tasks, row[USE], row[MOST], row[AWAY_IN], row[NEAR_IN] + shortest, shortest
    )
    apart = max(apart, arrived)
    return min(together, apart), apart
