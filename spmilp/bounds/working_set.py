"""The bytes that a task needs at least while it runs, and the bounds that follow.

The peak; and the makespan by occupancy: scratchpads have so many bytes for so many cycles, and no
more.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from spmilp.bounds.distances import Distances
from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.problem.problem import Problem, Task
from spmilp.problem.union import bytes_read_of_buffers
from spmilp.units import Bytes, Cycles, align_up


class WorkingSets:
    """Bytes that lie in the memory of a task's core while the task runs.

    What it reads lies there (unless cores read in other memories): of each buffer its largest slice
    at least, for slices of one buffer may lie in one residency of the buffer. What it writes lies
    beside that, save for as many bytes as a pair in place may share, and so does its scratch.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._reads_are_local = problem.machine.remote is None
        readers = Counter(
            buffer
            for task in problem.tasks
            for buffer in {problem.slices[read].buffer for read in task.reads}
        )
        self._private = {buffer for buffer, count in readers.items() if count == 1}

    def pieces(self, task: Task) -> list[Bytes]:
        """Return the sizes of what lies side by side while a task runs alone in its memory."""
        largest: dict[int, Bytes] = {}
        if self._reads_are_local:
            for read in task.reads:
                slice_ = self._problem.slices[read]
                largest[slice_.buffer] = max(largest.get(slice_.buffer, 0), slice_.bytes)
        return [*largest.values(), *self._written(task)]

    def own_bytes(self, task: Task, shared: Collection[int] = ()) -> Bytes:
        """Return the bytes that no other task running elsewhere at the same time can count too.

        Those of what it writes, its scratch, and what only it reads. Where each core has a memory
        of its own and reads nothing in others, of all that it reads.
        """
        problem = self._problem
        local = self._reads_are_local and not shared
        largest: dict[int, Bytes] = {}
        for read in task.reads:
            slice_ = problem.slices[read]
            if local or slice_.buffer in self._private:
                largest[slice_.buffer] = max(largest.get(slice_.buffer, 0), slice_.bytes)
        return sum(largest.values()) + sum(self._written(task))

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


def occupancy_bound(problem: Problem, distances: Distances) -> Cycles:
    """Return the bound on the makespan from bytes times cycles in the memories of the cores.

    While a task runs, its own bytes (:class:`.WorkingSets`) are taken in the memories that tasks
    use: in which cores work or which they read remotely. While a transfer brings a slice from
    outside into such a memory, the slice takes its bytes there, and no task uses them yet. Each
    byte that is read of a buffer that lies in DRAM at first comes in by such a transfer, of no
    smaller slice than the smallest that tasks read, and so holds its place for at least the cycles
    of that one. While a buffer that nobody reads leaves for DRAM, its bytes are taken, and no task
    uses them any more. These add up, and all memories together have

        sum of usable bytes * makespan.
    """
    machine = problem.machine
    memories = [machine.memories[memory] for memory in sorted(distances.used)]
    capacity = sum(memory.usable or 0 for memory in memories)
    if any(memory.kind is MemoryKind.DRAM for memory in memories) or capacity <= 0:
        return 0
    working_sets = WorkingSets(problem)
    shared = [memory.index for memory in memories] if _share(problem) else []
    taken = sum(
        working_sets.own_bytes(task, shared) * min(c for c in task.cycles if c is not None)
        for task in problem.tasks
    )
    return -(-(taken + _coming(problem, distances) + _leaving(problem, distances)) // capacity)


def _share(problem: Problem) -> bool:
    """Return whether some cores share a memory, so that their tasks may read the same bytes."""
    machine = problem.machine
    return len({core.memory for core in machine.cores}) < len(machine.cores)


def _coming(problem: Problem, distances: Distances) -> int:
    smallest: dict[int, Bytes] = {}
    for task in problem.tasks:
        for read in task.reads:
            slice_ = problem.slices[read]
            known = smallest.get(slice_.buffer, slice_.bytes)
            smallest[slice_.buffer] = min(known, slice_.bytes)
    return sum(
        read * distances.entry(smallest[buffer.index])
        for buffer, read in zip(problem.buffers, bytes_read_of_buffers(problem), strict=True)
        if read > 0 and distances.starts_in_dram(buffer.index)
    )


def _leaving(problem: Problem, distances: Distances) -> int:
    read = {problem.slices[index].buffer for task in problem.tasks for index in task.reads}
    return sum(
        problem.buffers[written].bytes * distances.exit(problem.buffers[written].bytes)
        for task in problem.tasks
        for written in task.writes
        if written not in read and distances.ends_in_dram(written)
    )
