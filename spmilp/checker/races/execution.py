"""Command lists run without times, with a vector clock for each list.

A clock says how many commands of every list have been executed for certain, whatever the delays
(Mattern, Virtual time and global states of distributed systems, 1989). A wait that can go on once
can also go on later, as nobody else takes from a semaphore meanwhile: one run shows whether all
end.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.commands.commands import (
    CommandLists,
    EventScheme,
    Move,
    Run,
    Signal,
    Wait,
)

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
