"""Whether each task's working set fits a scratchpad, and if not, why, in words."""

from collections.abc import Sequence

from spmilp.machine.machine import Machine, Memory
from spmilp.problem.problem import Problem, Task
from spmilp.units import Bytes, align_up


def why_it_cannot_fit(problem: Problem) -> str:
    """Return why some task fits no core's memory; empty when every task fits one.

    The bytes counted are a lower bound: what a task reads (a slice inside a whole buffer that it
    reads too counts once; where cores read remote memories, reads do not count), what it writes
    less what may overwrite an operand, and its scratch. When they exceed the usable bytes of every
    memory whose cores can run the task, no plan exists.
    """
    known: dict[tuple[bool, ...], Memory | None] = {}
    for task in problem.tasks:
        able = tuple(cycles is not None for cycles in task.cycles)
        if able not in known:
            known[able] = _roomiest_memory(problem.machine, able)
        roomiest = known[able]
        if roomiest is None:
            return f"task {task.name}: no core of the machine is of a kind that can run it"
        needed = _least_bytes(problem, task, roomiest)
        usable = roomiest.usable
        if usable is not None and needed > usable:
            return _explain(problem, task, roomiest, needed, usable)
    return ""


def _roomiest_memory(machine: Machine, able: Sequence[bool]) -> Memory | None:
    """Return the memory with most usable bytes, among those of cores of the kinds that are able."""
    working = sorted({core.memory for core in machine.cores if able[core.kind]})
    memories = (machine.memories[index] for index in working)
    return max(memories, key=lambda memory: memory.usable or 0, default=None)


def _least_bytes(problem: Problem, task: Task, memory: Memory) -> Bytes:
    written = [problem.buffers[buffer].bytes for buffer in task.writes]
    sizes = [*written, task.scratch]
    saved = 0
    if problem.machine.remote is None:
        whole = {s for s in task.reads if s < len(problem.buffers)}
        sizes += [
            problem.slices[s].bytes
            for s in task.reads
            if s in whole or problem.slices[s].buffer not in whole
        ]
        saved = sum(
            max(
                (
                    min(problem.slices[s].bytes, problem.buffers[b].bytes)
                    for s, other in task.in_place
                    if other == b
                ),
                default=0,
            )
            for b in task.writes
        )
    return _least_padded(sizes, memory) - align_up(saved, memory.alignment)


def _least_padded(sizes: Sequence[Bytes], memory: Memory) -> Bytes:
    """Return bytes that these need at least, each at an aligned address.

    Every one is followed by padding, but for those right before the memory's end or a reserved
    range that is itself not aligned: at most one each, here those with most padding.
    """
    ends = [*(taken.start for taken in memory.reserved), memory.size or 0]
    unaligned = sum(end % memory.alignment != 0 for end in ends)
    padding = sorted((align_up(size, memory.alignment) - size for size in sizes), reverse=True)
    return sum(sizes) + sum(padding[unaligned:])


def _explain(problem: Problem, task: Task, memory: Memory, needed: Bytes, usable: Bytes) -> str:
    largest = sorted(
        [
            (problem.slices[s].bytes, problem.buffers[problem.slices[s].buffer].name)
            for s in task.reads
        ]
        + [(problem.buffers[b].bytes, problem.buffers[b].name) for b in task.writes],
        reverse=True,
    )[:4]
    parts = ", ".join(f"{name} {size} B" for size, name in largest)
    return (
        f"task {task.name} needs {needed} B > {usable} B usable in {memory.name}, "
        f"{needed - usable} B over (largest: {parts}); use smaller tiles or a larger scratchpad"
    )
