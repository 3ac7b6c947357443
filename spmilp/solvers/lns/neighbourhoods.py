"""Kinds of windows: which activities get new times, and which of them another order."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints, Rows, owners_of
from spmilp.solvers.lns.window import Cut
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.schedule import Flags, PartialOrderSchedule

REACH = 2
"""Activities inside a window for each that is free, at most, where the others keep their order."""

MOST_MEMORIES = 3
"""In a window of cores."""


class Neighbourhood(Enum):
    """What the free activities of a window have in common.

    ``TIME``
        All that start in a stretch of time, from an activity without slack on.
    ``CORES``
        In a longer stretch, all that reads or fills a few scratchpads.
    ``CHAINS``
        In a longer stretch, what is linked by slices that stay in scratchpads.
    ``CRITICAL``
        In a longer stretch, what has least slack.
    """

    TIME = 0
    CORES = 1
    CHAINS = 2
    CRITICAL = 3


@dataclass(frozen=True, eq=False)
class Field:
    """The times of a plan, each activity as early and as late as it can be for one makespan."""

    context: ScheduleContext
    schedule: PartialOrderSchedule
    early: Ints
    late: Ints

    @cached_property
    def order(self) -> Ints:
        """The activities by their latest starts."""
        sequence = np.argsort(self.late, kind="stable")
        return sequence[self.schedule.cycles[sequence] > 0]

    @cached_property
    def slack(self) -> Ints:
        """Cycles by which each activity may move."""
        return self.late - self.early

    def critical(self, random: np.random.Generator) -> int:
        """Return an activity without slack, for all others can save nothing by themselves."""
        tight = self.order[self.slack[self.order] == 0]
        return int(random.choice(tight if tight.size else self.order))

    def stretch(self, first: int, count: int) -> tuple[int, int]:
        """Return where in the order so many activities are, from a position on if they can be.

        A whole stretch at the end of the plan, not less.
        """
        first = max(0, min(first, self.order.size - count))
        return first, min(self.order.size, first + count)

    def position(self, activity: int) -> int:
        """Return where in the order those begin that start with an activity."""
        return int(np.searchsorted(self.late[self.order], self.late[activity]))

    def cut(self, begin: int, end: int, free: Flags) -> Cut:
        """Return the cut around those of the order from one position up to another."""
        return Cut(int(self.late[self.order[begin]]), int(self.late[self.order[end - 1]]) + 1, free)

    def all_of(self, begin: int, end: int) -> Cut:
        """Return the cut around a stretch in which all are free."""
        return self.cut(begin, end, np.ones(self.late.size, np.bool_))

    def some_of(self, begin: int, end: int, chosen: Ints) -> Cut:
        """Return the cut around a stretch in which some are free."""
        free = np.zeros(self.late.size, np.bool_)
        free[chosen] = True
        return self.cut(begin, end, free)


def _time(field: Field, size: int, random: np.random.Generator) -> Cut:
    return field.all_of(*field.stretch(field.position(field.critical(random)), size))


def _cores(field: Field, size: int, random: np.random.Generator) -> Cut:
    anchor = field.critical(random)
    at_memory = _users_of_memories(field)
    own = np.flatnonzero(at_memory[:, anchor] & ~field.context.is_dram)
    others = random.permutation(np.flatnonzero(~field.context.is_dram))
    chosen = [*own.tolist(), *others.tolist()][: int(random.integers(1, MOST_MEMORIES + 1))]
    touching: Flags = np.logical_or.reduce(at_memory[chosen])
    begin, end = field.stretch(field.position(anchor), REACH * size)
    free = field.order[begin:end]
    free = free[touching[free]][:size]
    return field.some_of(begin, end, free)


def _users_of_memories(field: Field) -> Flags:
    """Say for each memory which activities read or fill something there."""
    found = np.zeros((field.context.is_dram.size, field.late.size), np.bool_)
    for rows in (field.schedule.reads, field.schedule.fills):
        found[field.schedule.memory[rows.items], owners_of(rows)] = True
    return found


def _chains(field: Field, size: int, random: np.random.Generator) -> Cut:
    anchor = field.critical(random)
    begin, end = field.stretch(field.position(anchor), REACH * size)
    first, last = (int(field.late[field.order[at]]) for at in (begin, end - 1))
    found: dict[int, None] = {}
    waiting = [(int(field.late[anchor]), anchor)]
    while waiting and len(found) < size:
        _, one = heappop(waiting)
        if one in found:
            continue
        found[one] = None
        for other in _linked(field, one):
            if other not in found and first <= field.late[other] <= last:
                heappush(waiting, (int(field.late[other]), other))
    return field.some_of(begin, end, np.array([*found], np.int64))


def _linked(field: Field, activity: int) -> list[int]:
    """Return what fills and what reads the same residencies in scratchpads."""
    schedule = field.schedule
    found: list[int] = []
    for rows in (schedule.reads, schedule.fills):
        for residency in _row(rows, activity):
            if not field.context.is_dram[schedule.memory[residency]]:
                filler = int(schedule.filler[residency])
                found += [*([] if filler == NONE else [filler]), *_row(schedule.readers, residency)]
    return found


def _row(rows: Rows, index: int) -> list[int]:
    found: list[int] = rows.items[rows.begin[index] : rows.begin[index + 1]].tolist()
    return found


def _critical(field: Field, size: int, random: np.random.Generator) -> Cut:
    begin, end = field.stretch(field.position(field.critical(random)), REACH * size)
    inside = field.order[begin:end]
    return field.some_of(begin, end, inside[np.argsort(field.slack[inside], kind="stable")][:size])


CUTS: dict[Neighbourhood, Callable[[Field, int, np.random.Generator], Cut]] = {
    Neighbourhood.TIME: _time,
    Neighbourhood.CORES: _cores,
    Neighbourhood.CHAINS: _chains,
    Neighbourhood.CRITICAL: _critical,
}
"""For each kind: the cut around so many free activities, somewhere in a plan."""
