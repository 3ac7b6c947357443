"""Where pins let tasks run and buffers lie, and pins that leave no plan: both sides are named."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from spmilp.errors import PinError
from spmilp.machine.machine import Machine, Memory
from spmilp.problem.pins import BufferPin, TaskPin
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, CoreIdx, Cycles, MemoryIdx, TaskIdx, align_up


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


SHOWN = 4
"""Names of one kind in a message; the others are counted."""


def refuse_contradictions(problem: Problem) -> None:
    """Raise an error where pins leave no plan, as far as that can be seen at once.

    Raises
    ------
    PinError
        With the first contradiction; it names both sides.
    """
    if problem.pins:
        finder = _Contradictions(problem)
        first = next(finder.all(), None)
        if first is not None:
            raise PinError(f"pins: {first}")


class _Contradictions:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._machine = problem.machine
        self._pins = problem.pins
        self._of_buffer = {pin.buffer: pin for pin in self._pins.buffers}
        self._left = cores_left(problem)

    def all(self) -> Iterator[str]:
        yield from self._no_core_is_left()
        for pin in self._pins.buffers:
            yield from self._has_no_room(pin)
            yield from self._begins_or_ends_elsewhere(pin)
        yield from self._share_bytes()
        yield from self._end_too_late()

    def _no_core_is_left(self) -> Iterator[str]:
        forbidden = frozenset(self._pins.forbidden)
        cores: Sequence[CoreIdx]
        if len(forbidden) == len(self._machine.cores):
            yield f"all {len(forbidden)} cores are forbidden, and there are tasks to run"
        ways: set[tuple[bool, ...]] = set()
        for task in self._problem.tasks if forbidden else ():
            able = tuple(cycles is not None for cycles in task.cycles)
            if able in ways:
                continue
            ways.add(able)
            cores = [core.index for core in self._machine.cores if able[core.kind]]
            if cores and forbidden.issuperset(cores):
                yield (
                    f"task {task.name} can run on {self._cores(cores)} only, and all of these are "
                    "forbidden"
                )
        for index, cores in self._left.items():
            if not cores:
                yield self._why_none_is_left(self._problem.tasks[index])

    def _why_none_is_left(self, task: Task) -> str:
        machine, forbidden = self._machine, self._pins.forbidden
        pin = next((p for p in self._pins.tasks if p.task == task.index and p.cores), None)
        wanted: Sequence[CoreIdx] = range(len(machine.cores)) if pin is None else pin.cores
        who = f"task {task.name}"
        if pin is not None:
            who += f" is pinned to {self._cores(pin.cores)}"
            able = [c for c in wanted if task.cycles[machine.cores[c].kind] is not None]
            if not able:
                kinds = {machine.kinds[machine.cores[core].kind].name for core in wanted}
                return f"{who}, of kind {', '.join(sorted(kinds))}, which cannot run it"
            if set(able) <= set(forbidden):
                return f"{who}, and {self._cores(able)} is forbidden"
        else:
            able = [c for c in wanted if task.cycles[machine.cores[c].kind] is not None]
        able = [core for core in able if core not in forbidden]
        operands = pinned_operands(self._problem)[task.index]
        here = list(dict.fromkeys(machine.cores[core].memory for core in able))
        if pin is not None:
            who += f", which works in {self._memories(here)}"
        for buffer in operands:
            wrong = self._of_buffer[buffer]
            if not any(may_lie(machine, wrong, memory) for memory in here):
                return f"{who}, but it needs {self._pinned(wrong)}"
        needs = " and ".join(self._pinned(self._of_buffer[b]) for b in operands[:SHOWN])
        return f"{who}, but no memory of its cores may hold both {needs}"

    def _has_no_room(self, pin: BufferPin) -> Iterator[str]:
        buffer = self._problem.buffers[pin.buffer]
        if pin.resident and not any(
            self._problem.slices[read].buffer == pin.buffer
            for task in self._problem.tasks
            for read in task.reads
        ):
            yield (
                f"{self._pinned(pin)} to be resident until its last reader has ended, but no task "
                "reads it"
            )
        for index in pin.memories:
            memory = self._machine.memories[index]
            if pin.address is None:
                room = largest_room(memory)
                if room < buffer.bytes and (pin.resident or len(pin.memories) == 1):
                    yield (
                        f"{self._pinned(pin)}, and needs {buffer.bytes} B > {room} B, the longest "
                        "free stretch there"
                    )
                continue
            end = pin.address + buffer.bytes
            who = f"{self._pinned(pin)} at [{pin.address}, {end})"
            if pin.address % memory.alignment:
                yield f"{who}, which is no multiple of its alignment of {memory.alignment} B"
            if memory.size is not None and end > memory.size:
                yield f"{who}, but it ends at {memory.size}"
            for taken in memory.reserved:
                if pin.address < taken.end and taken.start < end:
                    yield f"{who}, of which [{taken.start}, {taken.end}) is reserved"

    def _begins_or_ends_elsewhere(self, pin: BufferPin) -> Iterator[str]:
        buffer = self._problem.buffers[pin.buffer]
        for memory, what in ((buffer.starts_in, "begins"), (buffer.ends_in, "ends")):
            if memory is not None and not may_lie(self._machine, pin, memory):
                yield f"{self._pinned(pin)}, but {what} in {self._memories([memory])}"

    def _share_bytes(self) -> Iterator[str]:
        """Two buffers with addresses that must be there at one time, on the same bytes."""
        for one, other, why in self._together():
            shared = [memory for memory in one.memories if memory in other.memories]
            if not shared or one.address is None or other.address is None:
                continue
            sizes = [self._problem.buffers[pin.buffer].bytes for pin in (one, other)]
            ends = one.address + sizes[0], other.address + sizes[1]
            if one.address < ends[1] and other.address < ends[0]:
                yield (
                    f"{self._pinned(one)} at [{one.address}, {ends[0]}) and "
                    f"{self._pinned(other)} at [{other.address}, {ends[1]}) share bytes, but both "
                    f"are needed {why}"
                )

    def _together(self) -> Iterator[tuple[BufferPin, BufferPin, str]]:
        """Yield pins of buffers that have to lie in one memory at one time, and when."""
        fixed = {
            pin.buffer: pin
            for pin in self._pins.buffers
            if pin.address is not None and len(pin.memories) == 1
        }
        for task, operands in pinned_operands(self._problem).items():
            pairs = {
                (self._problem.slices[read].buffer, written)
                for read, written in self._problem.tasks[task].in_place
            }
            some = [buffer for buffer in operands if buffer in fixed]
            for a, b in combinations(some, 2):
                in_place = (a, b) in pairs or (b, a) in pairs
                if not (in_place and fixed[a].address == fixed[b].address):
                    yield fixed[a], fixed[b], f"by task {self._problem.tasks[task].name}"
        for edge, when in (("starts_in", "at cycle 0"), ("ends_in", "at the end")):
            there = [
                fixed[b.index]
                for b in self._problem.buffers
                if b.index in fixed and getattr(b, edge) in fixed[b.index].memories
            ]
            for one, other in combinations(there, 2):
                yield one, other, when

    def _end_too_late(self) -> Iterator[str]:
        """A task that cannot have ended in time, by the least cycles of those before it."""
        pins = {pin.task: pin for pin in self._pins.tasks}
        if not any(pin.not_after is not None for pin in pins.values()):
            return
        before = self._problem.predecessors()
        start = [0] * len(self._problem.tasks)
        end = [0] * len(self._problem.tasks)
        cause: list[TaskIdx | None] = [None] * len(self._problem.tasks)
        for task in self._problem.topological_order():
            pin = pins.get(task)
            last = max(before[task], key=end.__getitem__, default=None)
            start[task], cause[task] = 0 if pin is None else pin.not_before, task
            if last is not None and end[last] > start[task]:
                start[task], cause[task] = end[last], cause[last]
            end[task] = start[task] + self._least_cycles(task)
            if pin is not None and pin.not_after is not None and end[task] > pin.not_after:
                yield self._too_late(task, pin.not_after, start[task], cause[task] or 0)

    def _too_late(self, task: TaskIdx, wanted: Cycles, start: Cycles, cause: TaskIdx) -> str:
        tasks = self._problem.tasks
        least = start + self._least_cycles(task)
        who = f"task {tasks[task].name} is pinned to have ended by cycle {wanted}"
        pin = next((pin for pin in self._pins.tasks if pin.task == cause), None)
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
        return (
            f"buffer {self._problem.buffers[pin.buffer].name} is pinned to "
            f"{self._memories(pin.memories)}"
        )

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
