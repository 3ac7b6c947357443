"""Waits as counters: one for each list that somebody waits for, or a few where it is full."""

from collections.abc import Sequence

from spmilp.commands.activities import Activities, Activity
from spmilp.commands.commands import CommandLists, EventScheme, Signal, Wait
from spmilp.commands.lists import command_lists
from spmilp.machine.machine import Machine


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
