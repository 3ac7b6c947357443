"""Times from order: every activity as early, or as late, as its order and its resources allow."""

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NEVER, NONE, ZERO, Ints
from spmilp.solvers.kernels.timeline import Timeline
from spmilp.solvers.lns.draft import Draft, Rows, Tenants
from spmilp.solvers.lns.timelines import first_room, hold, line_of_resources
from spmilp.units import Cycles


def leftmost(draft: Draft, tenants: Tenants, start: Ints) -> Ints:
    """Return start cycles in which every activity starts as early as it can, taken in turn.

    Activities are taken in the order of ``start``, which is that of a valid plan. Each begins at
    the first cycle at which all that it follows has ended and its resources have room next to those
    taken before. None begins later than in ``start``: at its old cycle there is room, for those
    taken before it began no later than it, and now end no later than they did.
    """
    turn = np.argsort(start, kind="stable")
    line = line_of_resources(draft)
    found = np.zeros(start.size, np.int64)
    valid, released = (np.zeros(draft.filler.size, np.int64) for _ in range(2))
    _place_early(draft, tenants, line, turn, valid, released, found)
    return found


def rightmost(draft: Draft, tenants: Tenants, start: Ints, end: Cycles) -> Ints:
    """Return start cycles in which every activity ends as late as it can, all by cycle ``end``.

    The mirror image of :func:`leftmost`: activities are taken from the last to the first.
    """
    turn = np.argsort(-(start + draft.cycles), kind="stable")
    line = line_of_resources(draft)
    found = np.full(start.size, end, np.int64)
    _place_late(draft, tenants, line, turn, end, found)
    return found


@kernel
def _place_early(
    draft: Draft,
    tenants: Tenants,
    line: Timeline,
    turn: Ints,
    valid: Ints,
    released: Ints,
    found: Ints,
) -> None:
    for act in turn:
        if draft.cycles[act] == 0:
            continue
        ready = earliest(draft, tenants.earlier, act, found, valid, released)
        start = first_room(draft, line, act, ready)
        hold(draft, line, act, start)
        found[act] = start
        end = start + draft.cycles[act]
        for i in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
            held = draft.reads.items[i]
            released[held] = max(released[held], end)
        for i in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
            held = draft.fills.items[i]
            valid[held] = end
            released[held] = max(released[held], end)


@kernel
def _place_late(
    draft: Draft, tenants: Tenants, line: Timeline, turn: Ints, last: int, found: Ints
) -> None:
    for act in turn:
        if draft.cycles[act] == 0:
            continue
        limit = latest(draft, tenants.later, act, last, found)
        mirrored = first_room(draft, line, act, last - limit)
        hold(draft, line, act, mirrored)
        found[act] = last - mirrored - draft.cycles[act]


@part
def earliest(
    draft: Draft, earlier: Rows, act: int, found: Ints, valid: Ints, released: Ints
) -> int:
    """Return the cycle at which all has ended that an activity follows, if that is placed.

    Parameters
    ----------
    earlier
        The residencies that had the bytes of each before.
    found
        Start cycles of the activities placed so far.
    valid, released
        When each residency has been filled, and when all have ended that fill or read it.
    """
    ready = ZERO
    for i in range(draft.before.begin[act], draft.before.begin[act + 1]):
        other = draft.before.items[i]
        ready = max(ready, found[other] + draft.cycles[other])
    for i in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
        ready = max(ready, valid[draft.reads.items[i]])
    for i in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
        held = draft.fills.items[i]
        # Who else reads a value that is written over has been placed, and ends before.
        if draft.parent[held] != NONE:
            ready = max(ready, released[draft.parent[held]])
        for j in range(earlier.begin[held], earlier.begin[held + 1]):
            ready = max(ready, released[earlier.items[j]])
    return ready


@part
def latest(draft: Draft, later: Rows, act: int, last: int, found: Ints) -> int:
    """Return the cycle by which an activity has to end for all that follow it, or ``last``.

    Parameters
    ----------
    later
        The residencies that have the bytes of each next.
    found
        Start cycles of the activities placed so far, from the last one on.
    """
    limit = last
    for i in range(draft.after.begin[act], draft.after.begin[act + 1]):
        limit = min(limit, found[draft.after.items[i]])
    for i in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
        held = draft.fills.items[i]
        for j in range(draft.users.begin[held], draft.users.begin[held + 1]):
            limit = min(limit, found[draft.users.items[j]])
        limit = min(limit, _next_start(draft, later, act, held, found))
    for i in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
        held = draft.reads.items[i]
        limit = min(limit, _next_start(draft, later, act, held, found))
        heir = draft.heir[held]
        # Who reads a value that is written over must have ended before.
        if heir != NONE and draft.filler[heir] != act:
            limit = min(limit, found[draft.filler[heir]])
    return limit


@part
def _next_start(draft: Draft, later: Rows, act: int, held: int, found: Ints) -> int:
    """Return when what has the bytes next begins to be filled, by another activity."""
    limit = NEVER
    for i in range(later.begin[held], later.begin[held + 1]):
        filler = draft.filler[later.items[i]]
        if filler != act:
            limit = min(limit, found[filler])
    return limit
