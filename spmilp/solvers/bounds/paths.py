"""Heads and tails: what must happen before a task can start and after it has started."""

from dataclasses import dataclass

from spmilp.machine.machine import MemoryKind
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.bounds.movement import Movement
from spmilp.units import Cycles


@dataclass(frozen=True, slots=True)
class Paths:
    """For each task, in order, cycles that no plan can do without.

    Parameters
    ----------
    head
        Before its start: its predecessors' heads and cycles, and the load of its largest slice that
        only DRAM holds at cycle 0.
    cycles
        Its own, on the fastest kind of core.
    tail
        After its start: its own cycles, then its followers' tails, or the store of its largest
        output.

    Proof: a task starts after each predecessor has ended, and after a transfer out of DRAM has
    ended of any slice whose buffer lies there at first; a buffer that must end in DRAM is stored
    by a transfer after its task has ended. Each of these takes at least the cycles of its fastest
    way, and they follow one another.
    """

    head: tuple[Cycles, ...]
    cycles: tuple[Cycles, ...]
    tail: tuple[Cycles, ...]

    @property
    def longest(self) -> Cycles:
        """Cycles of the longest chain: the critical path."""
        return max((h + t for h, t in zip(self.head, self.tail, strict=True)), default=0)


def paths_of(problem: Problem, movement: Movement) -> Paths:
    """Return the heads and tails of all tasks."""
    before = problem.predecessors()
    order = list(problem.topological_order())
    cycles = [min(c for c in task.cycles if c is not None) for task in problem.tasks]
    head = [_slowest_load(problem, movement, task) for task in problem.tasks]
    for task in order:
        head[task] = max([head[task], *(head[b] + cycles[b] for b in before[task])])
    after = [_slowest_store(problem, movement, task) for task in problem.tasks]
    tail = [0] * len(order)
    for task in reversed(order):
        tail[task] = cycles[task] + after[task]
        for earlier in before[task]:
            after[earlier] = max(after[earlier], tail[task])
    return Paths(tuple(head), tuple(cycles), tuple(tail))


def _slowest_load(problem: Problem, movement: Movement, task: Task) -> Cycles:
    slowest = 0
    for read in task.reads:
        slice_ = problem.slices[read]
        starts = problem.buffers[slice_.buffer].starts_in
        if starts is not None and problem.machine.memories[starts].kind is MemoryKind.DRAM:
            slowest = max(slowest, movement.least_load(starts, slice_.bytes))
    return slowest


def _slowest_store(problem: Problem, movement: Movement, task: Task) -> Cycles:
    slowest = 0
    for written in task.writes:
        buffer = problem.buffers[written]
        ends = buffer.ends_in
        if ends is not None and problem.machine.memories[ends].kind is MemoryKind.DRAM:
            slowest = max(slowest, movement.least_store(ends, buffer.bytes))
    return slowest
