"""The least waits that imply the whole order."""

from collections.abc import Collection, Sequence

from spmilp.commands.activities import Activities, Activity
from spmilp.commands.clocks import Clocks


def transitive_reduction(
    activities: Activities, before: Sequence[Collection[Activity]]
) -> tuple[tuple[Activity, ...], ...]:
    """For each activity, those in other lists that it has to wait for; no fewer would do.

    The reduction of an acyclic order is unique (Aho, Garey and Ullman, The transitive reduction of
    a directed graph, SIAM Journal on Computing 1(2), 1972). The order inside a list costs nothing
    and is taken for granted. An activity looks at its predecessors from the last to start to the
    first: only one that starts later can imply another, so that each is either implied by what is
    already waited for, or by nothing.

    Parameters
    ----------
    before
        For each activity, some that must precede it. Each of them ends before the activity starts
        in the plan.
    """
    clocks = Clocks(activities, before)
    kept: list[tuple[Activity, ...]] = [()] * len(activities.order)
    for activity in activities.order:
        clock = clocks.before_start(activity)
        waits = []
        for earlier in sorted(before[activity], key=activities.rank.__getitem__, reverse=True):
            if not clocks.covers(clock, earlier):
                waits.append(earlier)
                clocks.wait_for(clock, earlier)
        kept[activity] = tuple(waits)
        clocks.end(activity, clock)
    return tuple(kept)
