"""Do command lists keep a plan's order, whatever the delays? Independent of how they were made.

The lists run the plan's tasks and transfers, each once; they are run without times, with a vector
clock for each list; and accesses of the same bytes must be ordered as in the plan. The rules are
those of ``docs/commands.md``.

A clock says how many commands of every list have been executed for certain, whatever the delays
(Mattern, Virtual time and global states of distributed systems, 1989). A wait that can go on once
can also go on later, as nobody else takes from a semaphore meanwhile: one run shows whether all
end.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import add
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.check import listed
from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CommandLists,
    CoreCommands,
    EventScheme,
    Move,
    Run,
    Signal,
    Wait,
)
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, footprint
from spmilp.units import Box, Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


def list_name(case: Case, one: CoreCommands | ChannelCommands) -> str:
    """Return the name of a list."""
    if isinstance(one, CoreCommands):
        return case.core(one.core)
    return f"channel {one.channel} of engine {case.machine.engines[one.engine].name}"


def command_name(case: Case, command: Command) -> str:
    """Return a command as text."""
    match command:
        case Run(task):
            return case.task(task)
        case Move(transfer):
            return f"transfer {transfer} of {case.slice(case.plan.transfers[transfer].slice)}"
        case Wait(event, count):
            return f"wait for event {event} to reach {count}"
        case Signal(event):
            return f"signal of event {event}"


def command_lists(case: Case, lists: CommandLists) -> Iterator[Violation]:
    """Each core and channel has its list, with all its tasks or transfers, once, and no others."""
    defects = list(_missing_lists(case, lists))
    if not defects:
        defects = [*_wrong_commands(case, lists), *_missing_commands(case, lists)]
    for who, what in defects:
        yield Violation("command_lists", (who,), f"{who}: {what}")


def _missing_lists(case: Case, lists: CommandLists) -> Iterator[tuple[str, str]]:
    cores = [core.index for core in case.machine.cores]
    if [one.core for one in lists.cores] != cores:
        yield (
            "lists",
            f"{len(lists.cores)} of cores, expected one for each of {len(cores)}, in order",
        )
    channels = [(e.index, channel) for e in case.machine.engines for channel in range(e.channels)]
    if [(one.engine, one.channel) for one in lists.channels] != channels:
        yield (
            "lists",
            f"{len(lists.channels)} of channels, expected one for each of {len(channels)}, in the "
            "order of engines and channels",
        )


def _wrong_commands(case: Case, lists: CommandLists) -> Iterator[tuple[str, str]]:
    for one in lists.lists:
        for number, command in enumerate(one.commands):
            who = f"command {number} of {list_name(case, one)}"
            match command:
                case Run(task):
                    if not isinstance(one, CoreCommands):
                        yield who, "runs a task, but is in the list of a channel"
                    elif not 0 <= task < len(case.plan.placements):
                        yield who, f"runs task {task}, but there are {len(case.plan.placements)}"
                    elif case.plan.placements[task].core != one.core:
                        where = case.core(case.plan.placements[task].core)
                        yield who, f"runs {case.task(task)}, which the plan places on {where}"
                case Move(transfer):
                    if not isinstance(one, ChannelCommands):
                        yield who, "moves a transfer, but is in the list of a core"
                    elif not 0 <= transfer < len(case.plan.transfers):
                        yield (
                            who,
                            f"moves transfer {transfer}, but there are {len(case.plan.transfers)}",
                        )
                    else:
                        move = case.plan.transfers[transfer]
                        if (move.engine, move.channel) != (one.engine, one.channel):
                            name = case.machine.engines[move.engine].name
                            yield (
                                who,
                                f"moves transfer {transfer}, which the plan gives to channel "
                                f"{move.channel} of engine {name}",
                            )
                case Wait(event, count):
                    if not 0 <= event < lists.events or count < 1:
                        yield who, f"waits for event {event} of {lists.events} to reach {count}"
                case Signal(event):
                    if not 0 <= event < lists.events:
                        yield who, f"signals event {event}, but there are {lists.events}"


def _missing_commands(case: Case, lists: CommandLists) -> Iterator[tuple[str, str]]:
    tasks = [0] * len(case.plan.placements)
    transfers = [0] * len(case.plan.transfers)
    for one in lists.lists:
        for command in one.commands:
            if isinstance(command, Run) and 0 <= command.task < len(tasks):
                tasks[command.task] += 1
            if isinstance(command, Move) and 0 <= command.transfer < len(transfers):
                transfers[command.transfer] += 1
    for task, times in enumerate(tasks):
        if times != 1:
            yield case.task(task), f"is run {times} times, expected once"
    for transfer, times in enumerate(transfers):
        if times != 1:
            yield f"transfer {transfer}", f"is moved {times} times, expected once"


Clock: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ProgramPoint:
    """Command number ``position`` of a list."""

    list: int
    position: int


@dataclass(slots=True)
class _Event:
    """What has happened to an event: by whom it was signalled, and who took the signals.

    For the n-th signal, ``clocks`` holds what a wait for it learns, as long as somebody may ask;
    ``blocked`` has the lists that it lets go on.
    """

    signals: list[ProgramPoint] = field(default_factory=list)
    waits: list[ProgramPoint] = field(default_factory=list)
    clocks: dict[int, Clock] = field(default_factory=dict)
    blocked: dict[int, list[int]] = field(default_factory=dict)


class Execution:
    """One run of the lists; what it notices about events is in ``unordered`` and ``overfull``.

    Parameters
    ----------
    maximum
        What an event can count to; ``None`` without limit.
    """

    def __init__(self, lists: CommandLists, maximum: int | None) -> None:
        self._commands = [one.commands for one in lists.lists]
        self._takes = lists.scheme is EventScheme.SEMAPHORES
        self._maximum = maximum
        self._events = [_Event() for _ in range(lists.events)]
        used = [index for index, commands in enumerate(self._commands) if commands]
        self._column = {index: column for column, index in enumerate(used)}
        self._clocks = {index: np.zeros(len(used), dtype=np.int64) for index in used}
        self._next = dict.fromkeys(used, 0)
        self._asked = Counter(
            (command.event, command.count)
            for commands in self._commands
            for command in commands
            if isinstance(command, Wait)
        )
        self.unordered: list[tuple[int, ProgramPoint, ProgramPoint]] = []
        self.overfull: list[tuple[int, ProgramPoint]] = []

    def run(self) -> Iterator[tuple[ProgramPoint, Run | Move]]:
        """Yield tasks and transfers as they start, each after all that precede it for certain."""
        ready = deque(self._next)
        while ready:
            index = ready.popleft()
            commands = self._commands[index]
            while self._next[index] < len(commands):
                point = ProgramPoint(index, self._next[index])
                command = commands[point.position]
                if isinstance(command, Run | Move):
                    yield point, command
                elif isinstance(command, Signal):
                    ready.extend(self._signal(point, command))
                elif not self._wait(point, command):
                    break
                self._next[index] += 1
                self._clocks[index][self._column[index]] = self._next[index]

    def precedes(self, point: ProgramPoint, now: ProgramPoint) -> bool:
        """Say whether a command has been executed for certain when ``now`` is, the current one."""
        return bool(self._clocks[now.list][self._column[point.list]] > point.position)

    def stuck(self) -> Iterator[tuple[ProgramPoint, Wait, int]]:
        """Yield the waits at which lists stopped for ever, and what their events had come to."""
        for index, position in self._next.items():
            if position == len(self._commands[index]):
                continue
            command = self._commands[index][position]
            if isinstance(command, Wait):
                event = self._events[command.event]
                value = len(event.signals) - (len(event.waits) if self._takes else 0)
                yield ProgramPoint(index, position), command, value

    def _signal(self, point: ProgramPoint, command: Signal) -> list[int]:
        """Let an event be signalled; return the lists that may go on."""
        event = self._events[command.event]
        if event.signals and not self.precedes(event.signals[-1], point):
            self.unordered.append((command.event, event.signals[-1], point))
        event.signals.append(point)
        number = len(event.signals)
        if self._maximum is not None and number > self._maximum:
            answered = number - self._maximum
            taken = self._takes and len(event.waits) >= answered
            if not (taken and self.precedes(event.waits[answered - 1], point)):
                self.overfull.append((command.event, point))
        if self._takes or self._asked[command.event, number]:
            clock = self._clocks[point.list].copy()
            clock[self._column[point.list]] = point.position + 1
            event.clocks[number] = clock
        return event.blocked.pop(number, [])

    def _wait(self, point: ProgramPoint, command: Wait) -> bool:
        """Let a list wait; return whether it may go on."""
        event = self._events[command.event]
        number = command.count + (len(event.waits) if self._takes else 0)
        if len(event.signals) < number:
            event.blocked.setdefault(number, []).append(point.list)
            return False
        if self._takes and event.waits and not self._is_over(event.waits[-1], point):
            self.unordered.append((command.event, event.waits[-1], point))
        event.waits += [point] * (command.count if self._takes else 0)
        clock = self._clocks[point.list]
        np.maximum(clock, event.clocks[number], out=clock)
        self._asked[command.event, command.count] -= 1
        if self._takes or not self._asked[command.event, command.count]:
            del event.clocks[number]
        return True

    def _is_over(self, earlier: ProgramPoint, point: ProgramPoint) -> bool:
        """Say whether a wait is over for certain when a list comes to another one.

        Otherwise this one may take the signal that was sent for the earlier one. What the list
        learns by the wait itself does not count: it comes too late.
        """
        return earlier.list == point.list or self.precedes(earlier, point)


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write of bytes, or of a box of a tensor where ``box`` is set.

    Bytes are ``[low, high)`` of the memory; for a box, from its first to its last.
    """

    residency: ResidencyIdx
    memory: MemoryIdx
    low: Bytes
    high: Bytes
    tensor: TensorIdx | None
    box: Box
    writes: bool


def accesses_of_task(case: Case, task: int) -> Iterator[Access]:
    """Yield what a task reads, then what it writes, scratch included."""
    placement, given = case.plan.placements[task], case.problem.tasks[task]
    for slice_, index in zip(given.reads, placement.reads, strict=True):
        yield _access(case, slice_, index, writes=False)
    for buffer, index in zip(given.writes, placement.writes, strict=True):
        yield _access(case, buffer, index, writes=True)
    if placement.scratch is not None:
        residency = case.plan.residencies[placement.scratch]
        end = residency.offset + residency.bytes
        yield Access(
            residency.index, residency.memory, residency.offset, end, None, (), writes=True
        )


def accesses_of_transfer(case: Case, transfer: int) -> Iterator[Access]:
    """Yield what a transfer reads, then what it writes."""
    move = case.plan.transfers[transfer]
    yield _access(case, move.slice, move.source, writes=False)
    for residency in move.destinations:
        yield _access(case, move.slice, residency, writes=True)


def boxes_touched(case: Case) -> dict[TensorIdx, list[Box]]:
    """Return the different boxes that anybody touches of each tensor that somebody writes."""
    written = {
        home
        for residency, home in zip(case.plan.residencies, case.home, strict=True)
        if home is not None
        and (residency.filled_by_task is not None or residency.filled_by_transfer is not None)
    }
    found: dict[TensorIdx, dict[Box, None]] = {tensor: {} for tensor in sorted(written)}
    pairs = [(move.slice, end) for move in case.plan.transfers for end in move.destinations]
    pairs += [(use.slice, use.residency) for use in (*case.task_uses, *case.transfer_uses)]
    for placement in case.plan.placements:
        pairs += zip(case.problem.tasks[placement.task].writes, placement.writes, strict=True)
    for slice_, index in pairs:
        home = case.home[index]
        if home in found:
            found[home][_access(case, slice_, index, writes=True).box] = None
    return {tensor: list(boxes) for tensor, boxes in found.items()}


def _access(case: Case, slice_: SliceIdx, residency: ResidencyIdx, *, writes: bool) -> Access:
    part, home = case.problem.slices[slice_], case.home[residency]
    memory = case.plan.residencies[residency].memory
    low, strides = case.where(slice_, residency)
    buffer = case.problem.buffers[part.buffer]
    high = low + footprint(part.extent, buffer.item, Layout(0, strides))
    box: Box = ()
    if home is not None and buffer.place is not None:
        first = map(add, buffer.place.start, part.start)
        box = tuple((start, start + n) for start, n in zip(first, part.extent, strict=True))
    return Access(residency, memory, low, high, home, box, writes)


@dataclass(frozen=True, slots=True)
class Touch:
    """An access by a task or transfer: who, where in the lists, and when in the plan."""

    command: Run | Move
    point: ProgramPoint
    start: Cycles
    end: Cycles
    access: Access


@dataclass(slots=True)
class Cell:
    """Bytes that were touched alike: who wrote them last, and who in each list read them since."""

    writer: Touch | None = None
    readers: dict[int, Touch] = field(default_factory=dict)


class ByteShadow:
    """The bytes of one memory: cells side by side, cut where an access begins or ends."""

    def __init__(self) -> None:
        self._starts: list[Bytes] = []
        self._cells: dict[Bytes, Cell] = {}

    def cells(self, low: Bytes, high: Bytes) -> list[Cell]:
        """Return the cells of ``[low, high)``; together they are exactly these bytes."""
        self._cut(low)
        self._cut(high)
        between = slice(bisect_left(self._starts, low), bisect_left(self._starts, high))
        return [self._cells[start] for start in self._starts[between]]

    def renew(self, low: Bytes, high: Bytes, writer: Touch) -> None:
        """Make one cell of bytes that have been written."""
        self._cut(low)
        self._cut(high)
        between = slice(bisect_left(self._starts, low) + 1, bisect_left(self._starts, high))
        for start in self._starts[between]:
            del self._cells[start]
        del self._starts[between]
        self._cells[low] = Cell(writer)

    def _cut(self, at: Bytes) -> None:
        """Let a cell begin at a byte; what lies behind the last cut is one cell."""
        if at in self._cells:
            return
        place = bisect_left(self._starts, at)
        left = self._cells[self._starts[place - 1]] if place else Cell()
        self._starts.insert(place, at)
        self._cells[at] = Cell(left.writer, dict(left.readers))


class BoxShadow:
    """The elements of one tensor: a cell for each different box that anybody touches."""

    def __init__(self, boxes: list[Box]) -> None:
        self._cells = {box: Cell() for box in boxes}
        self._boxes = list(self._cells)
        self._lows = np.array([[low for low, _ in box] for box in self._boxes], dtype=np.int64)
        self._highs = np.array([[high for _, high in box] for box in self._boxes], dtype=np.int64)
        self._met: dict[Box, list[Box]] = {}

    def own(self, box: Box) -> Cell:
        """Return the cell of a box."""
        return self._cells[box]

    def cells(self, box: Box) -> list[Cell]:
        """Return the cells of all boxes that share elements with a box, itself included."""
        if box not in self._met:
            low, high = np.array(box, dtype=np.int64).reshape(-1, 2).T
            meet = ((self._lows < high) & (low < self._highs)).all(axis=1)
            self._met[box] = [self._boxes[index] for index in np.flatnonzero(meet)]
        return [self._cells[other] for other in self._met[box]]

    def renew(self, box: Box, writer: Touch) -> None:
        """Note that a box has been written."""
        self._cells[box].writer = writer
        self._cells[box].readers.clear()


class Conflicts:
    """Looks at tasks and transfers as they start, and says with what they are not ordered.

    It is enough to compare an access with the last write of its bytes and the reads since: if these
    are ordered as in the plan, so are all before them. Tensors that nobody writes are left out.
    """

    def __init__(self, case: Case, execution: Execution) -> None:
        self._case = case
        self._execution = execution
        self._bytes = [ByteShadow() for _ in case.machine.memories]
        self._boxes = {tensor: BoxShadow(boxes) for tensor, boxes in boxes_touched(case).items()}
        self._tasks: dict[int, ProgramPoint] = {}

    def at_start(self, point: ProgramPoint, command: Run | Move) -> Iterator[Violation]:
        """Yield what is wrong when a task or transfer starts, and note its accesses."""
        if isinstance(command, Run):
            yield from self._task_order(command.task, point)
            self._tasks[command.task] = point
            accesses = accesses_of_task(self._case, command.task)
        else:
            accesses = accesses_of_transfer(self._case, command.transfer)
        for access in accesses:
            touch = self._touch(point, command, access)
            for cell in self._cells(access):
                yield from self._with_cell(touch, cell)
            self._note(touch)

    def _touch(self, point: ProgramPoint, command: Run | Move, access: Access) -> Touch:
        planned = (
            self._case.plan.placements[command.task]
            if isinstance(command, Run)
            else self._case.plan.transfers[command.transfer]
        )
        return Touch(command, point, planned.start, planned.end, access)

    def _task_order(self, task: int, now: ProgramPoint) -> Iterator[Violation]:
        for earlier in self._case.problem.tasks[task].after:
            done = self._tasks.get(earlier)
            if done is None or not self._execution.precedes(done, now):
                first, second = self._case.task(earlier), self._case.task(task)
                message = f"nothing keeps {second} from starting before {first} has ended"
                yield Violation("task_order", (second, first), message)

    def _cells(self, access: Access) -> list[Cell]:
        if access.tensor is None:
            return self._bytes[access.memory].cells(access.low, access.high)
        shadow = self._boxes.get(access.tensor)
        return [] if shadow is None else shadow.cells(access.box)

    def _note(self, touch: Touch) -> None:
        access = touch.access
        if access.tensor is None:
            where = self._bytes[access.memory]
            if access.writes:
                where.renew(access.low, access.high, touch)
            else:
                for cell in where.cells(access.low, access.high):
                    cell.readers[touch.point.list] = touch
        elif access.tensor in self._boxes:
            if access.writes:
                self._boxes[access.tensor].renew(access.box, touch)
            else:
                self._boxes[access.tensor].own(access.box).readers[touch.point.list] = touch

    def _with_cell(self, touch: Touch, cell: Cell) -> Iterator[Violation]:
        others = [] if cell.writer is None else [cell.writer]
        if touch.access.writes:
            others += cell.readers.values()
        for other in others:
            if other.point == touch.point:
                continue
            if not self._execution.precedes(other.point, touch.point):
                yield self._violation(other, touch, "and neither waits for the other")
            elif other.end > touch.start:
                why = (
                    f"in this order, but the plan ends the first at cycle {other.end} > "
                    f"{touch.start}, the start of the second"
                )
                yield self._violation(other, touch, why)

    def _violation(self, other: Touch, touch: Touch, why: str) -> Violation:
        memory = self._case.memory(touch.access.memory)
        names = command_name(self._case, other.command), command_name(self._case, touch.command)
        first, second = (self._describe(each.access) for each in (other, touch))
        message = f"{names[0]} {first} and {names[1]} {second} of {memory}, {why}"
        return Violation("race", (*names, memory), message)

    def _describe(self, access: Access) -> str:
        verb = "writes" if access.writes else "reads"
        part = "" if access.tensor is None else "elements in "
        return f"{verb} {part}[{access.low}, {access.high})"


def check_commands(problem: Problem, plan: Plan, lists: CommandLists) -> tuple[Violation, ...]:
    """Return what is wrong with command lists for a valid plan; nothing if they may run.

    Times play no part but to tell in which order the plan has two accesses of the same bytes. The
    rules are those of ``docs/commands.md``; the first 20 violations of each are listed. The rules
    of plans are not asked again.
    """
    case = Case(problem, plan)
    found = listed(command_lists(case, lists))
    return found if found else listed(_violations(case, lists))


def _violations(case: Case, lists: CommandLists) -> Iterator[Violation]:
    yield from _number_of_events(case, lists)
    execution = Execution(lists, case.machine.event_maximum)
    conflicts = Conflicts(case, execution)
    for point, command in execution.run():
        yield from conflicts.at_start(point, command)
    yield from _deadlock(case, lists, execution)
    yield from _events(case, lists, execution)


def _number_of_events(case: Case, lists: CommandLists) -> Iterator[Violation]:
    limit = case.machine.events
    if limit is not None and lists.events > limit:
        name = case.machine.name
        yield Violation("event_limits", (name,), f"{lists.events} events > {limit} of {name}")


def _deadlock(case: Case, lists: CommandLists, execution: Execution) -> Iterator[Violation]:
    for point, command, value in execution.stuck():
        who = _where(case, lists, point)
        message = f"{who}, {command_name(case, command)}, never ends: the event stays at {value}"
        yield Violation("deadlock", (who, f"event {command.event}"), message)


def _events(case: Case, lists: CommandLists, execution: Execution) -> Iterator[Violation]:
    for event, one, other in execution.unordered:
        names = _where(case, lists, one), _where(case, lists, other)
        message = (
            f"{names[0]} and {names[1]} use event {event} in an order that depends on delays, so "
            "that waits may get the wrong signals"
        )
        yield Violation("event_order", (f"event {event}", *names), message)
    for event, point in execution.overfull:
        who = _where(case, lists, point)
        limit = case.machine.event_maximum
        message = f"{who} may take event {event} above {limit}, which {case.machine.name} counts to"
        yield Violation("event_limits", (f"event {event}", who), message)


def _where(case: Case, lists: CommandLists, point: ProgramPoint) -> str:
    return f"command {point.position} of {list_name(case, lists.lists[point.list])}"
