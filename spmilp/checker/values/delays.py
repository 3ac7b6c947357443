"""Events of a replay in time, or in an order that command lists allow, with random delays."""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from random import Random

from spmilp.checker.values.state import ReplayError
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
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan
from spmilp.units import Cycles


class Step(IntEnum):
    """Kinds of events; at one cycle in this order, so that ends precede starts."""

    FINISH = 0
    """A task or transfer has read its operands: they must still be what they were."""
    RELEASE = 1
    """A residency ends: its bytes are lost."""
    DELIVER = 2
    """The result of a task or transfer is written."""
    START = 3
    """A task or transfer begins: its operands must be there, its destinations are destroyed."""


class Actor(IntEnum):
    """Whom it happens to."""

    TASK = 0
    TRANSFER = 1
    RESIDENCY = 2


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something that happens at a cycle; ``index`` is the task's, transfer's or residency's."""

    cycle: Cycles
    step: Step
    actor: Actor
    index: int


def timed_events(plan: Plan) -> list[Event]:
    """Return everything that happens, in the order of the plan's cycles."""
    events: list[Event] = []
    for placement in plan.placements:
        events += _run(Actor.TASK, placement.task, placement.start, placement.end)
    for transfer in plan.transfers:
        events += _run(Actor.TRANSFER, transfer.index, transfer.start, transfer.end)
    for residency in plan.residencies:
        events.append(Event(residency.end, Step.RELEASE, Actor.RESIDENCY, residency.index))
    return sorted(events)


def _run(actor: Actor, index: int, start: Cycles, end: Cycles) -> list[Event]:
    return [
        Event(start, Step.START, actor, index),
        Event(end, Step.FINISH, actor, index),
        Event(end, Step.DELIVER, actor, index),
    ]


QUEUES = (1, 2, 16)
"""Transfers that a channel of unknown depth may hold; each run draws one for each channel."""


def delayed_events(machine: Machine, lists: CommandLists, seed: int) -> list[Event]:
    """Return the tasks' and transfers' events in an order that the lists allow.

    Every command starts after a random delay and takes a random time, over three orders of
    magnitude; some lists are slow throughout. A channel looks ahead as far as its queue is deep:
    the waits of a transfer may be over long before the transfer before it has completed.

    Raises
    ------
    ReplayError
        If all lists wait and nothing runs.
    """
    run = _Run(machine, lists, Random(seed))
    run.until_nothing_happens()
    waiting = [each for each in run.lists if each.commands]
    if waiting:
        raise ReplayError(
            f"the command lists are in deadlock after {len(run.events) // 3} tasks and transfers: "
            f"{len(waiting)} lists wait, one of them at {waiting[0].commands[0]}"
        )
    return sorted(run.events)


@dataclass(slots=True)
class _List:
    """A list while it runs.

    Parameters
    ----------
    commands
        What is still to do.
    depth
        Tasks or transfers that may have been handed over and not completed; a core does nothing
        else meanwhile.
    under_way
        Those, each with the signals that its completion sends.
    """

    commands: deque[Command]
    depth: int
    slowness: float
    is_core: bool
    under_way: deque[tuple[Run | Move, list[int]]] = field(default_factory=deque)

    @property
    def busy(self) -> bool:
        """Whether it cannot look at its next command now."""
        return len(self.under_way) >= (1 if self.is_core else self.depth)


class _Run:
    """One run of the lists, from event to event."""

    def __init__(self, machine: Machine, lists: CommandLists, random: Random) -> None:
        self._random = random
        self._takes = lists.scheme is EventScheme.SEMAPHORES
        self._values = [0] * lists.events
        self._blocked: list[set[int]] = [set() for _ in range(lists.events)]
        self._agenda: list[tuple[Cycles, int]] = []
        self.lists = [self._fresh(machine, one) for one in lists.lists]
        self.events: list[Event] = []

    def until_nothing_happens(self) -> None:
        """Run the lists to their end, or to a deadlock."""
        for index in range(len(self.lists)):
            self._advance(index, 0)
        while self._agenda:
            now, index = heappop(self._agenda)
            _, signals = self.lists[index].under_way.popleft()
            self._start_next(index, now)
            for event in signals:
                self._signal(event, now)
            self._advance(index, now)

    def _fresh(self, machine: Machine, one: CoreCommands | ChannelCommands) -> _List:
        depth, is_core = 1, isinstance(one, CoreCommands)
        if isinstance(one, ChannelCommands):
            depth = machine.engines[one.engine].descriptors or self._random.choice(QUEUES)
        return _List(deque(one.commands), depth, 2 ** self._random.uniform(0, 6), is_core)

    def _advance(self, index: int, now: Cycles) -> None:
        """Let a list do what it can without time passing."""
        mine = self.lists[index]
        while mine.commands and not mine.busy:
            command = mine.commands[0]
            match command:
                case Wait(event, count):
                    if self._values[event] < count:
                        self._blocked[event].add(index)
                        return
                    if self._takes:
                        self._values[event] -= count
                case Signal(event):
                    # When everything before it has completed.
                    if mine.under_way:
                        mine.under_way[-1][1].append(event)
                    else:
                        self._signal(event, now)
                case Run() | Move():
                    mine.under_way.append((command, []))
                    if len(mine.under_way) == 1:
                        self._start_next(index, now)
            mine.commands.popleft()

    def _signal(self, event: int, now: Cycles) -> None:
        self._values[event] += 1
        woken, self._blocked[event] = sorted(self._blocked[event]), set()
        for index in woken:
            self._advance(index, now)

    def _start_next(self, index: int, now: Cycles) -> None:
        """Start what a list has handed over first, after a delay."""
        mine = self.lists[index]
        if not mine.under_way:
            return
        command = mine.under_way[0][0]
        start = now + self._some_cycles(mine)
        end = start + 1 + self._some_cycles(mine)
        if isinstance(command, Run):
            self.events += _run(Actor.TASK, command.task, start, end)
        else:
            self.events += _run(Actor.TRANSFER, command.transfer, start, end)
        heappush(self._agenda, (end, index))

    def _some_cycles(self, mine: _List) -> Cycles:
        return int(mine.slowness * (2 ** self._random.uniform(0, 4) - 1))
