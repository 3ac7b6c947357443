"""Heads and tails: what must pass before a task can start, and after it has ended.

By single chains of tasks and transfers (the critical path), and by energetic reasoning over cuts:
all that a task depends on must be done before it starts, and it needs time on the cores and on the
links out of DRAM; likewise all that depends on it, after its end. Where layers depend on layers as
a whole, the bounds of the layers add up.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from spmilp.bounds.cuts import Edges, Ints, Ports, Tasks, raised_heads
from spmilp.bounds.movement import Movement
from spmilp.problem.loads import Share
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, SliceIdx, TaskIdx


@dataclass(frozen=True, slots=True)
class Paths:
    """For each task, in order, cycles that no plan can do without.

    ``head`` is before its start, ``cycles`` its own on the fastest kind of core, ``tail`` after its
    start, its own cycles included.
    """

    head: tuple[Cycles, ...]
    cycles: tuple[Cycles, ...]
    tail: tuple[Cycles, ...]

    @property
    def longest(self) -> Cycles:
        """The largest head and tail of a task together, which no makespan is below."""
        return max((h + t for h, t in zip(self.head, self.tail, strict=True)), default=0)


class Edge(NamedTuple):
    """What lies between the end of a task and the start of one that follows it.

    That is ``lag`` cycles, at least, and ``use`` bytes of the data between them, which pass the
    links into the later one's memory if the earlier one runs in another.
    """

    lag: Cycles
    use: Bytes


NO_DATA = Edge(0, 0)


class PrecedenceGraph:
    """The tasks in their order, with least cycles between and around them.

    Proof: a task starts after each predecessor has ended. What it reads of a buffer that lies in
    DRAM at first has to come from there, by one transfer or several that follow one another. What
    it reads of a buffer that another task has written has to come from a memory in which that one
    can work, if the two have none in common. A buffer that must end in DRAM is brought there after
    its task has ended. Each of these takes at least the cycles of its fastest option.

    What comes to the memory in which a task runs passes the links that lead there
    (:meth:`.Distances.into`). ``loads`` and ``stores`` are least cycles before the start of each
    task and after its end, ``load_use`` the bytes of its loads, which pass the links into its
    memory: those of ``into``. At most ``sharing`` cores work in a memory in which it can run.
    """

    def __init__(self, problem: Problem, movement: Movement) -> None:
        self._problem = problem
        self._distances = movement.distances
        self.before = problem.predecessors()
        self.order = tuple(problem.topological_order())
        self.cycles = tuple(min(c for c in task.cycles if c is not None) for task in problem.tasks)
        self.into = tuple(map(self._distances.into, problem.tasks))
        self.sharing = self._most_cores_of_a_memory()
        self._reads_are_local = problem.machine.remote is None
        self._edges: dict[tuple[TaskIdx, TaskIdx], Edge] = {}
        writers = problem.writers()
        largest = [self._largest_reads(task) for task in problem.tasks]
        for task, read in zip(problem.tasks, largest, strict=True):
            for buffer, size in read.items():
                writer = writers[buffer]
                if writer is not None:
                    self._connect(writer, task, size)
        self.loads = tuple(map(self._load, problem.tasks, largest))
        self.load_use = tuple(map(self._load_use, problem.tasks, largest))
        self.stores = tuple(map(self._store, problem.tasks))

    def edge(self, earlier: TaskIdx, later: TaskIdx) -> Edge:
        """Return what lies between the end of a task and the start of one that follows it."""
        return self._edges.get((earlier, later), NO_DATA)

    def _most_cores_of_a_memory(self) -> tuple[int, ...]:
        cores = Counter(core.memory for core in self._problem.machine.cores)
        of_tasks = [self._distances.writable(task) for task in self._problem.tasks]
        known = {
            memories: max((cores[one] for one in memories), default=1) for memories in {*of_tasks}
        }
        return tuple(known[memories] for memories in of_tasks)

    def _largest_reads(self, task: Task) -> dict[BufferIdx, Bytes]:
        largest: dict[BufferIdx, Bytes] = {}
        for read in task.reads:
            slice_ = self._problem.slices[read]
            largest[slice_.buffer] = max(slice_.bytes, largest.get(slice_.buffer, 0))
        return largest

    def _connect(self, writer: TaskIdx, task: Task, size: Bytes) -> None:
        """Note that a task reads so many bytes at once of a buffer of another one."""
        sources = self._distances.writable(self._problem.tasks[writer])
        targets = self._distances.readable(task)
        known = self.edge(writer, task.index)
        lag, use = max(known.lag, self._distances.cycles(sources, targets, size)), known.use
        if self._reads_are_local:
            use += size
        self._edges[writer, task.index] = Edge(lag, use)

    def _load(self, task: Task, largest: dict[BufferIdx, Bytes]) -> Cycles:
        """Return the least cycles of what comes from DRAM."""
        targets = self._distances.readable(task)
        starts = ((self._problem.buffers[one].starts_in, size) for one, size in largest.items())
        cycles = (
            self._distances.cycles(frozenset((start,)), targets, size)
            for start, size in starts
            if start is not None
        )
        return max(cycles, default=0)

    def _load_use(self, task: Task, largest: dict[BufferIdx, Bytes]) -> Bytes:
        if not self._reads_are_local:
            return 0
        starts_in_dram = self._distances.starts_in_dram
        return sum(size for one, size in largest.items() if starts_in_dram(one))

    def _store(self, task: Task) -> Cycles:
        """Return the least cycles of what goes to DRAM."""
        sources = self._distances.writable(task)
        buffers = (self._problem.buffers[written] for written in task.writes)
        cycles = (
            self._distances.cycles(sources, frozenset((buffer.ends_in,)), buffer.bytes)
            for buffer in buffers
            if buffer.ends_in is not None
        )
        return max(cycles, default=0)


def critical_paths(graph: PrecedenceGraph) -> Paths:
    """Return heads and tails from single chains: the critical path."""
    head = list(graph.loads)
    for task in graph.order:
        for earlier in graph.before[task]:
            sooner = head[earlier] + graph.cycles[earlier] + graph.edge(earlier, task).lag
            head[task] = max(head[task], sooner)
    after = list(graph.stores)
    for task in reversed(graph.order):
        for earlier in graph.before[task]:
            rest = graph.edge(earlier, task).lag + graph.cycles[task] + after[task]
            after[earlier] = max(after[earlier], rest)
    tail = (own + rest for own, rest in zip(graph.cycles, after, strict=True))
    return Paths(tuple(head), graph.cycles, tuple(tail))


MOST_VISITS = 20_000_000
"""Limit on the edges that are followed back from all tasks together, to bound the time. It sets how
many nearest predecessors are looked at for each task, and for which few tasks all of them are."""

LEAST_WIDTH = 32
"""So many nearest predecessors of each task are looked at however large the problem is."""

LARGEST = 1 << 61
"""Products beyond this could leave 64 bits; then single chains have to do."""


Job: TypeAlias = tuple[TaskIdx, SliceIdx | BufferIdx, Bytes]
"""A task, a slice that moves for it, and its use of links or channels, rounded down."""


def paths_of(problem: Problem, movement: Movement, graph: PrecedenceGraph | None = None) -> Paths:
    """Return heads and tails that are at least those of the longest chains.

    A task ``t`` starts at ``T`` in some memory ``m``. Let ``A`` be tasks that must have ended
    before, ``p(j)`` the least cycles of ``j`` and ``E(j) = head(j) + p(j)``, and K the number of
    cores, of which at most ``c`` work in ``m``.

    *Lags.* From the end of ``j`` to ``T`` pass at least ``lag(j)`` cycles: those of the least
    transfers over an edge, set-up and latency included, and ``lag(j, x) + p(x) + lag(x)`` over a
    task ``x`` between the two.

    *Cut.* Let Q be some of A, run at ``h`` at the soonest. A core has ``T - h - lag`` cycles for Q,
    with the least ``lag`` in Q. So

        K (T - h - lag) >= sum p(Q),

    and as a core with ``w`` cycles runs ``floor(w / min p(Q))`` tasks of Q at most, as many rounds
    of all cores must suffice for all of Q. (Fernandez and Bussell, IEEE Trans. Computers C-22(8),
    1973, without lags, for the graph before ``t``.) Q are the tasks with the greatest heads, or the
    greatest lags.

    *Arrivals.* Where tasks read in their core's memory alone, what ``t`` reads of the results of
    ``j`` comes into ``m`` from outside unless ``j`` runs in ``m``: of each buffer by a transfer of
    its own, since a transfer moves one slice; a multicast may serve other memories beside ``m``,
    but none of them brings two buffers. It starts after ``E(j)`` and has arrived by ``T``. Let Q be
    some tasks before ``t`` that have ended at ``r`` at the soonest and begun at ``h``. At most
    ``c floor((T - h) / min p(Q))`` of them run in ``m``; the bytes of the rest must pass the links
    into ``m`` in ``T - r``, less the least set-up and the least latency of transfers to ``m``
    (:class:`.Passage`). What ``t`` reads of buffers that come from DRAM comes in ``T``. (Not so for
    results that leave a memory: one of several readers can pass them on.)

    *Ports.* What tasks of A and ``t`` itself read from DRAM has arrived before; with R the loads of
    which the readers start at least q cycles before ``t``,

        T >= ceil(sum uses(R) / rate out of DRAM) + least set-up + least latency + q

    for the links out of DRAM, and likewise for the channels of the engines that move data out of it
    (:func:`.traffic_bound`; Jackson's one-machine bound, Carlier, EJOR 11, 1982).

    Tails are the same, seen from the end, but for arrivals. Heads of A are improved before that of
    ``t``.
    """
    graph = PrecedenceGraph(problem, movement) if graph is None else graph
    found = critical_paths(graph)
    if not problem.tasks:
        return found
    heads = _Side(problem, movement, graph, reverse=False)
    tails = _Side(problem, movement, graph, reverse=True)
    if not (heads.is_countable(found) and tails.is_countable(found)):
        return found
    tail = (own + after for own, after in zip(found.cycles, tails.raised(), strict=True))
    return Paths(heads.raised(), found.cycles, tuple(tail))


class _Side:
    """One side of all cuts: before each task, or after it with time reversed."""

    def __init__(
        self, problem: Problem, movement: Movement, graph: PrecedenceGraph, *, reverse: bool
    ) -> None:
        self._cores = len(problem.machine.cores)
        self._order = tuple(reversed(graph.order)) if reverse else graph.order
        self._number = np.empty(len(self._order), np.int64)
        self._number[list(self._order)] = np.arange(len(self._order))
        self._edges = self._edges_of(graph, reverse=reverse)
        alone = graph.stores if reverse else graph.loads
        over, under = zip(*(links.rate.as_integer_ratio() for links in graph.into), strict=True)
        use = [0] * len(self._order) if reverse else graph.load_use
        apart = [links.apart for links in graph.into]
        columns = (alone, graph.cycles, graph.sharing, use, over, under, apart)
        order = list(self._order)
        self._tasks = Tasks(*(np.array(column, np.int64)[order] for column in columns))
        self._ports = self._ports_of(problem, movement, reverse=reverse)

    def is_countable(self, found: Paths) -> bool:
        """Say whether no sum or product leaves 64 bits."""
        cycles = sum(found.cycles) + found.longest + int(self._edges.lag.sum())
        cycles += int(self._tasks.apart.max()) + int(self._ports.apart.max(initial=0))
        use = sum(int(each.use.sum()) for each in (self._tasks, self._edges, self._ports))
        scales = (self._tasks.rate, self._tasks.over, self._ports.rate, self._ports.over)
        scale = max(self._cores, *(int(each.max(initial=1)) for each in scales))
        return (use + cycles + 1) * scale < LARGEST

    def raised(self) -> tuple[Cycles, ...]:
        """Return the heads in the order of the tasks' indices."""
        edges = self._edges
        width = max(LEAST_WIDTH, MOST_VISITS // max(1, edges.earlier.size))
        every = -(-len(self._order) // width)
        heads = raised_heads(self._tasks, edges, self._ports, self._cores, width, every)
        return tuple(heads[self._number].tolist())

    def _edges_of(self, graph: PrecedenceGraph, *, reverse: bool) -> Edges:
        """Return the edges, in the order of the tasks at which they end."""
        rows = [
            (earlier, later, *graph.edge(earlier, later))
            for later, some in enumerate(graph.before)
            for earlier in some
        ]
        table = np.array(rows, np.int64).reshape(-1, 4)
        if reverse:
            table = table[:, [1, 0, 2, 3]]
            table[:, 3] = 0
        begin, end = self._number[table[:, 0]], self._number[table[:, 1]]
        order = np.lexsort((begin, end))
        first = np.searchsorted(end[order], np.arange(len(self._order) + 1))
        columns = (begin, *table[:, 2:].T)
        return Edges(first.astype(np.int64), *(each[order] for each in columns))

    def _ports_of(self, problem: Problem, movement: Movement, *, reverse: bool) -> Ports:
        """Return links and channels between DRAMs and all else, in one direction."""
        empty = np.zeros(0, np.int64)
        firsts, buffers, uses, rates, apart = [empty], [], [], [], []
        begin = total = 0
        for (dram, gates), which in product(movement.gates.items(), range(2)):
            one_way = (gates.into if reverse else gates.out).passages[which]
            rate = min(one_way.rate, gates.both_ways.passages[which].rate)
            jobs = (_stores if reverse else _loads)(movement, dram, which)
            if rate == 0 or not jobs:
                continue
            task, buffer, use = _columns(jobs)
            number = self._number[task]
            order = np.argsort(number, kind="stable")
            firsts.append(begin + np.searchsorted(number[order], np.arange(len(self._order) + 1)))
            buffers.append(total + buffer[order])
            uses.append(use)
            rates.append(rate)
            apart.append(one_way.apart)
            begin, total = begin + task.size, total + use.size
        return Ports(
            np.concatenate(firsts).astype(np.int64),
            np.concatenate([empty, *buffers]),
            np.concatenate([empty, *uses]),
            np.array([rate.numerator for rate in rates], np.int64),
            np.array([rate.denominator for rate in rates], np.int64),
            np.array(apart, np.int64),
        )


def _columns(jobs: Sequence[Job]) -> tuple[Ints, Ints, Ints]:
    """Return task and slice of each job, and the use of each slice; slices count from 0."""
    uses = {moved: use for _, moved, use in jobs}
    number = {moved: position for position, moved in enumerate(sorted(uses))}
    return (
        np.array([task for task, _, _ in jobs], np.int64),
        np.array([number[moved] for _, moved, _ in jobs], np.int64),
        np.array([uses[moved] for moved in sorted(uses)], np.int64),
    )


def _loads(movement: Movement, dram: MemoryIdx, which: int) -> list[Job]:
    """Return what must have come from a DRAM before its readers start."""
    return [
        (reader, load.moved, int(uses[which]))
        for load, uses in movement.loads
        if load.buffer.starts_in == dram and load.share is not Share.REST
        for reader in load.readers
    ]


def _stores(movement: Movement, dram: MemoryIdx, which: int) -> list[Job]:
    """Return what must get to a DRAM after its writer has ended."""
    return [
        (store.task.index, store.buffer.index, int(store.uses[which]))
        for store in movement.stores
        if store.buffer.ends_in == dram
    ]
