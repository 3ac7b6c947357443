"""Heads by what is before a task as a whole; tails with time reversed: see :func:`.paths_of`."""

import numpy as np

from spmilp.bounds.cut_tables import Edges, Ints, Ports, Tasks
from spmilp.bounds.lags import Window, tasks_before
from spmilp.bounds.least_times import until_arrived, until_done
from spmilp.compiled import compiled, part


@compiled
def raised_heads(
    tasks: Tasks, edges: Edges, ports: Ports, cores: int, width: int, every: int
) -> Ints:
    """Return the head of each task.

    Parameters
    ----------
    cores
        Of the machine.
    width
        How many tasks before each are looked at; the nearest ones in the order.
    every
        From the last task on backwards, for every so many all tasks before it are looked at.
    """
    count = tasks.cycles.size
    heads = np.zeros(count, np.int64)
    window = Window(
        np.full(count, -1, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count + 1, np.int64),
        np.zeros(count, np.int64),
    )
    latest = np.full(ports.use.size, -1, np.int64)
    wanted = np.zeros(ports.use.size, np.int64)
    for t in range(count):
        best = tasks.alone[t]
        for edge in range(edges.first[t], edges.first[t + 1]):
            x = edges.earlier[edge]
            best = max(best, heads[x] + tasks.cycles[x] + edges.near[edge])
        best = max(best, _what_must_arrive(t, heads, tasks, edges))
        wide = (count - 1 - t) % every == 0
        size = tasks_before(t, tasks, edges, window, count if wide else width)
        if size > 1:
            best = max(best, _cut(t, window.found[:size], heads, tasks, window, cores))
        for port in range(ports.rate.size):
            best = max(best, _port(t, port, size, tasks, ports, window, latest, wanted))
        heads[t] = best
    return heads


@part
def _what_must_arrive(t: int, heads: Ints, tasks: Tasks, edges: Edges) -> int:
    """Return when all that a task reads can have come to its memory."""
    first, last = edges.first[t], edges.first[t + 1]
    best = 0
    if tasks.rate[t] <= 0:
        return best
    if tasks.use[t] > 0:
        best = -(-tasks.use[t] * tasks.over[t] // tasks.rate[t])
    if first == last:
        return best
    ends = np.empty(last - first, np.int64)
    for edge in range(first, last):
        x = edges.earlier[edge]
        ends[edge - first] = heads[x] + tasks.cycles[x]
    order = np.argsort(-ends)
    total = most = 0
    begin = shortest = 1 << 62
    for position in range(order.size):
        edge = first + order[position]
        x = edges.earlier[edge]
        if edges.use[edge] == 0:
            continue
        total += edges.use[edge]
        most = max(most, edges.use[edge])
        begin = min(begin, heads[x])
        shortest = min(shortest, tasks.cycles[x])
        release = ends[order[position]]
        best = max(best, until_arrived(t, tasks, total, most, begin, release, shortest))
    if total > 0:
        total += tasks.use[t]
        best = max(best, until_arrived(t, tasks, total, most, begin, 0, shortest))
    return best


@part
def _cut(t: int, found: Ints, heads: Ints, tasks: Tasks, window: Window, cores: int) -> int:
    """Return when the tasks before a task can have been done."""
    some = min(tasks.sharing[t], cores)
    others = cores - some
    size = found.size
    keys = np.empty(size, np.int64)
    best = 0
    for way in range(3):
        for number in range(size):
            x = found[number]
            if way == 0:
                keys[number] = -heads[x]
            elif way == 1:
                keys[number] = -window.near[x]
            else:
                keys[number] = -(heads[x] + tasks.cycles[x] + window.away[x])
        order = np.argsort(keys)
        work = 0
        head = near = away = shortest = 1 << 62
        local = 0
        joined = 1 << 62
        for number in range(size):
            x = found[order[number]]
            if way == 2:
                joined = min(joined, max(local, -keys[order[number]]))
            work += tasks.cycles[x]
            head = min(head, heads[x])
            near = min(near, window.near[x])
            away = min(away, window.away[x])
            shortest = min(shortest, tasks.cycles[x])
            if way == 2:
                alone = until_done(some, 0, near, near, number + 1, work, shortest)
                local = max(local, head + alone)
            else:
                end = until_done(some, others, near, away, number + 1, work, shortest)
                best = max(best, head + end)
        if way == 2:
            best = max(best, min(joined, local))
    return best


@part
def _port(
    t: int,
    port: int,
    size: int,
    tasks: Tasks,
    ports: Ports,
    window: Window,
    latest: Ints,
    wanted: Ints,
) -> int:
    """Return when all that must have left a DRAM before a task starts can have left it."""
    count = 0
    for number in range(-1, size):
        x = t if number < 0 else window.found[number]
        wait = 0 if number < 0 else window.near[x] + tasks.cycles[x]
        for job in range(ports.first[port, x], ports.first[port, x + 1]):
            buffer = ports.buffer[job]
            if latest[buffer] < 0:
                wanted[count] = buffer
                count += 1
            latest[buffer] = max(latest[buffer], wait)
    buffers = wanted[:count]
    best = total = 0
    for number in np.argsort(-latest[buffers]):
        buffer = buffers[number]
        total += ports.use[buffer]
        end = -(-total * ports.over[port] // ports.rate[port]) + latest[buffer]
        best = max(best, end)
    latest[buffers] = -1
    return best
