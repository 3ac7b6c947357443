"""Work bounds: the cores that can run some tasks need time for all of them.

In the fractional assignment, the linear relaxation, tasks run in shares on several kinds of core.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import ceil

from spmilp.bounds.critical_path import Paths
from spmilp.bounds.prices import prices_of_shares
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, KindIdx, TaskIdx

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
    for tasks in sets_by_threshold(paths.head, MOST_SETS) | sets_by_threshold(after, MOST_SETS):
        sorts = Counter(
            tuple(problem.tasks[task].cycles[kind] for kind in present) for task in sorted(tasks)
        )
        least_head = min(paths.head[task] for task in tasks)
        least_after = min(after[task] for task in tasks)
        best = max(best, least_head + _least(sorts, cores) + least_after)
    return best


def _runs(row: Sequence[Cycles | None]) -> bool:
    return any(cycles is not None for cycles in row)


def sets_by_threshold(values: Sequence[Cycles], most: int) -> set[frozenset[TaskIdx]]:
    """Return the tasks whose value is at least each of a few thresholds."""
    thresholds = sorted(set(values))
    step = max(1, -(-len(thresholds) // most))
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


MOST_KINDS_COMBINED = 6


def work_bound(problem: Problem, paths: Paths) -> Cycles:
    """Return the best bound from the work of tasks that only some kinds of core can run.

    Let K be a set of kinds and Q the tasks that no other kind can run. The cores of K run all of
    Q, one task at a time each, none before the least head of Q, and after the last one ends at
    least the least tail of Q less its own cycles must pass. So

        makespan >= min head(Q) + ceil(sum cycles(Q) / cores(K)) + min (tail - cycles)(Q).

    Some core of K runs ``ceil(|Q| / cores(K))`` tasks at least, so the term in the middle is at
    least that many times the least cycles of Q. Fernandez and Bussell, "Bounds on the number of
    processors and time for multiprocessor optimal schedules", IEEE Trans. Computers C-22(8), 1973.
    Q is narrowed to the tasks with a head of at least each value in turn (the last layers), and to
    those with a tail of at least each value.
    """
    able = [kinds_able(task.cycles) for task in problem.tasks]
    return max((_bound_of(problem, paths, able, kinds) for kinds in unions(set(able))), default=0)


def kinds_able(cycles: tuple[Cycles | None, ...]) -> frozenset[KindIdx]:
    return frozenset(kind for kind, some in enumerate(cycles) if some is not None)


def unions(sets: set[frozenset[KindIdx]]) -> list[frozenset[KindIdx]]:
    """Return the unions of the sets; of many different sets only each one and the union of all."""
    ordered = sorted(sets, key=sorted)
    if len(ordered) > MOST_KINDS_COMBINED:
        return [*ordered, frozenset().union(*ordered)]
    found = {
        frozenset().union(*some)
        for count in range(1, len(ordered) + 1)
        for some in combinations(ordered, count)
    }
    return sorted(found, key=sorted)


def _bound_of(
    problem: Problem, paths: Paths, able: list[frozenset[KindIdx]], kinds: frozenset[KindIdx]
) -> Cycles:
    tasks = [index for index, some in enumerate(able) if some <= kinds]
    cores = sum(core.kind in kinds for core in problem.machine.cores)
    after = {task: paths.tail[task] - paths.cycles[task] for task in tasks}
    by_head = sorted(tasks, key=lambda task: -paths.head[task])
    by_tail = sorted(tasks, key=lambda task: -after[task])
    return max(
        _best_of_prefixes(by_head, paths.head, after, paths.cycles, cores),
        _best_of_prefixes(by_tail, paths.head, after, paths.cycles, cores),
    )


def _best_of_prefixes(
    tasks: list[int],
    head: tuple[Cycles, ...],
    after: dict[int, Cycles],
    cycles: tuple[Cycles, ...],
    cores: int,
) -> Cycles:
    """Return the best bound among the sets of the first one, two, three ... tasks."""
    best = total = 0
    least_head = least_after = least_cycles = None
    for count, task in enumerate(tasks, start=1):
        own = cycles[task]
        total += own
        least_cycles = own if least_cycles is None else min(least_cycles, own)
        least_head = head[task] if least_head is None else min(least_head, head[task])
        least_after = after[task] if least_after is None else min(least_after, after[task])
        needed = max(-(-total // cores), -(-count // cores) * least_cycles)
        best = max(best, least_head + needed + least_after)
    return best
