"""The occupancy bound: scratchpads have so many bytes for so many cycles, and no more."""

from spmilp.bounds.distances import Distances
from spmilp.bounds.working_set import WorkingSets
from spmilp.machine.machine import MemoryKind
from spmilp.problem.problem import Problem
from spmilp.problem.union import bytes_read_of_buffers
from spmilp.units import Bytes, Cycles


def occupancy_bound(problem: Problem) -> Cycles:
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
    distances = Distances(problem)
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
