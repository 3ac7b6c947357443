"""What kept the scheduler from a plan, as data and in words."""

from spmilp.errors import Shortage
from spmilp.machine.controllers import CONTROLLERS, Block, defects_of
from spmilp.machine.machine import Memory
from spmilp.problem.problem import Problem, Slice
from spmilp.problem.strides import (
    layout_at_place,
    layout_in_slice,
    packed_layout,
    strided_copy,
)
from spmilp.solvers.common.fit import least_sizes, parts_of
from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.kernels.schedule_state import (
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_FAILED_TASK,
    ScheduleState,
    Stop,
)
from spmilp.units import Bytes, TaskIdx, align_up

MOST_NAMED = 4


def shortage_of(problem: Problem, stop: Stop, state: ScheduleState) -> Shortage | None:
    """Return for which task there was no room, and beside what; ``None`` for other causes.

    The buffers that must stay are those that are to end in the memory and are there already. What
    is needed may be less than what is usable: then it does not go into the gaps that they leave.
    """
    if stop is not Stop.DOES_NOT_FIT:
        return None
    number = int(state.counts[COUNT_FAILED_TASK])
    if number == NONE:
        memory = problem.machine.memories[int(state.counts[COUNT_FAILED_MEMORY])]
        there = [b for b in problem.buffers if b.starts_in == memory.index]
        return Shortage(
            what="cycle 0",
            memory=memory.name,
            needed=sum(align_up(buffer.bytes, memory.alignment) for buffer in there),
            usable=memory.usable or 0,
            parts=tuple((buffer.name, buffer.bytes) for buffer in there),
        )
    task, core = problem.tasks[number], int(state.tasks[number].core)
    memory = problem.machine.memories[problem.machine.cores[core].memory]
    staying = [
        buffer
        for buffer in problem.buffers
        if buffer.ends_in == memory.index
        and state.buffers[buffer.index].home != NONE
        and buffer.index not in task.writes
    ]
    parts = (*parts_of(problem, task), *((f"{b.name}, which must stay", b.bytes) for b in staying))
    return Shortage(
        what=f"task {task.name}, cycle {_begins(state, number, core):,}",
        memory=memory.name,
        needed=_working_set(problem, number, memory)
        + sum(align_up(buffer.bytes, memory.alignment) for buffer in staying),
        usable=memory.usable or 0,
        parts=parts,
        task=task.name,
    )


def why_it_stopped(problem: Problem, stop: Stop, state: ScheduleState) -> str:
    """Return what kept the scheduler from a plan, in words."""
    short = shortage_of(problem, stop, state)
    if short is not None:
        largest = sorted(short.parts, key=lambda part: (-part[1], part[0]))[:MOST_NAMED]
        named = ", ".join(f"{name} {size} B" for name, size in largest)
        over = short.needed - short.usable
        how = (
            f"> {short.usable} B usable, {over} B over"
            if over > 0
            else (f"of {short.usable} B usable, but not between the gaps that are left")
        )
        return (
            f"{short.what}: {short.needed} B must be in {short.memory} at one time {how} "
            f"(largest: {named}); use smaller tiles or a larger scratchpad"
        )
    task = int(state.counts[COUNT_FAILED_TASK])
    where = f"task {problem.tasks[task].name}" if task != NONE else "what is there at cycle 0"
    slice_ = problem.slices[int(state.counts[COUNT_FAILED_SLICE])]
    memory = problem.machine.memories[int(state.counts[COUNT_FAILED_MEMORY])]
    return (
        f"{where}: no engine can bring {problem.buffers[slice_.buffer].name} "
        f"({slice_.bytes} B) to {memory.name} in one transfer from where it lies; check "
        f"the engines' reach, their longest transfer and their dimensions{_defect(problem, slice_)}"
    )


def _defect(problem: Problem, part: Slice) -> str:
    """Return what keeps controllers from copying a slice out of where it may lie, if anything."""
    buffer = problem.buffers[part.buffer]
    there = [packed_layout(problem, part.index), layout_in_slice(problem, part.index, part.buffer)]
    if buffer.place is not None:
        there.append(layout_at_place(problem, part.index))
    for layout in reversed(there):
        copy = strided_copy(part.extent, buffer.item, layout, there[0])
        block = Block(source=layout.offset, destination=0, run=copy.run, loops=copy.loops)
        for name in dict.fromkeys(engine.controller for engine in problem.machine.engines):
            found = None if name is None else next(defects_of(block, CONTROLLERS[name]), None)
            if found is not None:
                return f"; {found}: make the sizes of the model multiples of it"
    return ""


def _working_set(problem: Problem, task: TaskIdx, memory: Memory) -> Bytes:
    sizes, saved = least_sizes(problem, problem.tasks[task])
    step = memory.alignment
    return sum(align_up(size, step) for size in sizes) - sum(align_up(size, step) for size in saved)


def _begins(state: ScheduleState, task: TaskIdx, core: int) -> int:
    """Return the cycle from which on a task could run: its core and what it follows are done."""
    done = state.tasks["placed"].astype(bool) & (state.tasks["core"] == core)
    return int(state.tasks["end"][done].max(initial=0))
