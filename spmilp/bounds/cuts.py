"""Heads by what is before a task as a whole; tails with time reversed: see :func:`.paths_of`.

Tasks, edges and loads are flat arrays. Tasks are numbered such that each comes after all that
precede it; for tails, time is reversed.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.numba_layer import compiled, part

Ints: TypeAlias = NDArray[np.int64]


class Edges(NamedTuple):
    """The edges to each task from those before it: ``first[t]`` to ``first[t + 1]``.

    Parameters
    ----------
    earlier
        The task that each begins at.
    lag
        Cycles between the two.
    use
        Bytes that what the later one reads of the earlier one's results holds on the links into its
        memory if it comes from another one; 0 if it need not come.
    """

    first: Ints
    earlier: Ints
    lag: Ints
    use: Ints


class Tasks(NamedTuple):
    """Of each task.

    Parameters
    ----------
    alone
        Cycles before its start for what it needs by itself.
    cycles
        Its own, at least.
    sharing
        The most cores that work in a memory in which it can run.
    use
        Bytes that what comes to it from DRAM holds on the links into its memory.
    rate, over
        Numerator and denominator of the rate of the links into its memory.
    """

    alone: Ints
    cycles: Ints
    sharing: Ints
    use: Ints
    rate: Ints
    over: Ints


class Ports(NamedTuple):
    """What tasks load from DRAMs: the jobs of port ``p`` and task ``t`` begin at ``first[p, t]``.

    Parameters
    ----------
    buffer
        Of each job; jobs of one buffer are the same bytes.
    use
        For each buffer, what it holds on the port's links.
    rate, over
        Numerator and denominator of the rate of each port.
    """

    first: Ints
    buffer: Ints
    use: Ints
    rate: Ints
    over: Ints


@part
def until_done(cores: int, number: int, work: int, shortest: int) -> int:
    """Return the least cycles in which cores do some work, a number of tasks of ``shortest``."""
    return max(-(-work // cores), -(-number // cores) * shortest)


@part
def until_arrived(
    t: int, tasks: Tasks, total: int, most: int, begin: int, release: int, shortest: int
) -> int:
    """Return the least T at which all can have come that has to come to a task's memory.

    Some tasks run in it, from ``begin`` on and for ``shortest`` cycles each, and what they write
    need not come: ``most`` each of ``total`` bytes. The rest comes from ``release`` on.
    """
    rate, over = tasks.rate[t], tasks.over[t]
    if total <= 0 or rate <= 0:
        return 0
    low = 0
    high = max(0, release) + -(-total * over // rate)
    while low < high:
        middle = (low + high) // 2
        local = tasks.sharing[t] * max(0, (middle - begin) // shortest)
        rest = max(0, total - local * most)
        if rest == 0 or rest * over <= rate * (middle - release):
            high = middle
        else:
            low = middle + 1
    return low


class Window(NamedTuple):
    """Arrays for tasks before one task; of each task the last one that has written it counts."""

    seen: Ints
    lag: Ints
    heap: Ints
    found: Ints


@part
def tasks_before(t: int, tasks: Tasks, edges: Edges, window: Window, width: int) -> int:
    """Find the tasks before ``t`` with their lags, the nearest first; return how many."""
    size = 0
    for edge in range(edges.first[t], edges.first[t + 1]):
        x = edges.earlier[edge]
        size = _reach(window, t, x, edges.lag[edge], size)
    found = 0
    while size > 0 and found < width:
        x, size = _pop(window.heap, size)
        window.found[found] = x
        found += 1
        for edge in range(edges.first[x], edges.first[x + 1]):
            lag = window.lag[x] + tasks.cycles[x] + edges.lag[edge]
            size = _reach(window, t, edges.earlier[edge], lag, size)
    return found


@part
def _reach(window: Window, t: int, x: int, lag: int, size: int) -> int:
    """Note a way from ``x`` to ``t``; return the size of the heap of tasks to go on from."""
    if window.seen[x] != t:
        window.seen[x] = t
        window.lag[x] = lag
        return _push(window.heap, size, x)
    window.lag[x] = max(window.lag[x], lag)
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
        np.zeros(count + 1, np.int64),
        np.zeros(count, np.int64),
    )
    latest = np.full(ports.use.size, -1, np.int64)
    wanted = np.zeros(ports.use.size, np.int64)
    for t in range(count):
        best = tasks.alone[t]
        for edge in range(edges.first[t], edges.first[t + 1]):
            x = edges.earlier[edge]
            best = max(best, heads[x] + tasks.cycles[x] + edges.lag[edge])
        best = max(best, _what_must_arrive(t, heads, tasks, edges))
        wide = (count - 1 - t) % every == 0
        size = tasks_before(t, tasks, edges, window, count if wide else width)
        if size > 1:
            best = max(best, _cut(window.found[:size], heads, tasks, window, cores))
        for port in range(ports.rate.size):
            best = max(best, _port(t, port, size, tasks, ports, window, latest, wanted))
        heads[t] = best
    return heads


@part
def _what_must_arrive(t: int, heads: Ints, tasks: Tasks, edges: Edges) -> int:
    """Return when all that a task reads can have come to its memory."""
    first, last = edges.first[t], edges.first[t + 1]
    best = total = most = 0
    begin = shortest = 1 << 62
    ends = heads[edges.earlier[first:last]] + tasks.cycles[edges.earlier[first:last]]
    for position in np.argsort(-ends):
        edge = first + position
        x = edges.earlier[edge]
        if edges.use[edge] > 0:
            total += edges.use[edge]
            most = max(most, edges.use[edge])
            begin = min(begin, heads[x])
            shortest = min(shortest, tasks.cycles[x])
            release = ends[position]
            best = max(best, until_arrived(t, tasks, total, most, begin, release, shortest))
    total += tasks.use[t]
    return max(best, until_arrived(t, tasks, total, most, begin, 0, shortest))


@part
def _cut(found: Ints, heads: Ints, tasks: Tasks, window: Window, cores: int) -> int:
    """Return when the tasks before a task can have been done: the cuts of `paths_of`.

    Of these tasks, those with the greatest heads are taken together, or with the greatest lags.
    """
    best = 0
    for by_head in (True, False):
        keys = heads[found] if by_head else window.lag[found]
        work = 0
        head = lag = shortest = 1 << 62
        for number, position in enumerate(np.argsort(-keys), 1):
            x = found[position]
            work += tasks.cycles[x]
            head = min(head, heads[x])
            lag = min(lag, window.lag[x])
            shortest = min(shortest, tasks.cycles[x])
            best = max(best, head + lag + until_done(cores, number, work, shortest))
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
        wait = 0 if number < 0 else window.lag[x] + tasks.cycles[x]
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
