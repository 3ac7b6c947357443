"""From a plan with times to command lists without: waits and signals, in one of two schemes.

Counters: each list counts, in events of its own, those of its activities that others wait for.
Semaphores: each wait takes one signal that was sent for it alone. They are for hardware that has
too few events, or whose events count only to a small number. A semaphore is used again for later
pairs; if there are too few semaphores, also by another list.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

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
from spmilp.commands.order import (
    Activities,
    Activity,
    Before,
    Clock,
    Clocks,
    activities_of,
    predecessors,
    transitive_reduction,
    with_fewer_signals,
)
from spmilp.errors import ExitCode, SpmilpError
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


class _Semaphore(NamedTuple):
    """An event, and its pairs of an activity that signals it and the one that waits for that."""

    event: int
    pairs: list[tuple[Activity, Activity]]


def with_semaphores(
    machine: Machine,
    activities: Activities,
    before: Sequence[Sequence[Activity]],
    maximum: int | None,
    enough: int,
) -> CommandLists:
    """Return lists in which every wait takes one signal that was sent for it alone.

    A semaphore serves pairs of a signal and a wait, one after the other. Which wait gets which
    signal must not depend on delays: its signals are ordered, and so are its waits. Each new pair
    takes the semaphore that its list has used last among those that allow it, or a new one. Once
    there are ``enough``, it takes the semaphore of another list that has been idle longest. That is
    allowed only if the last wait for it is over for certain before this list comes to its own wait,
    which might otherwise take the other one's signal. This is a heuristic: fewer semaphores may
    suffice.

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
    pool = _Pool(activities, before, maximum, enough)
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

    def __init__(
        self,
        activities: Activities,
        before: Sequence[Sequence[Activity]],
        maximum: int | None,
        enough: int,
    ) -> None:
        self.clocks = Clocks(activities, before)
        self.size = 0
        self._activities, self._before = activities, before
        self._maximum, self._enough = maximum, enough
        self._of_list: list[list[_Semaphore]] = [[] for _ in activities.lists]

    def take(self, earlier: Activity, later: Activity, clock: Clock) -> int:
        """Return a semaphore by which ``later`` can wait for ``earlier``, which ends at a clock."""
        mine = self._of_list[self._activities.list_of[later]]
        position = self._activities.position
        fitting = [each for each in mine if self._allows(each, earlier, later, clock)]
        chosen = max(fitting, key=lambda each: position[each.pairs[-1][1]], default=None)
        if chosen is None and self.size >= self._enough:
            chosen = self._from_others(earlier, later, clock)
        if chosen is None:
            chosen = _Semaphore(self.size, [])
            mine.append(chosen)
            self.size += 1
        chosen.pairs.append((earlier, later))
        return chosen.event

    def _from_others(self, earlier: Activity, later: Activity, clock: Clock) -> _Semaphore | None:
        """Move the semaphore of other lists that has been idle longest to this list; return it."""
        rank, mine = self._activities.rank, self._of_list[self._activities.list_of[later]]
        others = [(own, each) for own in self._of_list if own is not mine for each in own]
        for own, each in sorted(others, key=lambda pair: rank[pair[1].pairs[-1][1]]):
            if self._allows(each, earlier, later, clock):
                own.remove(each)
                mine.append(each)
                return each
        return None

    def _allows(
        self, semaphore: _Semaphore, earlier: Activity, later: Activity, clock: Clock
    ) -> bool:
        """Say whether a new pair leaves all signals, and all waits, of a semaphore in order.

        Signals that may still be unanswered must come from the list of the new one, and leave room
        for it. Waits are answered in order: what precedes an answered one is answered.
        """
        list_of, position = self._activities.list_of, self._activities.position
        last = semaphore.pairs[-1][1]
        if list_of[last] == list_of[later]:
            if position[last] >= position[later]:
                return False
        elif not self.clocks.covers(self._known_before_waits[later], last):
            return False
        for unanswered, (signaller, waiter) in enumerate(reversed(semaphore.pairs)):
            if self.clocks.covers(clock, waiter):
                return True
            if list_of[signaller] != list_of[earlier] or unanswered + 1 == self._maximum:
                return False
        return True

    @cached_property
    def _known_before_waits(self) -> dict[Activity, Clock]:
        """The clock at which each activity that waits comes to the first of its waits."""
        clocks, known = Clocks(self._activities, self._before), {}
        for activity in self._activities.order:
            clock = clocks.before_start(activity)
            if self._before[activity]:
                known[activity] = clock.copy()
            for earlier in self._before[activity]:
                clocks.wait_for(clock, earlier)
            clocks.end(activity, clock)
        return known


def with_counters(
    machine: Machine,
    activities: Activities,
    before: Sequence[Sequence[Activity]],
    maximum: int | None,
) -> CommandLists:
    """Return lists in which each list counts, in events of its own, what others wait for.

    An activity that nobody in another list waits for sends no signal. A list goes on to a new event
    when one is full, having counted to ``maximum``. ``before`` has for each activity those in other
    lists that it waits for.
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
            is_task = activity < activities.tasks
            work = Run(activity) if is_task else Move(activity - activities.tasks)
            before = sorted(waits[activity], key=lambda wait: wait.event)
            behind = sorted(signals[activity], key=lambda signal: signal.event)
            commands += [*before, work, *behind]
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


class TooManyEventsError(SpmilpError):
    """A plan needs more events than its machine has, or higher counts."""

    exit_code = ExitCode.EXPORT_IMPOSSIBLE


def build_commands(problem: Problem, plan: Plan, before: Before | None = None) -> CommandLists:
    """Return the command lists of a valid plan, with as few waits as its order allows.

    The waits, together with the order inside each list, order whatever conflicts in the plan, in
    the plan's order, and nothing else. Events are counters if the machine has enough of them. If
    not, fewer ends are signalled, and who waits may wait for a little more, which has ended in the
    plan by then; if that is still too much, events are semaphores.

    Parameters
    ----------
    before
        Its :func:`predecessors`, where they are known.

    Raises
    ------
    TooManyEventsError
        If none of these keeps within the machine's events.
    """
    machine = problem.machine
    activities = activities_of(problem, plan)
    if before is None:
        before = predecessors(problem, plan, activities)
    least = transitive_reduction(activities, before)
    counters = with_counters(machine, activities, least, machine.event_maximum)
    if machine.events is None or counters.events <= machine.events:
        return counters
    joined = with_fewer_signals(plan, activities, least)
    fewer = with_counters(machine, activities, joined, machine.event_maximum)
    if fewer.events <= machine.events:
        return fewer
    semaphores = with_semaphores(
        machine, activities, least, machine.event_maximum, enough=machine.events
    )
    if semaphores.events <= machine.events:
        return semaphores
    limit = "" if machine.event_maximum is None else f" that count to {machine.event_maximum}"
    raise TooManyEventsError(
        f"the plan needs {counters.events} events as counters{limit}, {fewer.events} with fewer "
        f"signals, or {semaphores.events} as semaphores; {machine.name} has {machine.events}: use "
        "fewer cores or larger tiles, or, if its firmware can wait for words of memory, remove the "
        "machine's limits on events"
    )
