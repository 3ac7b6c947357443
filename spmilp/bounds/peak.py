"""The peak bound: a task's working set has to lie somewhere."""

from collections.abc import Sequence

from spmilp.bounds.needs import Needs
from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, align_up


def peak_bound(problem: Problem) -> Bytes:
    """Return the bytes below which no plan keeps the peak of the scratchpads.

    While a task runs, its working set (:class:`.Needs`) lies in its core's memory, each part at an
    aligned address, outside the reserved ranges. Of the parts, all but the highest one take whole
    multiples of the alignment. Where a core works in a memory that is no scratchpad, its tasks have
    no peak.
    """
    needs = Needs(problem)
    known: dict[tuple[bool, ...], list[Memory]] = {}
    best = 0
    for task in problem.tasks:
        able = tuple(cycles is not None for cycles in task.cycles)
        if able not in known:
            known[able] = _different_memories(problem.machine, able)
        pieces = needs.pieces(task)
        best = max(best, min((_lowest_end(one, pieces) for one in known[able]), default=0))
    return best


def _different_memories(machine: Machine, able: Sequence[bool]) -> list[Memory]:
    """Return a memory of each sort in which cores of the able kinds work."""
    memories = [machine.memories[core.memory] for core in machine.cores if able[core.kind]]
    return list({(m.kind, m.alignment, m.reserved): m for m in memories}.values())


def _lowest_end(memory: Memory, pieces: Sequence[Bytes]) -> Bytes:
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
