"""Least cycles between two tasks that have several others between them: see :func:`.paths_of`."""

import numpy as np

from spmilp.bounds.cut_tables import Edges, Ints, Tasks
from spmilp.bounds.least_times import until_arrived, until_done
from spmilp.compiled import compiled, part

COLUMNS = 11
COUNT, WORK, SHORTEST, USE, MOST, NEAR_IN, AWAY_IN, NEAR_OUT, AWAY_OUT, NEAR, AWAY = range(COLUMNS)
"""What is known of the tasks between one and another; the last two are lags by single tasks."""


@compiled
def lags_over_several(tasks: Tasks, edges: Edges, cores: int, found: Ints) -> int:
    """Find the pairs of tasks with larger lags than those of the single tasks between them.

    Parameters
    ----------
    found
        Rows for ``(earlier, later, near, away)``; as many as there are get filled.

    Returns
    -------
    int
        The number of such pairs.
    """
    count = tasks.cycles.size
    seen = np.full(count, -1, np.int64)
    rows = np.zeros((count, COLUMNS), np.int64)
    listed = np.zeros(count, np.int64)
    pairs = 0
    for t in range(count):
        if edges.first[t + 1] - edges.first[t] < 2:
            continue
        for number in range(_collect(t, tasks, edges, seen, rows, listed)):
            j = listed[number]
            if rows[j, COUNT] < 2:
                continue
            near, away = _lags(rows[j], tasks, j, t, cores)
            if near > rows[j, NEAR] or away > rows[j, AWAY]:
                if pairs < found.shape[0]:
                    found[pairs, 0], found[pairs, 1] = j, t
                    found[pairs, 2], found[pairs, 3] = near, away
                pairs += 1
    return pairs


@part
def _collect(t: int, tasks: Tasks, edges: Edges, seen: Ints, rows: Ints, listed: Ints) -> int:
    """Sum up what is between ``t`` and each task two steps before it; return how many there are."""
    count = 0
    for out in range(edges.first[t], edges.first[t + 1]):
        x = edges.earlier[out]
        own = tasks.cycles[x]
        for edge in range(edges.first[x], edges.first[x + 1]):
            j = edges.earlier[edge]
            row = rows[j]
            if seen[j] != t:
                seen[j] = t
                listed[count] = j
                count += 1
                row[:] = 0
                row[SHORTEST] = own
                row[NEAR_IN], row[AWAY_IN] = edges.near[edge], edges.away[edge]
                row[NEAR_OUT], row[AWAY_OUT] = edges.near[out], edges.away[out]
            row[COUNT] += 1
            row[WORK] += own
            row[USE] += edges.use[out]
            row[MOST] = max(row[MOST], edges.use[out])
            row[SHORTEST] = min(row[SHORTEST], own)
            row[NEAR_IN] = min(row[NEAR_IN], edges.near[edge])
            row[AWAY_IN] = min(row[AWAY_IN], edges.away[edge])
            row[NEAR_OUT] = min(row[NEAR_OUT], edges.near[out])
            row[AWAY_OUT] = min(row[AWAY_OUT], edges.away[out])
            once = min(edges.near[edge] + edges.away[out], edges.away[edge] + edges.near[out])
            row[NEAR] = max(row[NEAR], edges.near[edge] + own + edges.near[out])
            row[AWAY] = max(row[AWAY], own + once)
    return count


@part
def _lags(row: Ints, tasks: Tasks, j: int, t: int, cores: int) -> tuple[int, int]:
    """Return the least cycles from ``j`` to ``t``, and the least if they run in different memories.

    The cores are those of the memory of both, or of the two memories, and all others.
    """
    number, work, shortest = row[COUNT], row[WORK], row[SHORTEST]
    both = row[AWAY_IN] + row[AWAY_OUT]
    some = min(tasks.sharing[j], tasks.sharing[t], cores)
    least = row[NEAR_IN] + row[NEAR_OUT]
    together = until_done(some, cores - some, least, both, number, work, shortest)
    # Those in the memory of t begin when their data is there; results of the others come later.
    begin, release = row[NEAR_IN], row[AWAY_IN] + shortest
    arrived = until_arrived(t, tasks, row[USE], row[MOST], begin, release, shortest)
    together = max(together, arrived)
    some = min(tasks.sharing[j] + tasks.sharing[t], cores)
    least = min(row[NEAR_IN] + row[AWAY_OUT], row[AWAY_IN] + row[NEAR_OUT])
    apart = until_done(some, cores - some, least, both, number, work, shortest)
    begin, release = row[AWAY_IN], row[NEAR_IN] + shortest
    arrived = until_arrived(t, tasks, row[USE], row[MOST], begin, release, shortest)
    apart = max(apart, arrived)
    return min(together, apart), apart
