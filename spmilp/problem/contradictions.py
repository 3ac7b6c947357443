"""Where pins let tasks run and buffers lie, and pins that leave no plan: both sides are named."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from spmilp.errors import PinError
from spmilp.machine.machine import Machine, Memory
from spmilp.problem.pins import BufferPin
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, CoreIdx, Cycles, MemoryIdx, TaskIdx, align_up

SHOWN = 4
"""Names of one kind in a message; the others are counted."""


def may_lie(machine: Machine, pin: BufferPin | None, memory: MemoryIdx) -> bool:
    """Say whether a buffer or a slice of it may lie in a memory."""
    if pin is None or memory in pin.memories:
        return True
    return machine.memories[memory].kind not in {machine.memories[m].kind for m in pin.memories}


def pinned_operands(problem: Problem) -> dict[TaskIdx, list[BufferPin]]:
    """Return the pins of buffers that must lie in a task's own memory, for tasks that have any.

    These are what it writes; and, unless cores read remotely, what it reads.
    """
    pinned = {pin.buffer: pin for pin in problem.pins.buffers}
    found: dict[TaskIdx, list[BufferPin]] = {}
    for task in problem.tasks if pinned else ():
        local = list(task.writes)
        if problem.machine.remote is None:
            local += [problem.slices[read].buffer for read in task.reads]
        some = [pinned[buffer] for buffer in dict.fromkeys(local) if buffer in pinned]
        if some:
            found[task.index] = some
    return found


def cores_left(problem: Problem) -> dict[TaskIdx, tuple[CoreIdx, ...]]:
    """Return the cores on which pins let a task run, for each task that has a pin of its own.

    That is one that names cores, or of a buffer that has to lie where the task runs.
    """
    machine = problem.machine
    of_task = {pin.task: pin.cores for pin in problem.pins.tasks if pin.cores}
    operands = pinned_operands(problem)
    return {
        task: tuple(
            core.index
            for core in machine.cores
            if problem.tasks[task].cycles[core.kind] is not None
            and core.index not in problem.pins.forbidden
            and (task not in of_task or core.index in of_task[task])
            and all(may_lie(machine, pin, core.memory) for pin in operands.get(task, ()))
        )
        for task in sorted({*of_task, *operands})
    }


def refuse_contradictions(problem: Problem) -> None:
    """Raise an error where pins leave no plan, as far as that can be seen at once.

    Raises
    ------
    PinError
        With the first contradiction; it names both sides.
    """
    if problem.pins:
        first = next(_Contradictions(problem).all(), None)
        if first is not None:
            raise PinError(f"pins: {first}")


class _Contradictions:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._machine = problem.machine
        self._pins = problem.pins
        self._of_task = {pin.task: pin for pin in problem.pins.tasks}
        self._operands = pinned_operands(problem)
        self._left = cores_left(problem)

    def all(self) -> Iterator[str]:
        yield from self._no_core_is_left()
        for pin in self._pins.buffers:
            yield from self._has_no_room(pin)
            yield from self._begins_or_ends_elsewhere(pin)
        yield from self._share_bytes()
        yield from self._end_too_late()

    def _no_core_is_left(self) -> Iterator[str]:
        cores, forbidden = self._machine.cores, frozenset(self._pins.forbidden)
        if len(forbidden) == len(cores):
            yield f"all {len(forbidden)} cores are forbidden, and there are tasks to run"
        first: dict[tuple[bool, ...], Task] = {}
        for task in self._problem.tasks if forbidden else ():
            first.setdefault(tuple(cycles is not None for cycles in task.cycles), task)
        for kinds, task in first.items():
            able = [core.index for core in cores if kinds[core.kind]]
            if able and forbidden.issuperset(able):
                yield (
                    f"task {task.name} can run on {self._cores(able)} only, and all of these are "
                    "forbidden"
                )
        for index, left in self._left.items():
            if not left:
                yield self._why_none_is_left(self._problem.tasks[index])

    def _why_none_is_left(self, task: Task) -> str:
        cores, forbidden = self._machine.cores, self._pins.forbidden
        pin = self._of_task.get(task.index)
        wanted: Sequence[CoreIdx] = pin.cores if pin and pin.cores else range(len(cores))
        able = [core for core in wanted if task.cycles[cores[core].kind] is not None]
        allowed = [core for core in able if core not in forbidden]
        here = list(dict.fromkeys(cores[core].memory for core in allowed))
        who = f"task {task.name}"
        if pin and pin.cores:
            who += f" is pinned to {self._cores(pin.cores)}"
            if not able:
                kinds = {self._machine.kinds[cores[core].kind].name for core in wanted}
                return f"{who}, of kind {', '.join(sorted(kinds))}, which cannot run it"
            if not allowed:
                return f"{who}, and {self._cores(able)} is forbidden"
            who += f", which works in {self._memories(here)}"
        operands = self._operands[task.index]
        for wrong in operands:
            if not any(may_lie(self._machine, wrong, memory) for memory in here):
                return f"{who}, but it needs {self._pinned(wrong)}"
        needs = " and ".join(map(self._pinned, operands[:SHOWN]))
        return f"{who}, but no memory of its cores may hold both {needs}"

    def _has_no_room(self, pin: BufferPin) -> Iterator[str]:
        size, who = self._problem.buffers[pin.buffer].bytes, self._pinned(pin)
        reads = (read for task in self._problem.tasks for read in task.reads)
        if pin.resident and all(self._problem.slices[r].buffer != pin.buffer for r in reads):
            yield f"{who} to be resident until its last reader has ended, but no task reads it"
        for memory in (self._machine.memories[index] for index in pin.memories):
            if pin.address is None:
                room = largest_room(memory)
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

    def _begins_or_ends_elsewhere(self, pin: BufferPin) -> Iterator[str]:
        buffer = self._problem.buffers[pin.buffer]
        for memory, what in ((buffer.starts_in, "begins"), (buffer.ends_in, "ends")):
            if memory is not None and not may_lie(self._machine, pin, memory):
                yield f"{self._pinned(pin)}, but {what} in {self._memories([memory])}"

    def _share_bytes(self) -> Iterator[str]:
        """Two buffers with addresses that must be there at one time, on the same bytes."""
        buffers = self._problem.buffers
        for pins, why, in_place in self._together():
            for one, other in combinations(pins, 2):
                start, second = one.address or 0, other.address or 0
                end = start + buffers[one.buffer].bytes
                last = second + buffers[other.buffer].bytes
                as_one = start == second and {one.buffer, other.buffer} in in_place
                if one.memories == other.memories and start < last and second < end and not as_one:
                    yield (
                        f"{self._pinned(one)} at [{start}, {end}) and {self._pinned(other)} at "
                        f"[{second}, {last}) share bytes, but both are needed {why}"
                    )

    def _together(self) -> Iterator[tuple[list[BufferPin], str, list[set[BufferIdx]]]]:
        """Yield pins with addresses that hold at one time, when, and pairs that may be in place."""
        fixed = [p for p in self._pins.buffers if p.address is not None and len(p.memories) == 1]
        for index, operands in self._operands.items():
            task, slices = self._problem.tasks[index], self._problem.slices
            in_place = [{slices[read].buffer, written} for read, written in task.in_place]
            yield [pin for pin in operands if pin in fixed], f"by task {task.name}", in_place
        for edge, when in (("starts_in", "at cycle 0"), ("ends_in", "at the end")):
            homes = [getattr(buffer, edge) for buffer in self._problem.buffers]
            yield [pin for pin in fixed if homes[pin.buffer] in pin.memories], when, []

    def _end_too_late(self) -> Iterator[str]:
        """A task that cannot have ended in time, by the least cycles of those before it."""
        if all(pin.not_after is None for pin in self._pins.tasks):
            return
        before = self._problem.predecessors()
        start = [0] * len(self._problem.tasks)
        end = [0] * len(self._problem.tasks)
        cause = list(range(len(self._problem.tasks)))
        for task in self._problem.topological_order():
            pin = self._of_task.get(task)
            last = max(before[task], key=end.__getitem__, default=None)
            start[task] = 0 if pin is None else pin.not_before
            if last is not None and end[last] > start[task]:
                start[task], cause[task] = end[last], cause[last]
            end[task] = start[task] + self._least_cycles(task)
            if pin is not None and pin.not_after is not None and end[task] > pin.not_after:
                yield self._too_late(task, pin.not_after, end[task], cause[task])

    def _too_late(self, task: TaskIdx, wanted: Cycles, least: Cycles, cause: TaskIdx) -> str:
        tasks, pin = self._problem.tasks, self._of_task.get(cause)
        who = f"task {tasks[task].name} is pinned to have ended by cycle {wanted}"
        if pin is None or pin.not_before == 0:
            return f"{who}, but with what has to run before it it ends at {least} at the earliest"
        it = "it" if cause == task else f"task {tasks[cause].name}, before it,"
        return f"{who}, but {it} is pinned not to start before {pin.not_before}: it ends at {least}"

    def _least_cycles(self, task: TaskIdx) -> Cycles:
        cycles = self._problem.tasks[task].cycles
        cores: Iterable[CoreIdx] = self._left.get(task, range(len(self._machine.cores)))
        kinds = {self._machine.cores[core].kind for core in cores}
        return min((found for kind in kinds if (found := cycles[kind]) is not None), default=0)

    def _pinned(self, pin: BufferPin) -> str:
        name = self._problem.buffers[pin.buffer].name
        return f"buffer {name} is pinned to {self._memories(pin.memories)}"

    def _cores(self, cores: Sequence[CoreIdx]) -> str:
        return _listed([self._machine.cores[core].name for core in cores])

    def _memories(self, memories: Sequence[MemoryIdx]) -> str:
        return _listed([self._machine.memories[memory].name for memory in memories])


def largest_room(memory: Memory) -> Bytes:
    """Return the most bytes that lie in a memory in one piece, at an aligned address."""
    if memory.size is None:
        return 1 << 62
    low, best = 0, 0
    for start, end in (*((r.start, r.end) for r in memory.reserved), (memory.size, memory.size)):
        best = max(best, start - align_up(low, memory.alignment))
        low = end
    return best


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
