"""Waits as one counter for each list that somebody waits for."""

from collections.abc import Sequence

from spmilp.commands.activities import Activities, Activity, ListIdx
from spmilp.commands.commands import CommandLists, EventScheme, Signal, Wait
from spmilp.commands.lists import command_lists
from spmilp.machine.machine import Machine


def with_counters(
    machine: Machine, activities: Activities, before: Sequence[Sequence[Activity]]
) -> CommandLists:
    """Return lists in which each list counts, in an event of its own, what others wait for.

    An activity that nobody in another list waits for sends no signal.

    Parameters
    ----------
    before
        For each activity, those in other lists that it waits for.
    """
    awaited = {earlier for mine in before for earlier in mine}
    events: dict[ListIdx, int] = {}
    count: dict[Activity, int] = {}
    for index, mine in enumerate(activities.lists):
        signalled = [activity for activity in mine if activity in awaited]
        if signalled:
            events[index] = len(events)
        count.update({activity: number for number, activity in enumerate(signalled, start=1)})
    waits = [
        [Wait(events[activities.list_of[earlier]], count[earlier]) for earlier in mine]
        for mine in before
    ]
    signals = [
        [Signal(events[index])] if activity in awaited else []
        for activity, index in enumerate(activities.list_of)
    ]
    return command_lists(machine, activities, waits, signals, len(events), EventScheme.COUNTERS)
