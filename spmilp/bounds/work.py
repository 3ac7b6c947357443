"""The work bound: the cores that can run some tasks need time for all of them."""

from itertools import combinations

from spmilp.bounds.critical_path import Paths
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, KindIdx

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
