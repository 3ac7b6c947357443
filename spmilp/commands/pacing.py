"""Waits that keep transfers from going too early onto links that others need first.

A plan reserves rates on links; hardware shares them. A transfer that nothing holds back starts long
before its time in the plan, takes a share from those that are urgent, and these come too late. So
it waits for something that ends shortly before its time:

- for what sends before it on the same link, where its arrival is known soon enough;
- where others send on its links while it could start, but need not yet, for the task or transfer
  that is the last to end before its time, or, if that is long before, for the one that sends before
  it, though it is then somewhat late itself, for an arrival is known ``latency`` after all is sent.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence

from spmilp.commands.order import Activities, Activity, Before
from spmilp.plan.plan import Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, LinkIdx

PATIENCE, MOST_PATIENCE = 0.03, 0.15
"""Cycles that a transfer may start late, as a part of those for which the longer of two sends: in
any case, and where it would else be early for ``WORSE`` times as long."""

WORSE = 4
"""Cycles early that are as bad as one late. All three chosen by simulation of plans of ten whole
networks (``benchmarks/notes/silicon.md``)."""


def with_pacing(
    problem: Problem, plan: Plan, activities: Activities, before: Sequence[Collection[Activity]]
) -> Before:
    """Return what each activity waits for, with what paces transfers.

    Only what has started before in the plan is waited for, so that no cycle arises.
    """
    list_of, setup = activities.list_of, [engine.setup for engine in problem.machine.engines]
    end = [placement.end for placement in plan.placements] + [move.end for move in plan.transfers]
    in_order = sorted(range(len(end)), key=lambda activity: (end[activity], activity))
    ends = [end[activity] for activity in in_order]
    on_link: defaultdict[LinkIdx, list[Transfer]] = defaultdict(list)
    for move in sorted(plan.transfers, key=lambda move: (move.sent, move.index)):
        for link in move.route:
            on_link[link].append(move)
    sent = {link: [move.sent for move in moves] for link, moves in on_link.items()}

    def sends_for(move: Transfer) -> Cycles:
        return move.sent - move.start - setup[move.engine]

    def last_before(move: Transfer, patience: float) -> list[Activity]:
        """Return the last that sends before a transfer on each link, and arrives in time."""
        found = []
        for link in move.route:
            place = bisect_right(sent[link], move.start + setup[move.engine])
            for other in map(on_link[link].__getitem__, reversed(range(place))):
                earlier = activities.tasks + other.index
                if activities.rank[earlier] < activities.rank[activities.tasks + move.index] and (
                    other.end - move.start <= patience * max(sends_for(move), sends_for(other))
                ):
                    found.append(earlier)
                    break
        return found

    found = [set(mine) for mine in before]
    for move in plan.transfers:
        activity, ready = activities.tasks + move.index, move.start + setup[move.engine]
        position, mine = activities.position[activity], activities.lists[list_of[activity]]
        waits = found[activity]
        held = [end[one] for one in (*waits, *mine[max(0, position - 1) : position])]
        first = last_before(move, PATIENCE)
        implied = max(held, default=0)
        waits.update(one for one in first if end[one] > implied)
        implied = max([implied, *(end[one] for one in first)])
        if not any(
            bisect_right(sent[link], implied + setup[move.engine]) < bisect_right(sent[link], ready)
            for link in move.route
        ):
            continue
        last = bisect_right(ends, move.start) - 1
        gate = in_order[last] if last >= 0 and ends[last] > implied else None
        early = move.start - (implied if gate is None else end[gate])
        late = max(last_before(move, MOST_PATIENCE), key=end.__getitem__, default=None)
        if late is not None and 0 < WORSE * (end[late] - move.start) < early:
            waits.add(late)
        elif gate is not None:
            waits.add(gate)
    return tuple(map(frozenset, found))
