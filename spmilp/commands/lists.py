"""Command lists from the order that they must keep."""

from collections.abc import Sequence

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
from spmilp.machine.machine import Machine


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
