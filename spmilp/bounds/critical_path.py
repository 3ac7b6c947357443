"""Heads and tails from single chains of tasks and transfers: the critical path."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spmilp.bounds.distances import Distances
from spmilp.bounds.memory_links import MemoryLinks, Passage
from spmilp.bounds.movement import Movement
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, TaskIdx


@dataclass(frozen=True, slots=True)
class Paths:
    """For each task, in order, cycles that no plan can do without.

    Parameters
    ----------
    head
        Before its start.
    cycles
        Its own, on the fastest kind of core.
    tail
        After its start, its own cycles included.
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

    Parameters
    ----------
    near, away
        Cycles: at least, and at least if the two run in different memories.
    use
        Bytes that the data between them holds at least on the links into the later one's memory, if
        the earlier one runs in another.
    """

    near: Cycles
    away: Cycles
    use: Bytes


NO_DATA = Edge(0, 0, 0)


class PrecedenceGraph:
    """The tasks in their order, with least cycles between and around them.

    Proof: a task starts after each predecessor has ended. What it reads of a buffer that lies in
    DRAM at first has to come from there, by one transfer or several that follow one another. What
    it reads of a buffer that another task has written has to come from a memory in which that one
    can work, if the two have none in common; and if the two run in different memories, from the one
    to the other, unless cores read in other memories. A buffer that must end in DRAM is brought
    there after its task has ended. Each of these takes at least the cycles of its fastest option.

    What comes to the memory in which a task runs passes the links that lead there, what leaves it
    those that lead away (:class:`.MemoryLinks`), and for each buffer it is a transfer of its own at
    the least.

    Attributes
    ----------
    loads, stores
        Of each task, least cycles before its start and after its end.
    load_use, store_use
        Of each task, bytes that these loads and stores hold on the links of its memory.
    into, out_of
        Of each task, these links.
    sharing
        Of each task, the most cores that work in a memory in which it can run.
    """

    def __init__(self, problem: Problem, movement: Movement) -> None:
        self._problem = problem
        self._movement = movement
        self.distances = Distances(problem)
        self.before = problem.predecessors()
        self.order = tuple(problem.topological_order())
        self.cycles = tuple(min(c for c in task.cycles if c is not None) for task in problem.tasks)
        links = MemoryLinks(problem, self.distances)
        self.into = tuple(links.into(task) for task in problem.tasks)
        self.out_of = tuple(links.out_of(task) for task in problem.tasks)
        self.sharing = self._most_cores_of_a_memory()
        self._reads_are_local = problem.machine.remote is None
        self._edges: dict[tuple[TaskIdx, TaskIdx], Edge] = {}
        loads, stores = [], []
        writers = problem.writers()
        for task in problem.tasks:
            largest = self._largest_reads(task)
            for buffer, size in largest.items():
                writer = writers[buffer]
                if writer is not None:
                    self._connect(writer, task, size)
            loads.append(self._around(task, self._loads(task, largest), self.into))
            stores.append(self._around(task, self._stores(task), self.out_of))
        self.loads, self.load_use = _unzipped(loads)
        self.stores, self.store_use = _unzipped(stores)

    def edge(self, earlier: TaskIdx, later: TaskIdx) -> Edge:
        """Return what lies between the end of a task and the start of one that follows it."""
        return self._edges.get((earlier, later), NO_DATA)

    def lag(self, earlier: TaskIdx, later: TaskIdx) -> Cycles:
        """Return the cycles from the end of a task to the start of one that follows it."""
        return self.edge(earlier, later).near

    def _most_cores_of_a_memory(self) -> tuple[int, ...]:
        cores = Counter(core.memory for core in self._problem.machine.cores)
        known: dict[frozenset[MemoryIdx], int] = {}
        for task in self._problem.tasks:
            memories = self.distances.writable(task)
            if memories not in known:
                known[memories] = max((cores[memory] for memory in memories), default=1)
        return tuple(known[self.distances.writable(task)] for task in self._problem.tasks)

    def _largest_reads(self, task: Task) -> dict[BufferIdx, Bytes]:
        largest: dict[BufferIdx, Bytes] = {}
        for read in task.reads:
            slice_ = self._problem.slices[read]
            largest[slice_.buffer] = max(slice_.bytes, largest.get(slice_.buffer, 0))
        return largest

    def _connect(self, writer: TaskIdx, task: Task, size: Bytes) -> None:
        """Note that a task reads so many bytes at once of a buffer of another one."""
        sources = self.distances.writable(self._problem.tasks[writer])
        near = self.distances.cycles(sources, self.distances.readable(task), size)
        known = self._edges.get((writer, task.index), NO_DATA)
        away = use = 0
        if self._reads_are_local:
            away = self.distances.cycles_away(sources, self.distances.readable(task), size)
            use = size + self.into[task.index].overhead
        self._edges[writer, task.index] = Edge(
            max(near, known.near), max(near, away, known.away), use + known.use
        )

    def _around(
        self,
        task: Task,
        moved: Sequence[tuple[Bytes, Cycles]],
        passages: Sequence[Passage],
    ) -> tuple[Cycles, Bytes]:
        """Return the least cycles for some transfers, and bytes they hold on the task's links."""
        slowest = max((cycles for _, cycles in moved), default=0)
        passage = passages[task.index]
        if passage.rate == 0 or not (passages is self.out_of or self._reads_are_local):
            return slowest, 0
        return slowest, sum(size + passage.overhead for size, _ in moved)

    def _loads(self, task: Task, largest: dict[BufferIdx, Bytes]) -> list[tuple[Bytes, Cycles]]:
        """Return bytes and least cycles of what comes from DRAM."""
        found = []
        for buffer, size in largest.items():
            start = self._problem.buffers[buffer].starts_in
            if start is not None and self.distances.starts_in_dram(buffer):
                targets = self.distances.readable(task)
                chain = self.distances.cycles(frozenset((start,)), targets, size)
                found.append((size, max(self._movement.least_load(start, size), chain)))
        return found

    def _stores(self, task: Task) -> list[tuple[Bytes, Cycles]]:
        """Return bytes and least cycles of what goes to DRAM."""
        found = []
        for written in task.writes:
            buffer = self._problem.buffers[written]
            if buffer.ends_in is not None and self.distances.ends_in_dram(written):
                targets = frozenset((buffer.ends_in,))
                chain = self.distances.cycles(self.distances.writable(task), targets, buffer.bytes)
                least = self._movement.least_store(buffer.ends_in, buffer.bytes)
                found.append((buffer.bytes, max(least, chain)))
        return found


def _unzipped(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(first for first, _ in pairs), tuple(second for _, second in pairs)


def critical_paths(graph: PrecedenceGraph) -> Paths:
    """Return heads and tails from single chains: the critical path."""
    head = list(graph.loads)
    for task in graph.order:
        for earlier in graph.before[task]:
            sooner = head[earlier] + graph.cycles[earlier] + graph.lag(earlier, task)
            head[task] = max(head[task], sooner)
    after = list(graph.stores)
    for task in reversed(graph.order):
        for earlier in graph.before[task]:
            rest = graph.lag(earlier, task) + graph.cycles[task] + after[task]
            after[earlier] = max(after[earlier], rest)
    tail = (own + rest for own, rest in zip(graph.cycles, after, strict=True))
    return Paths(tuple(head), graph.cycles, tuple(tail))
