"""Heads by what is before a task as a whole; tails with time reversed: see :func:`.paths_of`.

Tasks, edges and loads are flat arrays. Tasks are numbered such that each comes after all that
precede it; for tails, time is reversed.
"""

from typing import NamedTuple, TypeAlias

import cython
import numpy as np
from numpy.typing import NDArray

from spmilp.compiled import address, in_c

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import longs_at as known_at
    from spmilp.compiled import whole

    NEVER = 2**62


Ints: TypeAlias = NDArray[np.int64]


class Edges(NamedTuple):
    """The edges to each task from those before it: ``first[t]`` to ``first[t + 1]``.

    Each begins at the task ``earlier``, with ``lag`` cycles between the two. ``use`` is the bytes
    that the later one reads of the earlier one's results, and that pass the links into its memory
    if they come from another one; 0 if they need not come.
    """

    first: Ints
    earlier: Ints
    lag: Ints
    use: Ints


class Tasks(NamedTuple):
    """Of each task.

    ``alone`` is in cycles before its start for what it needs by itself, ``cycles`` its own, at
    least. At most ``sharing`` cores work in a memory in which it can run. ``use`` bytes come to it
    from DRAM over the links into its memory, whose rate is ``rate`` over ``over``; for the cycles
    ``apart`` transfers into its memory hold nothing of these links.
    """

    alone: Ints
    cycles: Ints
    sharing: Ints
    use: Ints
    rate: Ints
    over: Ints
    apart: Ints


class Ports(NamedTuple):
    """What tasks load from DRAMs: each port is the links out of one, or the channels.

    The jobs of port ``p`` and the ``t``-th of ``n`` tasks begin at ``first[p * (n + 1) + t]``. Jobs
    of one ``buffer`` are the same bytes; ``use`` is what each buffer holds of the port, whose rate
    is ``rate`` over ``over``. For the cycles ``apart`` loads hold nothing of a port.
    """

    first: Ints
    buffer: Ints
    use: Ints
    rate: Ints
    over: Ints
    apart: Ints


class Window(NamedTuple):
    """Tasks before one task; of each task the last one that has written it counts."""

    seen: Ints
    lag: Ints
    found: Ints


class Heap(NamedTuple):
    """Items, of which the one with the greatest key comes out first."""

    keys: Ints
    items: Ints


class Known(NamedTuple):
    """What is given and what has been found.

    ``latest`` has for each buffer the longest wait of a job for it, -1 for none; ``wanted`` the
    buffers with such a job. The counts are of tasks, ports and cores.
    """

    tasks: Tasks
    edges: Edges
    ports: Ports
    heads: Ints
    window: Window
    heap: Heap
    latest: Ints
    wanted: Ints
    task_count: int
    port_count: int
    cores: int


def raised_heads(
    tasks: Tasks, edges: Edges, ports: Ports, cores: int, width: int, every: int
) -> Ints:
    """Return the head of each task.

    The machine has so many ``cores``. Of the tasks before each the nearest ``width`` in the order
    are looked at; before every so many (``every``), from the last task on backwards, all are.
    """
    count, buffers = tasks.cycles.size, ports.use.size
    room = max(count, buffers, edges.lag.size) + 1
    known = Known(
        tasks,
        edges,
        ports,
        np.zeros(count, np.int64),
        Window(np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)),
        Heap(np.zeros(room, np.int64), np.zeros(room, np.int64)),
        np.full(buffers, -1, np.int64),
        np.zeros(buffers, np.int64),
        count,
        ports.rate.size,
        cores,
    )
    kept = in_c(known)
    here, near, sparse = known_at(address(kept)), whole(width), whole(every)
    with cython.nogil:
        _raise_heads(here, near, sparse)
    return known.heads


def _raise_heads(known: Known, width: int, every: int) -> None:
    """Find the heads of all tasks, each from those of the tasks before it."""
    for t in range(known.task_count):
        all_or_some = known.task_count if (known.task_count - 1 - t) % every == 0 else width
        size = _tasks_before(known, t, all_or_some)
        best = max(known.tasks.alone[t], _what_must_arrive(known, t))
        for edge in range(known.edges.first[t], known.edges.first[t + 1]):
            best = max(best, _end(known, known.edges.earlier[edge]) + known.edges.lag[edge])
        if size > 1:
            best = max(best, _cut(known, size, True), _cut(known, size, False))
        for port in range(known.port_count):
            best = max(best, _port(known, t, port, size))
        known.heads[t] = best


def _tasks_before(known: Known, t: int, width: int) -> int:
    """Find the tasks before ``t`` with their lags, the nearest first; return how many."""
    size = _reach(known, t, t, 0, 0)
    found = 0
    while size > 0 and found < width:
        size = _pop(known, size)
        x = known.heap.items[size]
        known.window.found[found] = x
        found += 1
        size = _reach(known, t, x, known.window.lag[x] + known.tasks.cycles[x], size)
    return found


def _reach(known: Known, t: int, x: int, after: int, size: int) -> int:
    """Note the ways to ``t`` from tasks right before ``x``, which starts ``after`` cycles before.

    Returns the size of the heap of tasks to go on from.
    """
    for edge in range(known.edges.first[x], known.edges.first[x + 1]):
        earlier, lag = known.edges.earlier[edge], after + known.edges.lag[edge]
        if known.window.seen[earlier] != t:
            known.window.seen[earlier] = t
            known.window.lag[earlier] = lag
            size = _push(known, size, earlier, earlier)
        else:
            known.window.lag[earlier] = max(known.window.lag[earlier], lag)
    return size


def _push(known: Known, size: int, key: int, item: int) -> int:
    """Put an item on the heap; return how many are there."""
    keys, items, at = known.heap.keys, known.heap.items, size
    while at > 0 and keys[(at - 1) >> 1] < key:
        keys[at], items[at] = keys[(at - 1) >> 1], items[(at - 1) >> 1]
        at = (at - 1) >> 1
    keys[at], items[at] = key, item
    return size + 1


def _pop(known: Known, size: int) -> int:
    """Move the item with the greatest key behind the others; return how many these are."""
    keys, items = known.heap.keys, known.heap.items
    size -= 1
    top, key, item = items[0], keys[size], items[size]
    at, child = 0, 1
    while child < size:
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[at], items[at] = keys[child], items[child]
        at, child = child, 2 * child + 1
    keys[at], items[at] = key, item
    items[size] = top
    return size


def _end(known: Known, x: int) -> int:
    """Return when a task can have ended."""
    return known.heads[x] + known.tasks.cycles[x]


def _what_must_arrive(known: Known, t: int) -> int:
    """Return when all that a task reads can have come to its memory."""
    size = 0
    for edge in range(known.edges.first[t], known.edges.first[t + 1]):
        if known.edges.use[edge] > 0:
            size = _push(known, size, _end(known, known.edges.earlier[edge]), edge)
    best = total = most = 0
    begin = shortest = NEVER
    while size > 0:
        size = _pop(known, size)
        edge = known.heap.items[size]
        x, use = known.edges.earlier[edge], known.edges.use[edge]
        total += use
        most = max(most, use)
        begin = min(begin, known.heads[x])
        shortest = min(shortest, known.tasks.cycles[x])
        release = _end(known, x)
        best = max(best, _until_arrived(known, t, total, most, begin, release, shortest))
    total += known.tasks.use[t]
    return max(best, _until_arrived(known, t, total, most, begin, 0, shortest))


def _until_arrived(
    known: Known, t: int, total: int, most: int, begin: int, release: int, shortest: int
) -> int:
    """Return the least T at which all can have come that has to come to a task's memory.

    Some tasks run in it, from ``begin`` on and for ``shortest`` cycles each, and what they write
    need not come: ``most`` each of ``total`` bytes. The rest is on its way from ``release`` on.
    """
    rate, over = known.tasks.rate[t], known.tasks.over[t]
    first = release + known.tasks.apart[t]
    if total <= 0 or rate <= 0 or shortest <= 0:
        return 0
    # Of more of them nothing comes; products with ``most`` could leave 64 bits.
    enough = total // most if most > 0 else NEVER
    low = 0
    high = first + -(-total * over // rate)
    while low < high:
        middle = (low + high) >> 1
        local = known.tasks.sharing[t] * max(0, (middle - begin) // shortest)
        rest = 0 if local > enough else total - local * most
        if rest == 0 or rest * over <= rate * (middle - first):
            high = middle
        else:
            low = middle + 1
    return low


def _cut(known: Known, count: int, by_head: bool) -> int:
    """Return when the tasks before a task can have been done: the cuts of `paths_of`.

    Of these tasks, those with the greatest heads are taken together, or with the greatest lags.
    """
    size = 0
    for number in range(count):
        x = known.window.found[number]
        size = _push(known, size, known.heads[x] if by_head else known.window.lag[x], x)
    best = work = 0
    head = lag = shortest = NEVER
    while size > 0:
        size = _pop(known, size)
        x = known.heap.items[size]
        work += known.tasks.cycles[x]
        head = min(head, known.heads[x])
        lag = min(lag, known.window.lag[x])
        shortest = min(shortest, known.tasks.cycles[x])
        done = count - size
        rounds = max(-(-work // known.cores), -(-done // known.cores) * shortest)
        best = max(best, head + lag + rounds)
    return best


def _port(known: Known, t: int, port: int, found: int) -> int:
    """Return when all that must have left a DRAM before a task starts can have left it."""
    count = _note_jobs(known, port, t, 0, 0)
    for number in range(found):
        x = known.window.found[number]
        count = _note_jobs(known, port, x, known.window.lag[x] + known.tasks.cycles[x], count)
    size = 0
    for number in range(count):
        buffer = known.wanted[number]
        size = _push(known, size, known.latest[buffer], buffer)
    best = total = 0
    while size > 0:
        size = _pop(known, size)
        buffer = known.heap.items[size]
        total += known.ports.use[buffer]
        sent = -(-total * known.ports.over[port] // known.ports.rate[port])
        best = max(best, sent + known.ports.apart[port] + known.latest[buffer])
        known.latest[buffer] = -1
    return best


def _note_jobs(known: Known, port: int, x: int, wait: int, count: int) -> int:
    """Note the buffers that a task loads, ``wait`` cycles before another one; return how many."""
    of_port = port * (known.task_count + 1)
    for job in range(known.ports.first[of_port + x], known.ports.first[of_port + x + 1]):
        buffer = known.ports.buffer[job]
        if known.latest[buffer] < 0:
            known.wanted[count] = buffer
            count += 1
        known.latest[buffer] = max(known.latest[buffer], wait)
    return count
