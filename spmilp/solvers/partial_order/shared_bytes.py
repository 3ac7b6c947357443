"""Addresses for a memory that cannot be packed: a few residencies wait for the bytes of others.

What finds no offset next to all others gets one where others are at the same time, such that
the wait is short, and nobody waits for what follows itself. The schedule becomes longer.
"""

import numpy as np

from spmilp.packing import PackingProblem
from spmilp.packing.most import pack_most
from spmilp.solvers.kernels.records import NONE, Ints, numbers, rows_from_pairs
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.sharing_kernels import Attempt, Neighbours, place_in_turn
from spmilp.solvers.partial_order.waiting import WaitingOrder

ATTEMPTS, MOST_PLACED = 60, 6_000
"""To place what was left over in another order, and groups that are placed in all of them together;
some tenths of a second. What needs more is not worth its waits."""


def offsets_with_waits(
    before: TimedSchedule, residencies: Ints, problem: PackingProblem, order: WaitingOrder
) -> Ints | None:
    """Return offsets where a few share bytes, and one waits for the other; ``None`` if none are.

    The largest of what first fit has left over are placed first. One that finds no offset goes
    first in the next attempt.

    Parameters
    ----------
    residencies
        All that are ever in the memory, in the order of ``problem.items``.
    """
    items = _neighbours(before, residencies, problem, order)
    offset = numbers(NONE if one is None else one for one in pack_most(problem))
    left = np.flatnonzero(offset < 0)
    left = left[np.argsort(-items.bytes[left], kind="stable")]
    groups = list(dict.fromkeys(items.group[left].tolist()))
    last, placed = order.last.copy(), np.zeros(1, np.int64)
    is_initial = items.filler == NONE
    for _ in range(ATTEMPTS):
        attempt = Attempt(
            offset=offset.copy(),
            stays=np.isin(items.group, items.group[is_initial]),
            queue=np.resize(numbers([*groups, 0]), offset.size + 1),
            there=np.zeros(offset.size, np.int64),
            waits=np.zeros(
                offset.size * int(np.diff(items.members.begin).max(initial=1)), np.int64
            ),
            placed=placed,
        )
        refused = place_in_turn(items, attempt, len(groups), MOST_PLACED)
        if refused == NONE:
            return attempt.offset
        if placed[0] > MOST_PLACED:
            return None
        groups = [refused, *(group for group in groups if group != refused)]
        order.last[:] = last
    return None


def _neighbours(
    before: TimedSchedule, residencies: Ints, problem: PackingProblem, order: WaitingOrder
) -> Neighbours:
    schedule, (begins, ends) = before.schedule, before.lifetimes()
    begins, ends, size = begins[residencies], ends[residencies], schedule.bytes[residencies]
    group = _groups(len(problem.items), problem.together)
    area = size * (ends - begins).astype(np.float64)
    return Neighbours(
        schedule=schedule,
        residency=residencies,
        begins=begins,
        ends=ends,
        bytes=size,
        grain=numbers(item.alignment for item in problem.items),
        # Sums of these stay far below the largest whole number.
        area=(area * min(1.0, 2.0**52 / max(1.0, area.sum()))).astype(np.int64),
        filler=schedule.filler[residencies],
        group=group,
        members=rows_from_pairs(group, np.arange(group.size), group.size),
        first=order.first,
        last=order.last,
        reserved=numbers(start for start, _ in problem.reserved),
        until=numbers(end for _, end in problem.reserved),
        capacity=problem.capacity or 0,
    )


def _groups(count: int, together: tuple[tuple[int, int], ...]) -> Ints:
    """Return for each item the first of those that lie together with it."""
    group = np.arange(count)
    for one, other in together:
        first, second = sorted((group[one], group[other]))
        group[group == second] = first
    return group
