"""The bytes that a task needs at least while it runs, and the bound on the peak that follows."""

from collections.abc import Sequence

from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.problem.problem import Problem, Task
from spmilp.units import Bytes, align_up


class WorkingSets:
    """Bytes that lie in the memory of a task's core while the task runs.

    What it reads lies there (unless cores read in other memories): of each buffer its largest slice
    at least, for slices of one buffer may lie in one residency of the buffer. What it writes lies
    beside that, save for as many bytes as a pair in place may share, and so does its scratch.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._reads_are_local = problem.machine.remote is None

    def pieces(self, task: Task) -> list[Bytes]:
        """Return the sizes of what lies side by side while a task runs alone in its memory."""
        largest: dict[int, Bytes] = {}
        if self._reads_are_local:
            for read in task.reads:
                slice_ = self._problem.slices[read]
                largest[slice_.buffer] = max(largest.get(slice_.buffer, 0), slice_.bytes)
        return [*largest.values(), *self._written(task)]

    def _written(self, task: Task) -> list[Bytes]:
        over: dict[int, Bytes] = {}
        for read, written in task.in_place:
            over[written] = max(over.get(written, 0), self._problem.slices[read].bytes)
        sizes = [self._problem.buffers[b].bytes - over.get(b, 0) for b in task.writes]
        return [size for size in (*sizes, task.scratch) if size > 0]


def peak_bound(problem: Problem) -> Bytes:
    """Return the bytes below which no plan keeps the peak of the scratchpads.

    While a task runs, its working set (:class:`.WorkingSets`) lies in its core's memory, each part
    at an aligned address, outside the reserved ranges. Of the parts, all but the highest one take
    whole multiples of the alignment. Where a core works in a memory that is no scratchpad, its
    tasks have no peak.
    """
    working_sets = WorkingSets(problem)
    known: dict[tuple[bool, ...], list[Memory]] = {}
    best = 0
    for task in problem.tasks:
        able = tuple(cycles is not None for cycles in task.cycles)
        if able not in known:
            known[able] = _different_memories(problem.machine, able)
        pieces = working_sets.pieces(task)
        best = max(best, min((lowest_end(one, pieces) for one in known[able]), default=0))
    return best


def _different_memories(machine: Machine, able: Sequence[bool]) -> list[Memory]:
    """Return a memory of each sort in which cores of the able kinds work."""
    memories = [machine.memories[core.memory] for core in machine.cores if able[core.kind]]
    return list({(m.kind, m.alignment, m.reserved): m for m in memories}.values())


def lowest_end(memory: Memory, pieces: Sequence[Bytes]) -> Bytes:
    """Return the least peak of a memory that holds some pieces side by side."""
    if memory.kind is not MemoryKind.SPM or not pieces:
        return 0
    edges = [edge for taken in memory.reserved for edge in (taken.start, taken.end)]
    # Reserved bytes could fill what alignment leaves free, unless they are aligned themselves.
    step = memory.alignment if all(edge % memory.alignment == 0 for edge in edges) else 1
    padded = [align_up(size, step) for size in pieces]
    wanted = sum(padded) - max(p - size for p, size in zip(padded, pieces, strict=True))
    end = 0
    for taken in memory.reserved:
        free = taken.start - end
        if wanted <= free:
            return end + wanted
        wanted -= free
        end = taken.end
    return end + wanted
