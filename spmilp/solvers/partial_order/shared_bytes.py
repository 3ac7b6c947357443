"""Addresses for a memory that cannot be packed: a few residencies wait for the bytes of others.

What finds no offset next to all others gets one where others are at the same time, such that
the wait is short, and nobody waits for what follows itself. The schedule becomes longer.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from spmilp.packing import PackingProblem
from spmilp.packing.most import pack_most
from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.partial_order.schedule import Flags, TimedSchedule
from spmilp.solvers.partial_order.waiting import WaitingOrder

ATTEMPTS, MOST_PLACED = 12, 300
"""To place what was left over in another order, and groups that are placed in all of them together;
some tenths of a second. What needs more is not worth its waits."""


def offsets_with_waits(
    before: TimedSchedule, residencies: Ints, problem: PackingProblem, order: WaitingOrder
) -> Ints | None:
    """Return offsets where a few share bytes, and one waits for the other; ``None`` if none are."""
    offsets = [-1 if offset is None else offset for offset in pack_most(problem)]
    if not Neighbours(before, residencies, problem, order).place(offsets):
        return None
    return np.array(offsets, np.int64)


class Neighbours:
    """The residencies of a memory, and how long one has to wait for the bytes of another.

    Parameters
    ----------
    residencies
        All that are ever there, in the order of ``problem.items``.
    """

    def __init__(
        self, before: TimedSchedule, residencies: Ints, problem: PackingProblem, order: WaitingOrder
    ) -> None:
        self._schedule = schedule = before.schedule
        begins, ends = before.lifetimes()
        self._problem = problem
        self._begins, self._ends = begins[residencies], ends[residencies]
        self._bytes = schedule.bytes[residencies]
        self._alignment = np.array([item.alignment for item in problem.items])
        self._is_initial = schedule.filler[residencies] == NONE
        self._order, self._residencies = order, residencies
        self._filler = schedule.filler[residencies]
        self._group = _groups(len(problem.items), problem.together)
        self._placed = 0

    def place(self, offsets: list[int]) -> bool:
        """Give an offset to each item that has -1; say whether there is one for all.

        The largest go first. One that finds none goes first in the next attempt.
        """
        left = np.flatnonzero(np.array(offsets) < 0)
        left = left[np.argsort(-self._bytes[left], kind="stable")]
        groups = list(dict.fromkeys(self._group[left].tolist()))
        last = self._order.last.copy()
        self._placed = 0
        for _ in range(ATTEMPTS):
            offset = np.array(offsets)
            refused = self._place_in_turn(offset, deque(groups))
            if refused is None:
                offsets[:] = offset.tolist()
                return True
            if self._placed > MOST_PLACED:
                return False
            groups = [refused, *(group for group in groups if group != refused)]
            self._order.last[:] = last
        return False

    def _place_in_turn(self, offset: Ints, queue: deque[int]) -> int | None:
        """Place groups one after another; return the first for which there is no offset.

        Where an item may wait for nobody and let nobody wait, others make room and are placed
        after it; it then stays.
        """
        stays = np.isin(self._group, self._group[self._is_initial])
        while queue:
            group = queue.popleft()
            self._placed += 1
            if self._placed > MOST_PLACED:
                return group
            members = np.flatnonzero(self._group == group)
            found = self._best_offset(members, offset, stays)
            if found is None:
                return group
            offset[members], evicted = found
            stays[members] |= evicted.size > 0
            offset[np.isin(self._group, evicted)] = -1
            queue.extend(evicted.tolist())
            self._note_waits(members, offset)
        return None

    def _best_offset(self, members: Ints, offset: Ints, stays: Flags) -> tuple[int, Ints] | None:
        """Return where items that lie together wait, and let wait, the least; and what must go.

        What must go is named by its groups.
        """
        meets = [self._meets(one, offset) for one in members.tolist()]
        there = np.flatnonzero(np.logical_or.reduce(meets))
        candidates = self._candidates(members, offset[there] + self._bytes[there])
        wait = np.zeros(candidates.size)
        evicted = np.zeros((candidates.size, there.size), np.bool_)
        for one, meeting in zip(members.tolist(), meets, strict=True):
            others = np.flatnonzero(meeting)
            below = candidates[:, None] < offset[others] + self._bytes[others]
            above = candidates[:, None] + self._bytes[one] > offset[others]
            waits = np.where(below & above, self._waits(one, others), 0.0)
            evicted[:, meeting[there]] |= np.isinf(waits)
            waits[np.isinf(waits)] = 0.0
            wait = np.maximum(wait, waits.max(axis=1, initial=0.0))
        area = self._bytes * (self._ends - self._begins)
        wait[(evicted & stays[there]).any(axis=1)] = np.inf
        best = np.lexsort((wait, evicted @ area[there], np.isinf(wait)))[:1]
        if not np.isfinite(wait[best]).all() or not best.size:
            return None
        groups = np.unique(self._group[there[evicted[best[0]]]])
        return int(candidates[best[0]]), groups

    def _meets(self, one: int, offset: Ints) -> Flags:
        """Say which items with offsets are there while one is."""
        found: Flags = (self._begins < self._ends[one]) & (self._ends > self._begins[one])
        return found & (offset >= 0)

    def _note_waits(self, members: Ints, offset: Ints) -> None:
        """Let those that wait have later times."""
        last = self._order.last
        for one in members.tolist():
            meets = self._meets(one, offset) & (self._group != self._group[one])
            meets &= offset < offset[one] + self._bytes[one]
            meets &= offset + self._bytes > offset[one]
            others = np.flatnonzero(meets)
            for other, waits in zip(others.tolist(), self._is_later(one, others), strict=True):
                late, early = (one, other) if waits else (other, one)
                time = int(last[self._residencies[early]])
                self._order.note_wait(int(self._filler[late]), time)

    def _is_later(self, one: int, others: Ints) -> Flags:
        """Say of others whether one begins after them."""
        begins, begin = self._begins[others], self._begins[one]
        found: Flags = (begins < begin) | ((begins == begin) & (others < one))
        return found

    def _candidates(self, members: Ints, ends: Ints) -> Ints:
        """Return the offsets just above others, and the lowest, that are inside the capacity."""
        size, grain = int(self._bytes[members].max()), int(self._alignment[members].max())
        reserved = self._problem.reserved
        above = np.concatenate(([0], ends, [end for _, end in reserved])).astype(np.int64)
        found = np.unique(-(-above // grain) * grain)
        found = found[found + size <= (self._problem.capacity or 0)]
        for start, end in reserved:
            found = found[(found + size <= start) | (found >= end)]
        return found

    def _waits(self, one: int, others: Ints) -> NDArray[np.float64]:
        """Return how long one of two waits for the other's end; infinite where it must not."""
        last = self._order.last[self._residencies]
        first = np.where(self._is_initial, 0, self._order.first[self._filler])
        until_other_ends = self._ends[others] - self._begins[one]
        until_one_ends = self._ends[one] - self._begins[others]
        may_wait = (last[others] < first[one]) & ~self._has_touched(one, others)
        may_let_wait = (last[one] < first[others]) & ~self._is_touched(one, others)
        return np.where(
            self._is_later(one, others),
            np.where(may_wait, until_other_ends, np.inf),
            np.where(may_let_wait, until_one_ends, np.inf),
        )

    def _has_touched(self, one: int, others: Ints) -> Flags:
        """Say which others what fills one item reads or fills, too."""
        schedule, filler = self._schedule, int(self._filler[one])
        if filler == NONE:
            return np.zeros(others.size, np.bool_)
        touched = np.concatenate((schedule.reads.row(filler), schedule.fills.row(filler)))
        return np.isin(self._residencies[others], touched)

    def _is_touched(self, one: int, others: Ints) -> Flags:
        """Say which others are filled by something that reads or fills one item, too."""
        readers = self._schedule.readers.row(int(self._residencies[one]))
        return np.isin(self._filler[others], np.append(readers, self._filler[one]))


def _groups(count: int, together: tuple[tuple[int, int], ...]) -> Ints:
    """Return for each item the first of those that lie together with it."""
    group = np.arange(count)
    for one, other in together:
        first, second = sorted((group[one], group[other]))
        group[group == second] = first
    return group
