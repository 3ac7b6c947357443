"""Orders in which tasks are placed: each rule returns every task once, after all that it follows.

A rule gets the core of each task, or -1 where the scheduler is to choose. One of them fuses
operators in bands where their results do not fit.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, groupby
from math import gcd, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmilp.cached import cached
from spmilp.compiled import compiled
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.schedule.kernels.records import (
    NONE,
    Ints,
    Rows,
    numbered,
    numbers,
)
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


def operand_stationary(problem: Problem) -> Ints:
    """Return the tasks layer by layer, in each so that its larger operand is brought in once.

    Tasks that read the same slice of it stand together: of what is there at cycle 0 (weights) where
    that is more, otherwise of what other tasks compute. Where all of an operand does not fit, the
    order of the tiles decides how often it is loaded (weight and input stationary dataflows: Sze et
    al., "Efficient processing of deep neural networks", Proceedings of the IEEE 105, 2017).
    """
    return _one_after_another(problem, numbers(chain.from_iterable(_stationary_operators(problem))))


def round_robin(problem: Problem, cores: Ints) -> Ints:
    """Return the tasks as :func:`operand_stationary`, of each operator one per core in turn.

    What the scheduler places later finds what is left of memories and links, so tasks should come
    in about the order in which they will run; and cores run side by side. Where one of them has all
    of its tiles placed first, the others come to operands that have had to leave again.

    Of the cores that share an operand the first one loads it from DRAM, by the port that is nearest
    to it. Where a DRAM has several, each round begins with another core, so that all are used.

    Parameters
    ----------
    cores
        The core of each task; those of which it is open, -1, count as one core.
    """
    operators = _stationary_operators(problem)
    tasks = numbers(chain.from_iterable(operators))
    operator = np.repeat(np.arange(len(operators)), [len(some) for some in operators])
    core, count = cores[tasks], len(problem.machine.cores)
    placed = _turns_of_pairs(operator * (count + 1) + core + 1)
    step = _rotation(count) if _most_ports(problem.machine) > 1 else 0
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


def _most_ports(machine: Machine) -> int:
    """Return the most links that leave one DRAM."""
    leaving = Counter(link.source for link in machine.links)
    return max((leaving[dram.name] for dram in machine.drams), default=0)


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
    for last in range(len(before)):
        if last not in has_follower:
            _append_with_predecessors(last, before, visited, order)
    return numbers(order)


def critical_path(problem: Problem, noise: NDArray[np.float64] | None = None) -> Ints:
    """Return the tasks by what must still happen after they start, the longest first.

    Parameters
    ----------
    noise
        One factor for each task that its path is multiplied by; restarts draw several.
    """
    path = remaining_cycles(problem)
    keys: list[float] = [-length for length in path]
    if noise is not None:
        keys = [key * float(factor) for key, factor in zip(keys, noise, strict=True)]
    return by_priority(problem, keys)


def by_priority(problem: Problem, keys: Sequence[float] | Ints | NDArray[np.float64]) -> Ints:
    """Return the tasks in topological order; among those that are ready, the least key first."""
    before, after = precedence(problem)
    return _least_first(before, after, np.asarray(keys, np.float64))


@compiled
def _least_first(before: Rows, after: Rows, keys: NDArray[np.float64]) -> Ints:
    waiting = np.diff(before.begin)
    ready = [(keys[task], task) for task in range(keys.size) if waiting[task] == 0]
    heapify(ready)
    order = np.empty(keys.size, np.int64)
    placed = 0
    while ready:
        task = heappop(ready)[1]
        order[placed] = task
        placed += 1
        for later in after.items[after.begin[task] : after.begin[task + 1]]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heappush(ready, (keys[later], later))
    return order


def _append_with_predecessors(
    last: TaskIdx,
    before: Sequence[Sequence[TaskIdx]],
    visited: list[bool],
    order: list[TaskIdx],
) -> None:
    """Append a task behind its predecessors, each behind its own (a stack instead of recursion)."""
    stack: list[tuple[TaskIdx, Iterable[TaskIdx]]] = [(last, iter(before[last]))]
    visited[last] = True
    while stack:
        task, earlier = stack[-1]
        following = next((other for other in earlier if not visited[other]), None)
        if following is None:
            order.append(task)
            stack.pop()
        else:
            visited[following] = True
            stack.append((following, iter(before[following])))


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
    is_tight = _tight_operators(problem)
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
    return by_priority(problem, keys)


@cached
def banded_operators(problem: Problem) -> frozenset[tuple[str, TaskIdx]]:
    """Return the operators that are cut into bands, as :func:`operator_of` names them.

    Of a run of operators whose results do not fit, as many bands of each as its readers lag do: one
    for each operator from it to its last reader, and a band is a tile for each core.
    """
    operators = operators_of(problem)
    is_tight = _tight_operators(problem)
    if not is_tight.any():
        return frozenset()
    names = list(dict.fromkeys(map(operator_of, problem.tasks)))
    results, result = _results(problem), np.zeros(len(names))
    last = np.arange(len(names))
    np.maximum.at(last, results.operator, results.last)
    np.add.at(result, results.operator, results.bytes)
    bands = np.maximum(1, np.bincount(operators) / len(problem.machine.cores))
    found: list[tuple[str, TaskIdx]] = []
    for tight, run in groupby(range(len(names)), key=is_tight.__getitem__):
        those = list(run)
        lag = 1 + np.minimum(last[those], those[-1]) - those
        if tight and sum(lag * result[those] / bands[those]) <= _scratchpad_bytes(problem):
            found += (names[number] for number in those)
    return frozenset(found)


@cached
def _scratchpad_bytes(problem: Problem) -> float:
    """Return the usable bytes of all memories in which cores work; infinity without a limit."""
    homes = {core.memory for core in problem.machine.cores}
    sizes = [problem.machine.memories[home].usable for home in homes]
    return sum(inf if size is None else size for size in sizes)


@cached
def _tight_operators(problem: Problem) -> NDArray[np.bool_]:
    """Say for each operator whether the results that wait while it runs are too large."""
    operators = operators_of(problem)
    count = int(operators.max(initial=-1)) + 1
    capacity = _scratchpad_bytes(problem)
    if capacity in {0, inf}:
        return np.zeros(count, bool)
    results = _results(problem)
    first, last = results.operator, results.last
    read = last != NONE
    changes = np.zeros(count + 1)
    np.add.at(changes, first[read], results.bytes[read])
    np.subtract.at(changes, np.maximum(first, last)[read] + 1, results.bytes[read])
    tight: NDArray[np.bool_] = np.cumsum(changes)[:-1] > TIGHT * capacity
    return tight


class _Results(NamedTuple):
    """The buffers that tasks write: the operator, the last operator that reads it, its bytes.

    An operator of -1 stands for none.
    """

    operator: Ints
    last: Ints
    bytes: Ints


@cached
def _results(problem: Problem) -> _Results:
    operators, tables = operators_of(problem), problem_tables(problem)
    last = np.full(len(problem.buffers), NONE)
    read = tables.slices["buffer"][tables.reads["slice"]]
    np.maximum.at(last, read, operators[tables.reads["reader"]])
    writers = writers_of_buffers(problem)
    made = np.flatnonzero(writers != NONE)
    # The whole buffers are the first slices.
    return _Results(operators[writers[made]], last[made], tables.slices["bytes"][made])


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
