"""Waits that keep transfers from going too early onto links that others need first.

A plan reserves rates on links; hardware shares them. A transfer that nothing holds back starts long
before its time in the plan, takes a share from those that are urgent, and these come too late. So
it waits for one that sends before it on the same link: for the last one of which it can learn in
time, for an arrival is known ``latency`` after all is sent. Two transfers then share a link where
waiting would cost more than that.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence

from spmilp.commands.order import Activities, Activity, Before
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, LinkIdx

PATIENCE = 0.15
"""Cycles that a transfer may start late, as a part of those for which the longer of two sends."""


def with_pacing(
    problem: Problem, plan: Plan, activities: Activities, before: Sequence[Collection[Activity]]
) -> Before:
    """Return what each activity waits for, with what paces transfers.

    Only what has started before in the plan is waited for, so that no cycle arises.
    """
    list_of, setup = activities.list_of, [engine.setup for engine in problem.machine.engines]
    end = [placement.end for placement in plan.placements] + [move.end for move in plan.transfers]
    on_link: defaultdict[LinkIdx, list[Transfer]] = defaultdict(list)
    for move in sorted(plan.transfers, key=lambda move: (move.sent, move.index)):
        for link in move.route:
            on_link[link].append(move)
    sent = {link: [move.sent for move in moves] for link, moves in on_link.items()}

    def sends_for(move: Transfer) -> Cycles:
        return move.sent - move.start - setup[move.engine]

    found = [set(mine) for mine in before]
    for move in plan.transfers:
        activity = activities.tasks + move.index
        position, mine = activities.position[activity], activities.lists[list_of[activity]]
        waits = [*found[activity], *mine[max(0, position - 1) : position]]
        implied = max((end[earlier] for earlier in waits), default=0)
        for link in move.route:
            place = bisect_right(sent[link], move.start + setup[move.engine])
            for other in map(on_link[link].__getitem__, reversed(range(place))):
                late = other.end - move.start
                earlier = activities.tasks + other.index
                if activities.rank[earlier] < activities.rank[activity] and (
                    late <= PATIENCE * max(sends_for(move), sends_for(other))
                ):
                    if other.end > implied:
                        found[activity].add(earlier)
                    break
    return tuple(map(frozenset, found))
