"""From a plan with times to command lists without: waits and signals, in one of two schemes.

Counters: each list counts, in events of its own, those of its activities that others wait for.
Semaphores: each wait takes one signal that was sent for it alone. They are for hardware whose
events count only to a small number. A semaphore is used again for later pairs of its list.
"""

from collections.abc import Sequence
from math import inf
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
    Clock,
    Clocks,
    activities_of,
    predecessors,
    transitive_reduction,
    with_fewer_signals,
)
from spmilp.commands.pacing import with_pacing
from spmilp.errors import ExitCode, SpmilpError
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem


class _Semaphore(NamedTuple):
    """An event, and its pairs of an activity that signals it and the one that waits for that."""

    event: int
    pairs: list[tuple[Activity, Activity]]


def with_semaphores(
    machine: Machine, activities: Activities, before: Sequence[Sequence[Activity]], most: int | None
) -> CommandLists:
    """Return lists in which every wait takes one signal that was sent for it alone.

    A semaphore serves pairs of a signal and a wait of one list, one after the other. Which wait
    gets which signal must not depend on delays: its signals are ordered, and so are its waits. Each
    new pair takes the semaphore that its list has used last among those that allow it, or a new
    one. This is a heuristic: fewer semaphores may suffice.

    ``before`` has for each activity those that it waits for, as few as possible. A semaphore may
    hold ``most`` signals unanswered; ``None`` without limit.
    """
    after: list[list[Activity]] = [[] for _ in activities.order]
    for later in activities.order:
        for earlier in before[later]:
            after[earlier].append(later)
    list_of, position = activities.list_of, activities.position
    clocks = Clocks(activities, before)

    def allows(semaphore: _Semaphore, earlier: Activity, later: Activity, clock: Clock) -> bool:
        """Say whether a new pair leaves all signals, and all waits, of a semaphore in order.

        Signals that may still be unanswered must come from the list of the new one, and leave room
        for it. Waits are answered in order: what precedes an answered one is answered.
        """
        if position[semaphore.pairs[-1][1]] >= position[later]:
            return False
        for unanswered, (signaller, waiter) in enumerate(reversed(semaphore.pairs)):
            if clocks.covers(clock, waiter):
                return True
            if list_of[signaller] != list_of[earlier] or unanswered + 1 == most:
                return False
        return True

    events = 0
    of_list: list[list[_Semaphore]] = [[] for _ in activities.lists]
    waits: list[list[Wait]] = [[] for _ in activities.order]
    signals: list[list[Signal]] = [[] for _ in activities.order]
    for earlier, clock in clocks.at_each_end():
        for later in after[earlier]:
            mine = of_list[list_of[later]]
            fitting = [each for each in mine if allows(each, earlier, later, clock)]
            chosen = max(fitting, key=lambda each: position[each.pairs[-1][1]], default=None)
            if chosen is None:
                chosen = _Semaphore(events, [])
                mine.append(chosen)
                events += 1
            chosen.pairs.append((earlier, later))
            signals[earlier].append(Signal(chosen.event))
            waits[later].append(Wait(chosen.event, 1))
    return command_lists(machine, activities, waits, signals, events, EventScheme.SEMAPHORES)


def with_counters(
    machine: Machine,
    activities: Activities,
    before: Sequence[Sequence[Activity]],
    most: int | None,
    work: Sequence[Run | Move] | None = None,
) -> CommandLists:
    """Return lists in which each list counts, in events of its own, what others wait for.

    An activity that nobody waits for sends no signal. A list goes on to a new event when one is
    full, having counted to ``most``. ``before`` has for each activity those that it waits for.
    """
    awaited = {earlier for mine in before for earlier in mine}
    reached: dict[Activity, Wait] = {}
    events = 0
    for mine in activities.lists:
        signalled = [activity for activity in mine if activity in awaited]
        full = most or max(1, len(signalled))
        for number, activity in enumerate(signalled):
            reached[activity] = Wait(events + number // full, 1 + number % full)
        events += -(-len(signalled) // full)
    waits = [[reached[earlier] for earlier in mine] for mine in before]
    signals = [
        [Signal(reached[activity].event)] if activity in reached else []
        for activity in range(len(before))
    ]
    scheme = EventScheme.COUNTERS
    return command_lists(machine, activities, waits, signals, events, scheme, work)


def command_lists(
    machine: Machine,
    activities: Activities,
    waits: Sequence[Sequence[Wait]],
    signals: Sequence[Sequence[Signal]],
    events: int,
    scheme: EventScheme,
    work: Sequence[Run | Move] | None = None,
) -> CommandLists:
    """Return lists in which the waits of each activity stand before it and its signals behind.

    ``work`` has what runs each activity, where that does not have its number.
    """
    lists, tasks = [], activities.tasks
    if work is None:
        numbers = range(len(activities.order))
        work = [Run(each) if each < tasks else Move(each - tasks) for each in numbers]
    for mine in activities.lists:
        commands: list[Command] = []
        for activity in mine:
            before = sorted(waits[activity], key=lambda wait: wait.event)
            behind = sorted(signals[activity], key=lambda signal: signal.event)
            commands += [*before, work[activity], *behind]
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


def build_commands(problem: Problem, plan: Plan) -> CommandLists:
    """Return the command lists of a valid plan, with as few waits as its order allows.

    The waits, together with the order inside each list, order whatever conflicts in the plan, in
    the plan's order, and pace transfers that would be far too early. Events are counters if the
    machine has enough of them. If not, nothing is paced; then fewer ends are signalled, and who
    waits may wait for a little more, which has ended in the plan by then; if that is still too
    much, events are semaphores.

    Raises a ``TooManyEventsError`` if none of these keeps within the machine's events.
    """
    if plan.stream is not None:
        raise SpmilpError(
            "the plan is a stream of inferences: its command lists are a prologue and a loop "
            "(spmilp.commands.loop)"
        )
    machine, most = problem.machine, problem.machine.events or inf
    activities = activities_of(problem, plan)
    order = predecessors(problem, plan, activities)
    for before in (with_pacing(problem, plan, activities, order), order):
        least = transitive_reduction(activities, before)
        counters = with_counters(machine, activities, least, machine.event_maximum)
        if counters.events <= most:
            return counters
    joined = with_fewer_signals(plan, activities, least)
    fewer = with_counters(machine, activities, joined, machine.event_maximum)
    if fewer.events <= most:
        return fewer
    semaphores = with_semaphores(machine, activities, least, machine.event_maximum)
    if semaphores.events <= most:
        return semaphores
    limit = "" if machine.event_maximum is None else f" that count to {machine.event_maximum}"
    raise TooManyEventsError(
        f"the plan needs {counters.events} events as counters{limit}, {fewer.events} with fewer "
        f"signals, or {semaphores.events} as semaphores; {machine.name} has {machine.events}: use "
        "fewer cores or larger tiles, or, if its firmware can wait for words of memory, remove the "
        "machine's limits on events"
    )
