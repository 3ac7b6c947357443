"""The energy bound: tasks on their most frugal kinds, and each byte over its cheapest chain."""

from spmilp.bounds.distances import Distances
from spmilp.problem.problem import Problem
from spmilp.problem.union import bytes_read_of_buffers
from spmilp.units import BufferIdx, Femtojoules, MemoryIdx


def energy_bound(problem: Problem) -> Femtojoules:
    """Return the energy that no plan can do without.

    A task takes at least what its most frugal kind takes, of those that can run it and have cores;
    what is not stated counts nothing. Each byte that is read of a buffer which lies in DRAM at
    first comes from there to some reader's memory; a buffer that must end in DRAM gets there from
    its writer's; and what a task reads of another one's result gets from a memory of the one to a
    memory of the other. A byte takes at least the energy of its cheapest chain of transfers.
    Different buffers move by different transfers, so their energies add up; of one buffer the
    largest demand counts.
    """
    present = {core.kind for core in problem.machine.cores}
    total = 0
    for task in problem.tasks:
        able = [kind for kind in present if task.cycles[kind] is not None]
        if task.energy and able:
            total += min(task.energy[kind] or 0 for kind in able)
    return total + _movement(problem)


def _movement(problem: Problem) -> Femtojoules:
    distances = Distances(problem)
    writers = problem.writers()
    # Most tasks read from the same memories: sets of them are collected, not memories.
    readable: dict[BufferIdx, set[frozenset[MemoryIdx]]] = {}
    least: dict[BufferIdx, Femtojoules] = {}
    for task in problem.tasks:
        for read in task.reads:
            slice_ = problem.slices[read]
            readable.setdefault(slice_.buffer, set()).add(distances.readable(task))
            writer = writers[slice_.buffer]
            if writer is not None:
                sources = distances.writable(problem.tasks[writer])
                moved = distances.energy(sources, distances.readable(task), slice_.bytes)
                least[slice_.buffer] = max(moved, least.get(slice_.buffer, 0))
    for buffer, size in zip(problem.buffers, bytes_read_of_buffers(problem), strict=True):
        start, end, writer = buffer.starts_in, buffer.ends_in, writers[buffer.index]
        if start is not None and size > 0:
            targets = frozenset[MemoryIdx]().union(*readable[buffer.index])
            least[buffer.index] = distances.energy(frozenset((start,)), targets, size)
        if writer is not None and end is not None:
            stored = distances.energy(
                distances.writable(problem.tasks[writer]), frozenset((end,)), buffer.bytes
            )
            least[buffer.index] = max(stored, least.get(buffer.index, 0))
    return sum(least.values())
