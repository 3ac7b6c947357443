"""Orders in which tasks are placed: each rule returns every task once, after all that it follows.

A rule gets the core of each task, or -1 where the scheduler is to choose. One of them fuses
operators in bands where their results do not fit.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, groupby
from math import gcd, inf

import numpy as np
from numpy.typing import NDArray

from spmilp.cached import cached
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.schedule.kernels.records import NONE, Ints, numbered, numbers, rows_from_pairs
from spmilp.solvers.schedule.kernels.tables import (
    precedence,
    problem_tables,
    remaining_cycles,
    writers_of_buffers,
)
from spmilp.units import SliceIdx, TaskIdx


def layer_by_layer(problem: Problem) -> Ints:
    """Return the tasks in the order of the problem: one operator after another."""
    return numbers(problem.topological_order())


def round_robin(problem: Problem, cores: Ints) -> Ints:
    """Return the tasks operator by operator, of each operator one per core in turn.

    Tasks that read the same slice of their operator's larger operand stand together: of what is
    there at cycle 0 (weights) where that is more, otherwise of what other tasks compute. Where all
    of it does not fit, the order of the tiles decides how often it is loaded (weight and input
    stationary dataflows: Sze et al., "Efficient processing of deep neural networks", Proceedings of
    the IEEE 105, 2017).

    What the scheduler places later finds what is left of memories and links, so tasks should come
    in about the order in which they will run; and cores run side by side. Where one of them has all
    of its tiles placed first, the others come to operands that have had to leave again.

    Of the cores that share an operand the first one loads it from DRAM, by the port that is nearest
    to it. Where a DRAM has several, each round begins with another core, so that all are used.
    Tasks whose core is open, -1, count as one core.
    """
    operators = _stationary_operators(problem)
    tasks = numbers(chain.from_iterable(operators))
    operator = np.repeat(np.arange(len(operators)), [len(some) for some in operators])
    core, count = cores[tasks], len(problem.machine.cores)
    placed = _turns_of_pairs(operator * (count + 1) + core + 1)
    leaving = Counter(link.source for link in problem.machine.links)
    has_ports = any(leaving[dram.name] > 1 for dram in problem.machine.drams)
    step = _rotation(count) if has_ports else 0
    turn = np.where(core >= 0, (core + (placed + 1) * step) % count, core)
    return _one_after_another(problem, tasks[np.lexsort((tasks, turn, placed, operator))])


def _turns_of_pairs(numbers_of_pairs: Ints) -> Ints:
    """Return for each entry how many equal ones come before it."""
    order = np.argsort(numbers_of_pairs, kind="stable")
    ordered = numbers_of_pairs[order]
    found = np.empty_like(order)
    found[order] = np.arange(order.size) - np.searchsorted(ordered, ordered)
    return found


def _rotation(cores: int) -> int:
    """Return a step by which successive rounds begin far apart, and with every core in turn.

    The golden section of a circle: any few successive multiples lie evenly around it.
    """
    first = round(0.618 * cores)
    return next((step for step in range(first, cores) if gcd(step, cores) == 1), 1)


def _one_after_another(problem: Problem, order: Ints) -> Ints:
    """Return the tasks in this order, as far as they may stand so."""
    rank = np.zeros(len(problem.tasks))
    rank[order] = np.arange(order.size)
    return by_priority(problem, rank)


@cached
def _stationary_operators(problem: Problem) -> tuple[tuple[TaskIdx, ...], ...]:
    """Return the tasks of each operator; the first reader of a slice of the larger operand leads.

    In each they are sorted by that reader.
    """
    sizes = [slice_.bytes for slice_ in problem.slices]
    is_given = [problem.buffers[one.buffer].starts_in is not None for one in problem.slices]
    found = []
    for _, tasks in groupby(problem.tasks, operator_of):
        operator = list(tasks)
        parts: dict[bool, set[SliceIdx]] = {True: set(), False: set()}
        for task in operator:
            for read in task.reads:
                parts[is_given[read]].add(read)
        larger = max(parts.values(), key=lambda some: sum(map(sizes.__getitem__, some)))
        first_reader: dict[SliceIdx, TaskIdx] = {}
        places = []
        for task in operator:
            reads = [read for read in task.reads if read in larger]
            widest = max(reads, key=sizes.__getitem__, default=None)
            first = task.index if widest is None else first_reader.setdefault(widest, task.index)
            places.append((first, task.index))
        found.append(tuple(task for _, task in sorted(places)))
    return tuple(found)


@cached
def operators_of(problem: Problem) -> Ints:
    """Number the operators of the tasks; tasks without origin are operators alone."""
    return numbered(map(operator_of, problem.tasks))


def operator_of(task: Task) -> tuple[str, TaskIdx]:
    """Return what the tasks of one operator have in common; those without origin are alone."""
    return (task.tile.of, -1) if task.tile else ("", task.index)


def depth_first(problem: Problem) -> Ints:
    """Return the tasks so that each stands right behind what only it has been waiting for.

    The producers of the first final tile come first, then those of the second that are not there
    yet: fused rows, where the operators allow it (Alwani et al., "Fused-layer CNN accelerators",
    MICRO 2016).
    """
    before = problem.predecessors()
    has_follower = {earlier for some in before for earlier in some}
    order: list[TaskIdx] = []
    visited = [False] * len(before)
    for last in (task for task in range(len(before)) if task not in has_follower):
        # Predecessors come first, each behind its own: a stack instead of recursion.
        stack: list[tuple[TaskIdx, Iterator[TaskIdx]]] = [(last, iter(before[last]))]
        while stack:
            task, earlier = stack[-1]
            following = next((other for other in earlier if not visited[other]), None)
            if following is None:
                order.append(task)
                stack.pop()
            else:
                visited[following] = True
                stack.append((following, iter(before[following])))
    return numbers(order)


def critical_path(problem: Problem) -> Ints:
    """Return the tasks by what must still happen after they start, the longest first."""
    return by_priority(problem, -numbers(remaining_cycles(problem)))


def by_priority(problem: Problem, keys: Sequence[float] | Ints | NDArray[np.float64]) -> Ints:
    """Return the tasks in topological order; among those that are ready, the least key first."""
    before, after = precedence(problem)
    waiting: list[int] = np.diff(before.begin).tolist()
    key: list[float] = np.asarray(keys, np.float64).tolist()
    begin, followers = after.begin.tolist(), after.items.tolist()
    ready = [(key[task], task) for task, count in enumerate(waiting) if count == 0]
    heapify(ready)
    order = []
    while ready:
        task = heappop(ready)[1]
        order.append(task)
        for later in followers[begin[task] : begin[task + 1]]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heappush(ready, (key[later], later))
    return numbers(order)


TIGHT = 0.5
"""Part of the scratchpads that results may fill which wait for their readers, if operators run one
after another."""


def fused_bands(problem: Problem, cores: Ints) -> Ints:
    """Return the tasks as :func:`round_robin`, but through operators with large results in bands.

    Where the results that wait for their readers would fill more than half of the scratchpads, all
    operators in a row of which that is true run together: of the tiles that none of them reads, one
    for each core at a time, and with these what they wait for. So a band of the results is there at
    one time, and all cores are at work on it (Alwani et al., "Fused-layer CNN accelerators", MICRO
    2016; cores on bands of their own: Mei et al., "DeFiNES", HPCA 2023). Tasks whose core is open,
    -1, count as one core.
    """
    turns = round_robin(problem, cores)
    is_tight = tight_operators(problem)
    if not is_tight.any():
        return turns
    operators, rank = operators_of(problem), np.empty_like(turns)
    rank[turns] = np.arange(turns.size)
    members = rows_from_pairs(operators[turns], turns, is_tight.size)
    order: list[TaskIdx] = []
    for tight, run in groupby(range(is_tight.size), key=is_tight.__getitem__):
        tasks = [task for operator in run for task in members.values(operator)]
        order += _banded(problem, tasks, cores, operators, rank) if tight else tasks
    return _one_after_another(problem, numbers(order))


@cached
def tight_operators(problem: Problem) -> NDArray[np.bool_]:
    """Say for each operator whether the results that wait while it runs are too large.

    They are held against the usable bytes of all memories in which cores work.
    """
    operators, tables = operators_of(problem), problem_tables(problem)
    count = int(operators.max(initial=-1)) + 1
    homes = {core.memory for core in problem.machine.cores}
    sizes = [problem.machine.memories[home].usable for home in homes]
    capacity = sum(inf if size is None else size for size in sizes)
    last = np.full(len(problem.buffers), NONE)
    read = tables.slices["buffer"][tables.reads["slice"]]
    np.maximum.at(last, read, operators[tables.reads["reader"]])
    writers = writers_of_buffers(problem)
    waiting = np.flatnonzero((writers != NONE) & (last != NONE))
    first = operators[writers[waiting]]
    # The whole buffers are the first slices.
    size = tables.slices["bytes"][waiting]
    changes = np.zeros(count + 1)
    np.add.at(changes, first, size)
    np.subtract.at(changes, np.maximum(first, last[waiting]) + 1, size)
    tight: NDArray[np.bool_] = np.cumsum(changes)[:-1] > TIGHT * capacity
    return tight


def _banded(
    problem: Problem, run: Sequence[TaskIdx], cores: Ints, operators: Ints, rank: Ints
) -> list[TaskIdx]:
    """Return the tasks of a run band by band; in each band one operator after another."""
    before, waiting = problem.predecessors(), set(run)
    is_read = {earlier for task in run for earlier in before[task]}
    turns = Counter[int]()
    bands: dict[int, list[TaskIdx]] = defaultdict(list)
    for task in run:
        if task not in is_read:
            core = int(cores[task])
            bands[turns[core]].append(task)
            turns[core] += 1
    order: list[TaskIdx] = []
    for _, band in sorted(bands.items()):
        waiting.difference_update(band)
        # What a band waits for comes with it.
        for task in band:
            for earlier in before[task]:
                if earlier in waiting:
                    waiting.remove(earlier)
                    band.append(earlier)
        order += sorted(band, key=lambda task: (operators[task], rank[task]))
    return order
