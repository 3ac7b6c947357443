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
    written = sum(_padded(problem.buffers[b].bytes, memory) for b in task.writes)
    scratch = _padded(task.scratch, memory)
    if problem.machine.remote is not None:
        return written + scratch
    whole = {s for s in task.reads if s < len(problem.buffers)}
    read = sum(
        _padded(problem.slices[s].bytes, memory)
        for s in task.reads
        if s in whole or problem.slices[s].buffer not in whole
    )
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
    return read + written + scratch - _padded(saved, memory)


def _padded(size: Bytes, memory: Memory) -> Bytes:
    return align_up(size, memory.alignment)


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
