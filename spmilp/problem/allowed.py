"""Where pins let tasks run and buffers lie."""

from collections.abc import Iterator

from spmilp.machine.machine import Machine
from spmilp.problem.pins import BufferPin, TaskPin
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, CoreIdx, MemoryIdx, TaskIdx


def may_lie(machine: Machine, pin: BufferPin | None, memory: MemoryIdx) -> bool:
    """Say whether a buffer or a slice of it may lie in a memory."""
    if pin is None or memory in pin.memories:
        return True
    return machine.memories[memory].kind not in {machine.memories[m].kind for m in pin.memories}


def pinned_operands(problem: Problem) -> dict[TaskIdx, list[BufferIdx]]:
    """Return the pinned buffers that must lie in a task's own memory, for tasks that have any.

    What it writes; and, unless cores read remotely, what it reads.
    """
    pinned = {pin.buffer for pin in problem.pins.buffers}
    found: dict[TaskIdx, list[BufferIdx]] = {}
    for task in problem.tasks if pinned else ():
        local = list(task.writes)
        if problem.machine.remote is None:
            local += [problem.slices[read].buffer for read in task.reads]
        some = [buffer for buffer in dict.fromkeys(local) if buffer in pinned]
        if some:
            found[task.index] = some
    return found


def cores_left(problem: Problem) -> dict[TaskIdx, tuple[CoreIdx, ...]]:
    """Return the cores on which pins let a task run, for each task that has a pin of its own.

    That is one that names cores, or of a buffer that has to lie where the task runs.
    """
    pins, machine = problem.pins, problem.machine
    of_task = {pin.task: pin for pin in pins.tasks if pin.cores}
    of_buffer = {pin.buffer: pin for pin in pins.buffers}
    operands = pinned_operands(problem)

    def left(task: Task, pin: TaskPin | None) -> Iterator[CoreIdx]:
        for core in machine.cores:
            able = task.cycles[core.kind] is not None and core.index not in pins.forbidden
            wanted = pin is None or core.index in pin.cores
            if (
                able
                and wanted
                and all(
                    may_lie(machine, of_buffer[buffer], core.memory)
                    for buffer in operands.get(task.index, ())
                )
            ):
                yield core.index

    return {
        task: tuple(left(problem.tasks[task], of_task.get(task)))
        for task in sorted({*of_task, *operands})
    }
