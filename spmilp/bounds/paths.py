"""Heads and tails by energetic reasoning over cuts: all that is before a task, all that is after.

All that a task depends on must be done before it starts, and it needs time on the cores and
on the links out of DRAM; likewise all that depends on it, after its end. Where layers depend on
layers as a whole, the bounds of the layers add up.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.bounds.critical_path import Paths, PrecedenceGraph, critical_paths
from spmilp.bounds.movement import Movement
from spmilp.problem.problem import Problem
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, TaskIdx

__all__ = ["Paths", "paths_of"]

MOST_TASKS = 1000
"""With more tasks single chains have to do: the effort grows with the square of their number."""

LARGEST = 1 << 61
"""Products beyond this could leave 64 bits; then single chains have to do."""

Ints: TypeAlias = NDArray[np.int64]


class Job(NamedTuple):
    """A use of a DRAM's links: of ``bytes`` of a buffer, by (or for) a task."""

    task: TaskIdx
    buffer: BufferIdx
    bytes: Bytes


def paths_of(problem: Problem, movement: Movement, graph: PrecedenceGraph | None = None) -> Paths:
    """Return heads and tails that are at least those of the longest chains.

    Let A be the tasks that must end before ``t`` starts, ``lag(j)`` the cycles of the longest
    chain from the end of ``j`` to the start of ``t``, and Q some of them. The cores run Q one task
    at a time each, none before the least head of Q, and after the last one has ended at least the
    least lag of Q passes. So

        head(t) >= min head(Q) + ceil(sum cycles(Q) / cores) + min lag(Q)

    (Fernandez and Bussell, IEEE Trans. Computers C-22(8), 1973, for the graph before ``t``). Some
    core runs ``ceil(|Q| / cores)`` tasks of Q at least, so the term in the middle is at least that
    many times the least cycles of Q. What tasks of A and ``t`` itself read from DRAM has left it
    before; with R the loads of which the readers start at least q cycles before ``t``,

        head(t) >= ceil(sum uses(R) / rate out of DRAM) + q

    (Jackson's one-machine bound, Carlier, EJOR 11, 1982). Tails are the same, seen from the end.
    Q and R are those tasks and loads with the largest heads, or lags. Heads of A are improved
    before that of ``t``.
    """
    graph = PrecedenceGraph(problem, movement) if graph is None else graph
    found = critical_paths(graph)
    count = len(problem.tasks)
    largest = (sum(found.cycles) + found.longest) * len(problem.machine.cores)
    if not 0 < count <= MOST_TASKS or largest > LARGEST:
        return found
    lags = _longest_lags(graph, count)
    cores = len(problem.machine.cores)
    cycles = np.array(found.cycles, np.int64)
    forward = _Side(lags, cycles, cores, _ports(problem, movement, graph, outwards=True))
    backward = _Side(lags.T, cycles, cores, _ports(problem, movement, graph, outwards=False))
    head = forward.improved(list(found.head), graph.order, graph.before, graph.lag)
    followers: list[list[TaskIdx]] = [[] for _ in range(count)]
    for task, some in enumerate(graph.before):
        for earlier in some:
            followers[earlier].append(task)
    after = [tail - own for tail, own in zip(found.tail, found.cycles, strict=True)]
    after = backward.improved(
        after, tuple(reversed(graph.order)), followers, lambda later, task: graph.lag(task, later)
    )
    tail = tuple(own + rest for own, rest in zip(found.cycles, after, strict=True))
    return Paths(tuple(head), found.cycles, tail)


def _longest_lags(graph: PrecedenceGraph, count: int) -> Ints:
    """Return, in row ``j`` and column ``t``, the longest chain between them; -1 without any."""
    lags = np.full((count, count), -1, np.int64)
    for task in graph.order:
        column = lags[:, task]
        for earlier in graph.before[task]:
            lag = graph.lag(earlier, task)
            further = lags[:, earlier]
            through = np.where(further >= 0, further + graph.cycles[earlier] + lag, -1)
            np.maximum(column, through, out=column)
            column[earlier] = max(column[earlier], lag)
    return lags


class _Port(NamedTuple):
    """The links between a DRAM and all else, in one direction.

    Parameters
    ----------
    numerator, denominator
        Of the rate that all transfers share.
    reader, buffer
        Of each job; jobs of one buffer are the same bytes.
    use
        For each buffer, what it holds on the links at least, in bytes.
    """

    numerator: int
    denominator: int
    reader: Ints
    buffer: Ints
    use: Ints


def _ports(
    problem: Problem, movement: Movement, graph: PrecedenceGraph, *, outwards: bool
) -> list[_Port]:
    found = []
    for dram in problem.machine.drams:
        both = movement.rate_both_ways(dram.index)
        rate = movement.rate_out(dram.index) if outwards else movement.rate_in(dram.index)
        rate = min(rate, both)
        jobs = _jobs(problem, graph, dram.index, outwards=outwards)
        if rate > 0 and jobs:
            least_use = movement.least_load_use if outwards else movement.least_store_use
            port = _port(jobs, rate, [int(least_use(dram.index, job.bytes)) for job in jobs])
            total = int(port.use.sum())
            if (total + 1) * max(port.numerator, port.denominator) < LARGEST:
                found.append(port)
    return found


def _port(jobs: Sequence[Job], rate: Fraction, uses: Sequence[Bytes]) -> _Port:
    """Return a port, on which of each buffer only the largest loads count."""
    most: dict[BufferIdx, Bytes] = {}
    for job, use in zip(jobs, uses, strict=True):
        most[job.buffer] = max(use, most.get(job.buffer, 0))
    number = {buffer: position for position, buffer in enumerate(sorted(most))}
    kept = [job for job, use in zip(jobs, uses, strict=True) if use == most[job.buffer]]
    return _Port(
        rate.numerator,
        rate.denominator,
        np.array([job.task for job in kept], np.int64),
        np.array([number[job.buffer] for job in kept], np.int64),
        np.array([most[buffer] for buffer in sorted(most)], np.int64),
    )


def _jobs(
    problem: Problem, graph: PrecedenceGraph, dram: MemoryIdx, *, outwards: bool
) -> list[Job]:
    """Return what each task reads from a DRAM, or what it writes that must end there."""
    if outwards:
        return [
            Job(task.index, problem.slices[read].buffer, problem.slices[read].bytes)
            for task in problem.tasks
            for read in task.reads
            if problem.buffers[problem.slices[read].buffer].starts_in == dram
            and graph.distances.starts_in_dram(problem.slices[read].buffer)
        ]
    return [
        Job(task.index, written, problem.buffers[written].bytes)
        for task in problem.tasks
        for written in task.writes
        if problem.buffers[written].ends_in == dram and graph.distances.ends_in_dram(written)
    ]


class _Side:
    """One side of all cuts: before each task, or after it with time reversed."""

    def __init__(self, lags: Ints, cycles: Ints, cores: int, ports: Sequence[_Port]) -> None:
        self._lags = lags
        self._cycles = cycles
        self._cores = cores
        self._ports = ports

    def improved(
        self,
        head: Sequence[Cycles],
        order: Sequence[TaskIdx],
        before: Sequence[Sequence[TaskIdx]],
        lag: Callable[[TaskIdx, TaskIdx], Cycles],
    ) -> list[Cycles]:
        """Return the heads, raised in the order of the graph."""
        heads = np.array(head, np.int64)
        for task in order:
            best = int(heads[task])
            for earlier in before[task]:
                step = int(self._cycles[earlier]) + lag(earlier, task)
                best = max(best, int(heads[earlier]) + step)
            lags = self._lags[:, task]
            others = np.flatnonzero(lags >= 0)
            if others.size > 1:
                best = max(best, self._work(others, heads[others], lags[others]))
            best = max([best, *(self._movement(port, task, lags) for port in self._ports)])
            heads[task] = best
        return [int(each) for each in heads]

    def _work(self, tasks: Ints, heads: Ints, lags: Ints) -> Cycles:
        by_head = np.argsort(-heads, kind="stable")
        by_lag = np.argsort(-lags, kind="stable")
        best = 0
        for order in (by_head, by_lag):
            cycles = self._cycles[tasks[order]]
            rounds = -(-np.arange(1, order.size + 1) // self._cores)
            needed = np.maximum(
                -(-np.cumsum(cycles) // self._cores), rounds * np.minimum.accumulate(cycles)
            )
            least_head = np.minimum.accumulate(heads[order])
            least_lag = np.minimum.accumulate(lags[order])
            best = max(best, int((least_head + needed + least_lag).max()))
        return best

    def _movement(self, port: _Port, task: TaskIdx, lags: Ints) -> Cycles:
        """Return when all that must have left DRAM before a task starts can have left it."""
        wait = np.where(
            port.reader == task, 0, np.where(lags >= 0, lags + self._cycles, -1)[port.reader]
        )
        longest = np.full(port.use.size, -1, np.int64)
        np.maximum.at(longest, port.buffer, wait)
        needed = np.flatnonzero(longest >= 0)
        if needed.size == 0:
            return 0
        order = needed[np.argsort(-longest[needed], kind="stable")]
        total = np.cumsum(port.use[order])
        ends = -(-total * port.denominator // port.numerator) + longest[order]
        return int(ends.max())
