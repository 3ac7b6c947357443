"""An order that fuses operators in bands where their results do not fit."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.list_scheduler.orders import by_priority, operators_of, round_robin
from spmilp.units import TaskIdx

TIGHT = 0.5
"""Part of the scratchpads that results may fill which wait for their readers, if operators run one
after another."""


def fused_bands(problem: Problem, cores: Ints) -> Ints:
    """Return the tasks as :func:`round_robin`, but through operators with large results in bands.

    Where the results that wait for their readers would fill more than half of the scratchpads, all
    operators in a row of which that is true run together: of the tiles that none of them reads, one
    for each core at a time, and with these what they wait for. So a band of the results is there
    at one time, and all cores are at work on it (Alwani et al., "Fused-layer CNN accelerators",
    MICRO 2016; cores on bands of their own: Mei et al., "DeFiNES", HPCA 2023).

    Parameters
    ----------
    cores
        The core of each task; those of which it is open, -1, count as one core.
    """
    turns = round_robin(problem, cores)
    operators = operators_of(problem)
    is_tight = _tight_operators(problem, operators)
    if not is_tight.any():
        return turns
    before = problem.predecessors()
    rank = np.empty_like(turns)
    rank[turns] = np.arange(turns.size)
    keys = np.empty(turns.size)
    placed = 0
    for tasks in _runs(turns, operators, is_tight):
        fused = is_tight[operators[tasks[0]]]
        order = _banded(tasks, before, cores, operators, rank) if fused else tasks
        keys[order] = np.arange(placed, placed + len(order))
        placed += len(order)
    return by_priority(before, keys.tolist())


def _tight_operators(problem: Problem, operators: Ints) -> np.ndarray:
    """Say for each operator whether the results that wait while it runs are too large."""
    count = int(operators.max(initial=-1)) + 1
    homes = {core.memory for core in problem.machine.cores}
    sizes = [problem.machine.memories[home].usable for home in homes]
    capacity = sum(size for size in sizes if size is not None)
    if None in sizes or capacity == 0:
        return np.zeros(count, bool)
    last: dict[int, int] = {}
    for task in problem.tasks:
        for read in task.reads:
            buffer = problem.slices[read].buffer
            last[buffer] = max(last.get(buffer, 0), int(operators[task.index]))
    changes = np.zeros(count + 1)
    for task in problem.tasks:
        for written in task.writes:
            if written in last:
                size = problem.buffers[written].bytes
                first = int(operators[task.index])
                changes[first] += size
                changes[max(first, last[written]) + 1] -= size
    return np.cumsum(changes)[:-1] > TIGHT * capacity


def _runs(turns: Ints, operators: Ints, is_tight: np.ndarray) -> Iterator[list[TaskIdx]]:
    """Yield the tasks of each operator, or of several in a row with large results."""
    members: dict[int, list[TaskIdx]] = defaultdict(list)
    for task in turns.tolist():
        members[int(operators[task])].append(task)
    run: list[TaskIdx] = []
    for operator in range(is_tight.size):
        if run and not is_tight[operator]:
            yield run
            run = []
        run += members[operator]
        if not is_tight[operator]:
            yield run
            run = []
    if run:
        yield run


def _banded(
    run: Sequence[TaskIdx],
    before: Sequence[Collection[TaskIdx]],
    cores: Ints,
    operators: Ints,
    rank: Ints,
) -> list[TaskIdx]:
    """Return the tasks of a run band by band; in each band one operator after another."""
    waiting = set(run)
    is_read = {earlier for task in run for earlier in before[task]}
    turns = Counter[int]()
    bands: dict[int, list[TaskIdx]] = defaultdict(list)
    for task in run:
        if task not in is_read:
            core = int(cores[task])
            bands[turns[core]].append(task)
            turns[core] += 1
    order: list[TaskIdx] = []
    for number in sorted(bands):
        band = _taken_with_predecessors(bands[number], before, waiting)
        order += sorted(band, key=lambda task: (operators[task], rank[task]))
    return order


def _taken_with_predecessors(
    lasts: Sequence[TaskIdx], before: Sequence[Collection[TaskIdx]], waiting: set[TaskIdx]
) -> list[TaskIdx]:
    """Take tasks and what they follow out of those that are waiting."""
    waiting.difference_update(lasts)
    taken = list(lasts)
    for task in taken:
        for earlier in before[task]:
            if earlier in waiting:
                waiting.remove(earlier)
                taken.append(earlier)
    return taken
