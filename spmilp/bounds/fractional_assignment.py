"""The linear relaxation of the assignment: tasks in shares on several kinds of core."""

from collections import Counter
from collections.abc import Sequence
from math import ceil

from spmilp.bounds.critical_path import Paths
from spmilp.bounds.prices import prices_of_shares
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, TaskIdx

MOST_SETS = 4
"""Sets of tasks with large heads, and with large tails, for each of which one program is solved."""


def fractional_assignment_bound(problem: Problem, paths: Paths) -> Cycles:
    """Return the bound on the makespan from tasks that may be split over kinds of core.

    Let Q be some tasks, ``x[t, k]`` the share of task ``t`` that the cores of kind ``k`` run, all
    or nothing in a plan, and ``T`` the cycles from the least head of Q to the least time after the
    tasks of Q. Then ``sum_t x[t, k] cycles[t, k] <= cores[k] T`` for each kind. For any prices
    ``y[k] >= 0`` with ``sum_k cores[k] y[k] = 1``, adding these up gives

        T >= sum_t sum_k x[t, k] y[k] cycles[t, k] >= sum_t min_k y[k] cycles[t, k]

    (weak duality; Lawler and Labetoulle, JACM 25(4), 1978, for unrelated machines). The prices come
    from an ascent on the dual of this linear program. Q is all tasks, then those with the largest
    heads or tails. With one kind of core the bound is that of the work.
    """
    machine = problem.machine
    present = sorted({core.kind for core in machine.cores})
    rows = {tuple(task.cycles[kind] for kind in present) for task in problem.tasks}
    if len(present) < 2 or not rows or not all(_runs(row) for row in rows):
        return 0
    cores = [sum(core.kind == kind for core in machine.cores) for kind in present]
    after = [tail - own for tail, own in zip(paths.tail, paths.cycles, strict=True)]
    best = 0
    for tasks in _sets(paths.head) | _sets(after):
        sorts = Counter(
            tuple(problem.tasks[task].cycles[kind] for kind in present) for task in sorted(tasks)
        )
        least_head = min(paths.head[task] for task in tasks)
        least_after = min(after[task] for task in tasks)
        best = max(best, least_head + _least(sorts, cores) + least_after)
    return best


def _runs(row: Sequence[Cycles | None]) -> bool:
    return any(cycles is not None for cycles in row)


def _sets(values: Sequence[Cycles]) -> set[frozenset[TaskIdx]]:
    """Return the tasks whose value is at least each of a few thresholds."""
    thresholds = sorted(set(values))
    step = -(-len(thresholds) // MOST_SETS)
    return {
        frozenset(task for task, value in enumerate(values) if value >= least)
        for least in thresholds[::step]
    }


def _least(sorts: Counter[tuple[Cycles | None, ...]], cores: Sequence[int]) -> Cycles:
    rows = sorted(sorts, key=str)
    counts = [sorts[row] for row in rows]
    prices = prices_of_shares(rows, counts, cores)
    total = sum(count * price for count, price in zip(cores, prices, strict=True))
    if total <= 0:
        return 0
    return ceil(
        sum(
            count * min(price * c for price, c in zip(prices, row, strict=True) if c is not None)
            for row, count in zip(rows, counts, strict=True)
        )
        / total
    )
