"""Where pins let tasks run and buffers lie, and pins that leave no plan: both sides are named."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from spmilp.errors import PinError
from spmilp.machine.machine import Machine, Memory
from spmilp.problem.pins import BufferPin
from spmilp.problem.problem import Problem, Task
from spmilp.units import Bytes, CoreIdx, Cycles, MemoryIdx, TaskIdx, align_up

SHOWN = 4
"""Names of one kind in a message; the others are counted."""


class _Limit(NamedTuple):
    """What keeps a task to some cores, as messages say it, and these cores."""

    said: str
    cores: frozenset[CoreIdx]


def may_lie(machine: Machine, pin: BufferPin | None, memory: MemoryIdx) -> bool:
    """Say whether a buffer or a slice of it may lie in a memory."""
    if pin is None or memory in pin.memories:
        return True
    return machine.memories[memory].kind not in {machine.memories[m].kind for m in pin.memories}


def cores_left(problem: Problem) -> dict[TaskIdx, tuple[CoreIdx, ...]]:
    """Return the cores on which pins let a task run, for each task that has a pin of its own.

    That is one that names cores, or of a buffer that has to lie where the task runs.
    """
    pinned = _pinned_tasks(problem)
    return {
        task: tuple(sorted(_common([*_limits_of_any(problem, problem.tasks[task]), *pinned[task]])))
        for task in sorted(pinned)
    }


def refuse_contradictions(problem: Problem) -> None:
    """Raise a ``PinError`` where pins leave no plan, as far as that can be seen at once.

    It names both sides of the first contradiction.
    """
    if problem.pins:
        of_buffers = (_why_not_there(problem, pin) for pin in problem.pins.buffers)
        for said in chain(_no_core_is_left(problem), *of_buffers, _end_too_late(problem)):
            raise PinError(f"pins: {said}")


def _limits_of_any(problem: Problem, task: Task) -> list[_Limit]:
    """Return what keeps a task to some cores without a pin of its own."""
    cores, forbidden = problem.machine.cores, problem.pins.forbidden
    able = frozenset(core.index for core in cores if task.cycles[core.kind] is not None)
    allowed = frozenset(range(len(cores))).difference(forbidden)
    return [
        _Limit(f"it can run on {_names(cores, sorted(able))} only", able),
        _Limit(f"it must not run on {_names(cores, forbidden)}", allowed),
    ]


def _pinned_tasks(problem: Problem) -> dict[TaskIdx, list[_Limit]]:
    """Return the pins that keep tasks to some cores: their own, and those of their operands.

    These are what a task writes; and, unless cores read remotely, what it reads.
    """
    machine = problem.machine
    found: defaultdict[TaskIdx, list[_Limit]] = defaultdict(list)
    for own in problem.pins.tasks:
        if own.cores:
            said = f"it is pinned to {_names(machine.cores, own.cores)}"
            found[own.task].append(_Limit(said, frozenset(own.cores)))
    of_buffer = {
        pin.buffer: _Limit(
            _pinned(problem, pin),
            frozenset(core.index for core in machine.cores if may_lie(machine, pin, core.memory)),
        )
        for pin in problem.pins.buffers
    }
    for task in problem.tasks if of_buffer else ():
        local = list(task.writes)
        if machine.remote is None:
            local += [problem.slices[read].buffer for read in task.reads]
        for buffer in dict.fromkeys(local):
            if buffer in of_buffer:
                found[task.index].append(of_buffer[buffer])
    return found


def _common(limits: Iterable[_Limit]) -> frozenset[CoreIdx]:
    return frozenset.intersection(*(limit.cores for limit in limits))


def _no_core_is_left(problem: Problem) -> Iterator[str]:
    """Yield the tasks that pins leave no core, and why: none of the limits can be left out."""
    pinned = _pinned_tasks(problem)
    some = problem.tasks if problem.pins.forbidden else [problem.tasks[t] for t in sorted(pinned)]
    for task in some:
        limits = [*_limits_of_any(problem, task), *pinned.get(task.index, ())]
        if not limits[0].cores or _common(limits):
            continue
        for limit in tuple(limits):
            others = [one for one in limits if one is not limit]
            if others and not _common(others):
                limits = others
        yield f"no core is left for task {task.name}: {', and '.join(one.said for one in limits)}"


def _why_not_there(problem: Problem, pin: BufferPin) -> Iterator[str]:
    """Yield why a buffer cannot lie where it is pinned to."""
    machine, buffer, who = problem.machine, problem.buffers[pin.buffer], _pinned(problem, pin)
    size = buffer.bytes
    reads = (read for task in problem.tasks for read in task.reads)
    if pin.resident and all(problem.slices[read].buffer != pin.buffer for read in reads):
        yield f"{who} to be resident until its last reader has ended, but no task reads it"
    for memory in (machine.memories[index] for index in pin.memories):
        if pin.address is None:
            room = _largest_room(memory)
            if room < size and (pin.resident or len(pin.memories) == 1):
                yield f"{who}, and needs {size} B > {room} B, the longest free stretch there"
            continue
        end = pin.address + size
        place = f"{who} at [{pin.address}, {end})"
        if pin.address % memory.alignment:
            yield f"{place}, which is no multiple of its alignment of {memory.alignment} B"
        if memory.size is not None and end > memory.size:
            yield f"{place}, but it ends at {memory.size}"
        for taken in memory.reserved:
            if pin.address < taken.end and taken.start < end:
                yield f"{place}, of which [{taken.start}, {taken.end}) is reserved"
    for index, what in ((buffer.starts_in, "begins"), (buffer.ends_in, "ends")):
        if index is not None and not may_lie(machine, pin, index):
            yield f"{who}, but {what} in {machine.memories[index].name}"


def _end_too_late(problem: Problem) -> Iterator[str]:
    """Yield the tasks that end too late even if nothing but their order and pins delays them."""
    pins = {pin.task: pin for pin in problem.pins.tasks}
    if all(pin.not_after is None for pin in pins.values()):
        return
    cores, left, before = problem.machine.cores, cores_left(problem), problem.predecessors()
    end: dict[TaskIdx, Cycles] = {}
    for index in problem.topological_order():
        task, pin = problem.tasks[index], pins.get(index)
        kinds = {cores[core].kind for core in left.get(index, range(len(cores)))}
        least = min(c for kind, c in enumerate(task.cycles) if kind in kinds and c is not None)
        start = max((end[earlier] for earlier in before[index]), default=0)
        end[index] = max(start, pin.not_before if pin else 0) + least
        if pin is not None and pin.not_after is not None and end[index] > pin.not_after:
            yield (
                f"task {task.name} is pinned to have ended by cycle {pin.not_after}, but with what "
                f"has to run before it, and not_before of pins, it ends at {end[index]} at the "
                "earliest"
            )


def _largest_room(memory: Memory) -> Bytes:
    """Return the most bytes that lie in a memory in one piece, at an aligned address."""
    if memory.size is None:
        return 1 << 62
    low, best = 0, 0
    for start, end in (*((r.start, r.end) for r in memory.reserved), (memory.size, memory.size)):
        best = max(best, start - align_up(low, memory.alignment))
        low = end
    return best


def _pinned(problem: Problem, pin: BufferPin) -> str:
    memories = _names(problem.machine.memories, pin.memories)
    return f"buffer {problem.buffers[pin.buffer].name} is pinned to {memories}"


def _names(table: Sequence[Any], indices: Sequence[int]) -> str:
    """Return some names of a table, and how many more there are."""
    shown = ", ".join(table[index].name for index in indices[:SHOWN])
    return shown if len(indices) <= SHOWN else f"{shown} and {len(indices) - SHOWN} more"
