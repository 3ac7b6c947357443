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
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.check import COUNTED, listed
from spmilp.checker.rules.case import Case, is_filled
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
from spmilp.plan.memory import box_at_place
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.problem.strides import Layout, footprint
from spmilp.units import Box, Bytes, Cycles, EngineIdx, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


def check_commands(problem: Problem, plan: Plan, lists: CommandLists) -> tuple[Violation, ...]:
    """Return what is wrong with command lists for a valid plan; nothing if they may run.

    Times play no part but to tell in which order the plan has two accesses of the same bytes. The
    rules are those of ``docs/commands.md``; the first 20 violations of each are listed. The rules
    of plans are not asked again.
    """
    case = Case(problem, plan)
    found = listed(
        Violation("command_lists", (who,), f"{who}: {what}")
        for who, what in _incomplete(case, lists)
    )
    if found:
        return found
    per_rule: defaultdict[str, list[Violation]] = defaultdict(list)
    for violation in islice(_violations(case, lists), COUNTED):
        per_rule[violation.rule].append(violation)
    return tuple(violation for some in per_rule.values() for violation in listed(some))


def _violations(case: Case, lists: CommandLists) -> Iterator[Violation]:
    name, limit, maximum = case.machine.name, case.machine.events, case.machine.event_maximum
    if limit is not None and lists.events > limit:
        yield Violation("event_limits", (name,), f"{lists.events} events > {limit} of {name}")
    execution = _Execution(case, lists)
    conflicts = _Conflicts(case, execution)
    for point, command in execution.run():
        yield from conflicts.at_start(point, command)

    def where(point: _Point) -> str:
        return f"command {point.position} of {_list_name(case, lists.lists[point.list])}"

    for point, wait, value in execution.stuck():
        who, what = where(point), _command_name(case, wait)
        message = f"{who}, {what}, never ends: the event stays at {value}"
        yield Violation("deadlock", (who, f"event {wait.event}"), message)
    for event, one, other in execution.unordered:
        names = where(one), where(other)
        message = (
            f"{names[0]} and {names[1]} use event {event} in an order that depends on delays, so "
            "that waits may get the wrong signals"
        )
        yield Violation("event_order", (f"event {event}", *names), message)
    for event, point in execution.overfull:
        who = where(point)
        message = f"{who} may take event {event} above {maximum}, which {name} counts to"
        yield Violation("event_limits", (f"event {event}", who), message)


def _list_name(case: Case, one: CoreCommands | ChannelCommands) -> str:
    if isinstance(one, CoreCommands):
        return case.core(one.core)
    return _channel(case, one.engine, one.channel)


def _channel(case: Case, engine: EngineIdx, channel: int) -> str:
    return f"channel {channel} of engine {case.machine.engines[engine].name}"


def _command_name(case: Case, command: Command) -> str:
    match command:
        case Run(task):
            return case.task(task)
        case Move(transfer):
            return f"transfer {transfer} of {case.slice(case.plan.transfers[transfer].slice)}"
        case Wait(event, count):
            return f"wait for event {event} to reach {count}"
        case Signal(event):
            return f"signal of event {event}"


def _incomplete(case: Case, lists: CommandLists) -> Iterator[tuple[str, str]]:
    """Say why lists are not those of each core and channel, with all that it does, each once."""
    cores = [core.index for core in case.machine.cores]
    channels = [(e.index, channel) for e in case.machine.engines for channel in range(e.channels)]
    found = [one.core for one in lists.cores], [(one.engine, one.channel) for one in lists.channels]
    if found != (cores, channels):
        given = f"{len(lists.cores)} of cores and {len(lists.channels)} of channels"
        yield "lists", f"{given}, expected {len(cores)} and {len(channels)}, in the machine's order"
        return
    places: dict[Command, str] = {
        Run(one.task): case.core(one.core) for one in case.plan.placements
    }
    for move in case.plan.transfers:
        places[Move(move.index)] = _channel(case, move.engine, move.channel)
    times: Counter[Command] = Counter()
    for one in lists.lists:
        times.update(one.commands)
        here = _list_name(case, one)
        for number, command in enumerate(one.commands):
            if what := _misplaced(places, here, lists.events, command):
                yield f"command {number} of {here}", what
    for command in places:
        if times[command] != 1:
            yield _plainly(command), f"stands {times[command]} times in the lists, expected once"


def _misplaced(places: Mapping[Command, str], here: str, events: int, command: Command) -> str:
    """Say why a command cannot be in its list; empty if it can."""
    match command:
        case Wait(event, count):
            if not 0 <= event < events or count < 1:
                return f"waits for event {event} of {events} to reach {count}"
        case Signal(event):
            if not 0 <= event < events:
                return f"signals event {event}, but there are {events}"
        case _:
            there = places.get(command, "no list")
            if there != here:
                return f"is {_plainly(command)}, which the plan gives to {there}"
    return ""


def _plainly(command: Command) -> str:
    match command:
        case Run(task):
            return f"task {task}"
        case Move(transfer):
            return f"transfer {transfer}"
    return str(command)


_Clock: TypeAlias = NDArray[np.int64]


class _Point(NamedTuple):
    """Command number ``position`` of a list."""

    list: int
    position: int


@dataclass(slots=True)
class _Event:
    """What has happened to an event: by whom it was signalled, and who took the signals.

    For the n-th signal, ``clocks`` holds what a wait for it learns, as long as somebody may ask;
    ``blocked`` has the lists that it lets go on.
    """

    signals: list[_Point] = field(default_factory=list)
    waits: list[_Point] = field(default_factory=list)
    clocks: dict[int, _Clock] = field(default_factory=dict)
    blocked: dict[int, list[int]] = field(default_factory=dict)


class _Execution:
    """One run of the lists; what it notices about events is in ``unordered`` and ``overfull``.

    A channel of a pipelined engine goes on before what it has sent has arrived: it knows of that
    only by a wait for a signal behind it.
    """

    def __init__(self, case: Case, lists: CommandLists) -> None:
        self._commands = [one.commands for one in lists.lists]
        self._is_ahead = [
            isinstance(one, ChannelCommands) and case.machine.engines[one.engine].pipelined
            for one in lists.lists
        ]
        self._takes = lists.scheme is EventScheme.SEMAPHORES
        self._maximum = case.machine.event_maximum
        self._events = [_Event() for _ in range(lists.events)]
        self._next = [0] * len(self._commands)
        self._clocks = np.zeros((len(self._next), len(self._next)), dtype=np.int64)
        every = (command for commands in self._commands for command in commands)
        self._asked = Counter((w.event, w.count) for w in every if isinstance(w, Wait))
        self.unordered: list[tuple[int, _Point, _Point]] = []
        self.overfull: list[tuple[int, _Point]] = []

    def run(self) -> Iterator[tuple[_Point, Run | Move]]:
        """Yield tasks and transfers as they start, each after all that precede it for certain."""
        ready = deque(range(len(self._next)))
        while ready:
            index = ready.popleft()
            commands = self._commands[index]
            while self._next[index] < len(commands):
                point = _Point(index, self._next[index])
                command = commands[point.position]
                if isinstance(command, Run | Move):
                    yield point, command
                elif isinstance(command, Signal):
                    ready.extend(self._signal(point, command))
                elif not self._wait(point, command):
                    break
                self._next[index] += 1
                if not self._is_ahead[index]:
                    self._clocks[index, index] = self._next[index]

    def precedes(self, point: _Point, now: _Point) -> bool:
        """Say whether a command has completed for certain when the current one, ``now``, begins."""
        return bool(self._clocks[now.list, point.list] > point.position)

    def is_behind(self, point: _Point, now: _Point) -> bool:
        """Say it of a wait, a signal, or what is read, for which the order in a list is enough."""
        return point.list == now.list or self.precedes(point, now)

    def stuck(self) -> Iterator[tuple[_Point, Wait, int]]:
        """Yield the waits at which lists stopped for ever, and what their events had come to."""
        for index, position in enumerate(self._next):
            for command in self._commands[index][position : position + 1]:
                if isinstance(command, Wait):
                    event = self._events[command.event]
                    value = len(event.signals) - (len(event.waits) if self._takes else 0)
                    yield _Point(index, position), command, value

    def _signal(self, point: _Point, command: Signal) -> list[int]:
        """Let an event be signalled; return the lists that may go on."""
        event = self._events[command.event]
        if event.signals and not self.is_behind(event.signals[-1], point):
            self.unordered.append((command.event, event.signals[-1], point))
        event.signals.append(point)
        number = len(event.signals)
        if self._maximum is not None and number > self._maximum:
            answered = number - self._maximum
            taken = self._takes and len(event.waits) >= answered
            if not (taken and self.is_behind(event.waits[answered - 1], point)):
                self.overfull.append((command.event, point))
        if self._takes or self._asked[command.event, number]:
            clock = self._clocks[point.list].copy()
            clock[point.list] = point.position + 1
            event.clocks[number] = clock
        return event.blocked.pop(number, [])

    def _wait(self, point: _Point, command: Wait) -> bool:
        """Let a list wait; return whether it may go on.

        A wait before it for the same event must be over for certain: otherwise this one may take
        the signal that was sent for the earlier one. What the list learns by the wait itself does
        not count: it comes too late.
        """
        event = self._events[command.event]
        number = command.count + (len(event.waits) if self._takes else 0)
        if len(event.signals) < number:
            event.blocked.setdefault(number, []).append(point.list)
            return False
        if self._takes and event.waits and not self.is_behind(event.waits[-1], point):
            self.unordered.append((command.event, event.waits[-1], point))
        event.waits += [point] * (command.count if self._takes else 0)
        clock = self._clocks[point.list]
        np.maximum(clock, event.clocks[number], out=clock)
        self._asked[command.event, command.count] -= 1
        if self._takes or not self._asked[command.event, command.count]:
            del event.clocks[number]
        return True


@dataclass(frozen=True, slots=True)
class _Touch:
    """A read or a write of bytes, or of a box of a tensor where there is one.

    The point is where the command stands in the lists; in the plan the access takes the cycles
    ``[start, end)``, that of a transfer's source until all is sent. It touches bytes
    ``[low, high)``; of a box, from its first to its last.
    """

    command: Run | Move
    point: _Point
    start: Cycles
    end: Cycles
    memory: MemoryIdx
    low: Bytes
    high: Bytes
    tensor: TensorIdx | None
    box: Box
    writes: bool


def _touches(case: Case, point: _Point, command: Run | Move) -> Iterator[_Touch]:
    """Yield what a task or transfer reads, then what it writes, scratch included."""
    touched: list[tuple[SliceIdx | None, ResidencyIdx, bool]]
    if isinstance(command, Run):
        placement, task = case.plan.placements[command.task], case.problem.tasks[command.task]
        start, sent, end = placement.start, placement.end, placement.end
        touched = [(s, at, False) for s, at in zip(task.reads, placement.reads, strict=True)]
        touched += [(s, at, True) for s, at in zip(task.writes, placement.writes, strict=True)]
        if placement.scratch is not None:
            touched.append((None, placement.scratch, True))
    else:
        move = case.plan.transfers[command.transfer]
        start, sent, end = move.start, move.sent, move.end
        touched = [(move.slice, move.source, False)]
        touched += [(move.slice, target, True) for target in move.destinations]
    for slice_, index, writes in touched:
        residency, home, box = case.plan.residencies[index], case.home[index], Box()
        low = residency.offset
        high = low + residency.bytes
        if slice_ is not None:
            part = case.problem.slices[slice_]
            low, strides = case.where(slice_, index)
            item = case.problem.buffers[part.buffer].item
            high = low + footprint(part.extent, item, Layout(0, strides))
            box = () if home is None else box_at_place(case.problem, slice_)
        span = start, end if writes else sent
        yield _Touch(command, point, *span, residency.memory, low, high, home, box, writes)


@dataclass(slots=True)
class _Cell:
    """Bytes that were touched alike: who wrote them last, and who in each list read them since."""

    writer: _Touch | None = None
    readers: dict[int, _Touch] = field(default_factory=dict)


class _ByteShadow:
    """The bytes of one memory: cells side by side, cut where an access begins or ends."""

    def __init__(self) -> None:
        self._starts: list[Bytes] = []
        self._cells: dict[Bytes, _Cell] = {}

    def cells(self, touch: _Touch) -> list[_Cell]:
        """Return the cells of the bytes; together they are exactly these."""
        first, last = self._cut(touch.low), self._cut(touch.high)
        return [self._cells[start] for start in self._starts[first:last]]

    def note(self, touch: _Touch) -> None:
        """Note a read in each cell; make one cell of bytes that are written."""
        if not touch.writes:
            for cell in self.cells(touch):
                cell.readers[touch.point.list] = touch
            return
        first, last = self._cut(touch.low), self._cut(touch.high)
        for start in self._starts[first:last]:
            del self._cells[start]
        self._starts[first:last] = [touch.low]
        self._cells[touch.low] = _Cell(touch)

    def _cut(self, at: Bytes) -> int:
        """Let a cell begin at a byte, and return its place; behind the last cut is one cell."""
        place = bisect_left(self._starts, at)
        if at not in self._cells:
            left = self._cells[self._starts[place - 1]] if place else _Cell()
            self._starts.insert(place, at)
            self._cells[at] = _Cell(left.writer, dict(left.readers))
        return place


class _BoxShadow:
    """The elements of one tensor: a cell for each different box that has been touched."""

    def __init__(self) -> None:
        self._meeting: dict[Box, list[_Cell]] = {}

    def cells(self, touch: _Touch) -> list[_Cell]:
        """Return the cells of all boxes that share elements with a box, its own first."""
        box = touch.box
        if box not in self._meeting:
            own = _Cell()
            mine = [own]
            for other, cells in self._meeting.items():
                if all(a < d and c < b for (a, b), (c, d) in zip(box, other, strict=True)):
                    mine.append(cells[0])
                    cells.append(own)
            self._meeting[box] = mine
        return self._meeting[box]

    def note(self, touch: _Touch) -> None:
        """Note a read, or that the box has been written."""
        own = self.cells(touch)[0]
        if touch.writes:
            own.writer, own.readers = touch, {}
        else:
            own.readers[touch.point.list] = touch


class _Conflicts:
    """Looks at tasks and transfers as they start, and says with what they are not ordered.

    It is enough to compare an access with the last write of its bytes and the reads since: if these
    are ordered as in the plan, so are all before them. Tensors that nobody writes are left out.
    """

    def __init__(self, case: Case, execution: _Execution) -> None:
        self._case = case
        self._execution = execution
        self._bytes = [_ByteShadow() for _ in case.machine.memories]
        self._boxes = {
            home: _BoxShadow()
            for residency, home in zip(case.plan.residencies, case.home, strict=True)
            if home is not None and is_filled(residency)
        }
        self._tasks: dict[int, _Point] = {}

    def at_start(self, point: _Point, command: Run | Move) -> Iterator[Violation]:
        """Yield what is wrong when a task or transfer starts, and note its accesses."""
        if isinstance(command, Run):
            yield from self._task_order(command.task, point)
            self._tasks[command.task] = point
        for touch in _touches(self._case, point, command):
            where = self._bytes[touch.memory] if touch.tensor is None else None
            shadow = self._boxes.get(touch.tensor) if touch.tensor is not None else where
            if shadow is not None:
                for cell in shadow.cells(touch):
                    yield from self._with_cell(touch, cell)
                shadow.note(touch)

    def _task_order(self, task: int, now: _Point) -> Iterator[Violation]:
        for earlier in self._case.problem.tasks[task].after:
            done = self._tasks.get(earlier)
            if done is None or not self._execution.precedes(done, now):
                first, second = self._case.task(earlier), self._case.task(task)
                message = f"nothing keeps {second} from starting before {first} has ended"
                yield Violation("task_order", (second, first), message)

    def _with_cell(self, touch: _Touch, cell: _Cell) -> Iterator[Violation]:
        others = [] if cell.writer is None else [cell.writer]
        if touch.writes:
            others += cell.readers.values()
        for other in others:
            if other.point == touch.point:
                continue
            is_over = self._execution.precedes if other.writes else self._execution.is_behind
            if not is_over(other.point, touch.point):
                yield self._violation(other, touch, "and neither waits for the other")
            elif other.end > touch.start:
                why = (
                    f"in this order, but the plan ends the first at cycle {other.end} > "
                    f"{touch.start}, the start of the second"
                )
                yield self._violation(other, touch, why)

    def _violation(self, other: _Touch, touch: _Touch, why: str) -> Violation:
        memory = self._case.memory(touch.memory)
        names = [_command_name(self._case, each.command) for each in (other, touch)]
        first, second = (self._describe(each) for each in (other, touch))
        message = f"{names[0]} {first} and {names[1]} {second} of {memory}, {why}"
        return Violation("race", (*names, memory), message)

    def _describe(self, touch: _Touch) -> str:
        verb = "writes" if touch.writes else "reads"
        part = "" if touch.tensor is None else "elements in "
        return f"{verb} {part}[{touch.low}, {touch.high})"
