"""Waits and signals on events, in one of two schemes, and the command lists with them.

Counters: each list counts what others wait for. Semaphores: each wait takes one signal that was
sent for it alone, for hardware whose events count no further; a semaphore is used again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from spmilp.commands.activities import Activities, Activity
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
from spmilp.commands.order import Clock, Clocks
from spmilp.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class _Semaphore:
    """An event that one list waits for: each activity that signals it, and who waits for that."""

    index: int
    pairs: list[tuple[Activity, Activity]] = field(default_factory=list)


def with_semaphores(
    machine: Machine,
    activities: Activities,
    before: Sequence[Sequence[Activity]],
    maximum: int | None,
) -> CommandLists:
    """Return lists in which every wait takes one signal that was sent for it alone.

    A semaphore serves pairs of a signal and a wait, one after the other. Which wait gets which
    signal must not depend on delays: one list alone waits for it, in order, and its signals are
    ordered too. Each new pair takes the semaphore of its list that was used last among those that
    allow it, or a new one. That is a heuristic: fewer may do.

    Parameters
    ----------
    before
        For each activity, those in other lists that it waits for; as few as possible.
    maximum
        Signals that a semaphore may hold unanswered; ``None`` without limit.
    """
    after: list[list[Activity]] = [[] for _ in activities.order]
    for later in activities.order:
        for earlier in before[later]:
            after[earlier].append(later)
    pool = _Pool(activities, Clocks(activities, before), maximum)
    waits: list[list[Wait]] = [[] for _ in activities.order]
    signals: list[list[Signal]] = [[] for _ in activities.order]
    for earlier, clock in pool.clocks.at_each_end():
        for later in after[earlier]:
            event = pool.take(earlier, later, clock)
            signals[earlier].append(Signal(event))
            waits[later].append(Wait(event, 1))
    return command_lists(machine, activities, waits, signals, pool.size, EventScheme.SEMAPHORES)


class _Pool:
    """The semaphores of all lists."""

    def __init__(self, activities: Activities, clocks: Clocks, maximum: int | None) -> None:
        self.clocks = clocks
        self.size = 0
        self._activities = activities
        self._maximum = maximum
        self._of_list: list[list[_Semaphore]] = [[] for _ in activities.lists]

    def take(self, earlier: Activity, later: Activity, clock: Clock) -> int:
        """Return a semaphore by which ``later`` can wait for ``earlier``, which ends at a clock."""
        own = self._of_list[self._activities.list_of[later]]
        position = self._activities.position
        fitting = [each for each in own if self._allows(each, earlier, later, clock)]
        chosen = max(fitting, key=lambda each: position[each.pairs[-1][1]], default=None)
        if chosen is None:
            chosen = _Semaphore(self.size)
            own.append(chosen)
            self.size += 1
        chosen.pairs.append((earlier, later))
        return chosen.index

    def _allows(
        self, semaphore: _Semaphore, earlier: Activity, later: Activity, clock: Clock
    ) -> bool:
        """Say whether a new pair leaves all signals, and all waits, of a semaphore in order.

        Signals that may still be unanswered must come from the list of the new one, and leave room
        for it. The list that waits answers in order: what precedes an answered one is answered.
        """
        if self._activities.position[semaphore.pairs[-1][1]] >= self._activities.position[later]:
            return False
        list_of = self._activities.list_of
        for unanswered, (signaller, waiter) in enumerate(reversed(semaphore.pairs)):
            if self.clocks.covers(clock, waiter):
                return True
            if list_of[signaller] != list_of[earlier] or unanswered + 1 == self._maximum:
                return False
        return True


def with_counters(
    machine: Machine,
    activities: Activities,
    before: Sequence[Sequence[Activity]],
    maximum: int | None,
) -> CommandLists:
    """Return lists in which each list counts, in events of its own, what others wait for.

    An activity that nobody in another list waits for sends no signal. A list goes on to a new event
    when one is full.

    Parameters
    ----------
    before
        For each activity, those in other lists that it waits for.
    maximum
        What an event can count to; ``None`` without limit.
    """
    awaited = {earlier for mine in before for earlier in mine}
    reached: dict[Activity, Wait] = {}
    events = 0
    for mine in activities.lists:
        signalled = [activity for activity in mine if activity in awaited]
        full = maximum or max(1, len(signalled))
        for number, activity in enumerate(signalled):
            reached[activity] = Wait(events + number // full, 1 + number % full)
        events += -(-len(signalled) // full)
    waits = [[reached[earlier] for earlier in mine] for mine in before]
    signals = [
        [Signal(reached[activity].event)] if activity in reached else []
        for activity in range(len(before))
    ]
    return command_lists(machine, activities, waits, signals, events, EventScheme.COUNTERS)


def command_lists(
    machine: Machine,
    activities: Activities,
    waits: Sequence[Sequence[Wait]],
    signals: Sequence[Sequence[Signal]],
    events: int,
    scheme: EventScheme,
) -> CommandLists:
    """Return lists in which the waits of each activity stand before it and its signals behind."""
    lists = []
    for mine in activities.lists:
        commands: list[Command] = []
        for activity in mine:
            before = sorted(waits[activity], key=lambda wait: wait.event)
            behind = sorted(signals[activity], key=lambda signal: signal.event)
            commands += [*before, _of(activities, activity), *behind]
        lists.append(tuple(commands))
    channels = [(engine.index, c) for engine in machine.engines for c in range(engine.channels)]
    cores = len(machine.cores)
    return CommandLists(
        cores=tuple(CoreCommands(core=core, commands=lists[core]) for core in range(cores)),
        channels=tuple(
            ChannelCommands(engine=engine, channel=channel, commands=commands)
            for (engine, channel), commands in zip(channels, lists[cores:], strict=True)
        ),
        events=events,
        scheme=scheme,
    )


def _of(activities: Activities, activity: Activity) -> Run | Move:
    if activity < activities.tasks:
        return Run(activity)
    return Move(activity - activities.tasks)
