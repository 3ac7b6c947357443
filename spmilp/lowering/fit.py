"""Whether the tasks of a problem fit the memories of cores that can run them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spmilp.machine.machine import Machine, Memory
from spmilp.problem.problem import Buffer, Problem, Slice, Task
from spmilp.units import Bytes, align_up


class FitTest:
    """Finds the kinds of core with a memory that holds a task.

    A machine may have large cores and small ones that run the same operators; a solver need not
    consider the small ones for what only the large ones can hold.
    """

    def __init__(
        self, machine: Machine, slices: Sequence[Slice], buffers: Sequence[Buffer]
    ) -> None:
        self._slices = slices
        self._buffers = buffers
        self._memories = [
            _memories(machine, [kind is other for other in machine.kinds]) for kind in machine.kinds
        ]

    def only_where_it_fits(self, task: Task) -> Task:
        """Return a task without the kinds of core that cannot hold it; as it is if none can."""
        if len(self._memories) == 1:
            return task
        cycles = tuple(
            count if any(self._holds(memory, task) for memory in memories) else None
            for count, memories in zip(task.cycles, self._memories, strict=True)
        )
        if cycles == task.cycles or all(count is None for count in cycles):
            return task
        return replace(task, cycles=cycles)

    def _holds(self, memory: Memory, task: Task) -> bool:
        size = working_set(task, self._slices, self._buffers, memory.alignment)
        return memory.usable is None or size <= memory.usable


def groups_that_do_not_fit(problem: Problem) -> Mapping[str, str]:
    """Return the groups with a task that no core's memory holds, and the reason for the worst one.

    What a task reads, writes and needs besides must lie in the memory at one time, each aligned.
    Bytes that a read and a written buffer may share in place are counted once.
    """
    worst: dict[str, tuple[Bytes, str]] = {}
    memories: dict[tuple[bool, ...], list[Memory]] = {}
    for task in problem.tasks:
        able = tuple(cycles is not None for cycles in task.cycles)
        if able not in memories:
            memories[able] = _memories(problem.machine, able)
        over, memory, needed = min(
            (needed - (memory.usable or needed), memory.index, needed)
            for memory in memories[able]
            for needed in (working_set(task, problem.slices, problem.buffers, memory.alignment),)
        )
        group = task.tile.of if task.tile is not None else task.name
        if over > 0 and over > worst.get(group, (0, ""))[0]:
            capacity = problem.machine.memories[memory].usable
            name = problem.machine.memories[memory].name
            worst[group] = (
                over,
                f"task {task.name}: needs {needed} B at one time, but {name}, the largest memory "
                f"of a core that can run it, holds {capacity} B: {over} B over; cut group {group} "
                "into smaller tiles or use a machine with larger scratchpads",
            )
    return {group: reason for group, (_, reason) in worst.items()}


def working_set(
    task: Task, slices: Sequence[Slice], buffers: Sequence[Buffer], alignment: Bytes
) -> Bytes:
    """Return the bytes that a task needs in its core's memory at one time."""
    reads = [slices[read].bytes for read in task.reads]
    writes = [buffers[written].bytes for written in task.writes]
    total = sum(align_up(size, alignment) for size in (*reads, *writes, task.scratch))
    shared: set[int] = set()
    for read, written in task.in_place:
        if read not in shared and written not in shared:
            shared |= {read, written}
            total -= align_up(slices[read].bytes, alignment)
    return total


def _memories(machine: Machine, able: Sequence[bool]) -> list[Memory]:
    """Return the memories of the cores of some kinds, one of each size and alignment."""
    found: dict[tuple[Bytes | None, Bytes], Memory] = {}
    for core in machine.cores:
        if able[core.kind]:
            memory = machine.memories[core.memory]
            found.setdefault((memory.usable, memory.alignment), memory)
    return list(found.values())
