"""Heads and tails from single chains of tasks and transfers: the critical path."""

from dataclasses import dataclass

from spmilp.bounds.distances import Distances
from spmilp.bounds.movement import Movement
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Cycles, TaskIdx


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


class PrecedenceGraph:
    """The tasks in their order, with least cycles between and around them.

    Proof: a task starts after each predecessor has ended. What it reads of a buffer that lies in
    DRAM at first has to come from there, by one transfer or several that follow one another. What
    it reads of a buffer that another task has written has to come from a memory in which that one
    can work, if the two have none in common. A buffer that must end in DRAM is brought there after
    its task has ended. Each of these takes at least the cycles of its fastest option.
    """

    def __init__(self, problem: Problem, movement: Movement) -> None:
        self._problem = problem
        self._movement = movement
        self.distances = Distances(problem)
        self.before = problem.predecessors()
        self.order = tuple(problem.topological_order())
        self.cycles = tuple(min(c for c in task.cycles if c is not None) for task in problem.tasks)
        self.loads = tuple(max(self._loads(task).values(), default=0) for task in problem.tasks)
        self.stores = tuple(self._slowest_store(task) for task in problem.tasks)
        self._lags: dict[tuple[TaskIdx, TaskIdx], Cycles] = {}
        writers = problem.writers()
        for task in problem.tasks:
            for read in task.reads:
                writer = writers[problem.slices[read].buffer]
                if writer is not None:
                    ends = (
                        self.distances.writable(problem.tasks[writer]),
                        self.distances.readable(task),
                    )
                    lag = self.distances.cycles(*ends, problem.slices[read].bytes)
                    pair = writer, task.index
                    self._lags[pair] = max(lag, self._lags.get(pair, 0))

    def lag(self, earlier: TaskIdx, later: TaskIdx) -> Cycles:
        """Return the cycles from the end of a task to the start of one that follows it."""
        return self._lags.get((earlier, later), 0)

    def _loads(self, task: Task) -> dict[BufferIdx, Cycles]:
        """Return the cycles of the largest load of each buffer that comes from DRAM."""
        found: dict[BufferIdx, Cycles] = {}
        for read in task.reads:
            slice_ = self._problem.slices[read]
            start = self._problem.buffers[slice_.buffer].starts_in
            if start is not None and self.distances.starts_in_dram(slice_.buffer):
                cycles = max(
                    self._movement.least_load(start, slice_.bytes),
                    self.distances.cycles((start,), self.distances.readable(task), slice_.bytes),
                )
                found[slice_.buffer] = max(cycles, found.get(slice_.buffer, 0))
        return found

    def _slowest_store(self, task: Task) -> Cycles:
        slowest = 0
        for written in task.writes:
            buffer = self._problem.buffers[written]
            if buffer.ends_in is not None and self.distances.ends_in_dram(written):
                slowest = max(
                    slowest,
                    self._movement.least_store(buffer.ends_in, buffer.bytes),
                    self.distances.cycles(
                        self.distances.writable(task), (buffer.ends_in,), buffer.bytes
                    ),
                )
        return slowest


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
