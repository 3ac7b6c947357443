"""The tasks before one, and the least cycles between them and it: see :func:`.paths_of`."""

from typing import NamedTuple

from spmilp.bounds.cut_tables import Edges, Ints, Tasks
from spmilp.compiled import part


class Window(NamedTuple):
    """Arrays for tasks before one task; of each task the last one that has written it counts."""

    seen: Ints
    near: Ints
    away: Ints
    heap: Ints
    found: Ints


@part
def tasks_before(t: int, tasks: Tasks, edges: Edges, window: Window, width: int) -> int:
    """Find the tasks before ``t`` with their lags, the nearest first; return how many."""
    size = 0
    for edge in range(edges.first[t], edges.first[t + 1]):
        x = edges.earlier[edge]
        size = _reach(window, t, x, edges.near[edge], edges.away[edge], size)
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
