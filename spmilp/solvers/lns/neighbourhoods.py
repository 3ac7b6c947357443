"""Neighbourhoods: which activities get new times in a window, and which of them another order."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints, owners_of
from spmilp.solvers.lns.window import Cut
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.schedule import Flags, TimedSchedule

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
class Slack:
    """A schedule with each activity as early and as late as it can be for one makespan."""

    context: ScheduleContext
    early: TimedSchedule
    late: TimedSchedule

    @cached_property
    def order(self) -> Ints:
        """The activities by their latest starts."""
        order = np.argsort(self.late.start, kind="stable")
        return order[self.late.schedule.cycles[order] > 0]

    @cached_property
    def cycles(self) -> Ints:
        """Cycles by which each activity may move."""
        return self.late.start - self.early.start

    def critical(self, random: np.random.Generator) -> int:
        """Return an activity without slack, for all others can save nothing by themselves."""
        tight = self.order[self.cycles[self.order] == 0]
        return int(random.choice(tight if tight.size else self.order))

    def stretch(self, first: int, count: int) -> tuple[int, int]:
        """Return where in the order so many activities are, from a position on if they can be.

        At the end of the schedule a whole stretch, not less.
        """
        first = max(0, min(first, self.order.size - count))
        return first, min(self.order.size, first + count)

    def position(self, activity: int) -> int:
        """Return where in the order those begin that start with an activity."""
        return int(np.searchsorted(self.late.start[self.order], self.late.start[activity]))

    def cut(self, begin: int, end: int, free: Flags) -> Cut:
        """Return the cut around those of the order from one position up to another."""
        starts = self.late.start[self.order[begin:end]]
        return Cut(int(starts[0]), int(starts[-1]) + 1, free)

    def all_of(self, begin: int, end: int) -> Cut:
        """Return the cut around a stretch in which all are free."""
        return self.cut(begin, end, np.ones(self.late.start.size, np.bool_))

    def some_of(self, begin: int, end: int, chosen: Ints) -> Cut:
        """Return the cut around a stretch in which some are free."""
        free = np.zeros(self.late.start.size, np.bool_)
        free[chosen] = True
        return self.cut(begin, end, free)


def _time(slack: Slack, size: int, random: np.random.Generator) -> Cut:
    return slack.all_of(*slack.stretch(slack.position(slack.critical(random)), size))


def _cores(slack: Slack, size: int, random: np.random.Generator) -> Cut:
    anchor = slack.critical(random)
    at_memory = _users_of_memories(slack)
    own = np.flatnonzero(at_memory[:, anchor] & ~slack.context.is_dram)
    others = random.permutation(np.flatnonzero(~slack.context.is_dram))
    chosen = [*own.tolist(), *others.tolist()][: int(random.integers(1, MOST_MEMORIES + 1))]
    touching: Flags = np.logical_or.reduce(at_memory[chosen])
    begin, end = slack.stretch(slack.position(anchor), REACH * size)
    free = slack.order[begin:end]
    free = free[touching[free]][:size]
    return slack.some_of(begin, end, free)


def _users_of_memories(slack: Slack) -> Flags:
    """Say for each memory which activities read or fill something there."""
    found = np.zeros((slack.context.is_dram.size, slack.late.start.size), np.bool_)
    for rows in (slack.late.schedule.reads, slack.late.schedule.fills):
        found[slack.late.schedule.memory[rows.items], owners_of(rows)] = True
    return found


def _chains(slack: Slack, size: int, random: np.random.Generator) -> Cut:
    anchor = slack.critical(random)
    begin, end = slack.stretch(slack.position(anchor), REACH * size)
    first, last = (int(slack.late.start[slack.order[at]]) for at in (begin, end - 1))
    found: dict[int, None] = {}
    waiting = [(int(slack.late.start[anchor]), anchor)]
    while waiting and len(found) < size:
        _, one = heappop(waiting)
        if one in found:
            continue
        found[one] = None
        for other in _linked(slack, one):
            if other not in found and first <= slack.late.start[other] <= last:
                heappush(waiting, (int(slack.late.start[other]), other))
    return slack.some_of(begin, end, np.array([*found], np.int64))


def _linked(slack: Slack, activity: int) -> list[int]:
    """Return what fills and what reads the same residencies in scratchpads."""
    schedule = slack.late.schedule
    found: list[int] = []
    for residency in (*schedule.reads.values(activity), *schedule.fills.values(activity)):
        if not slack.context.is_dram[schedule.memory[residency]]:
            filler = int(schedule.filler[residency])
            found += [] if filler == NONE else [filler]
            found += schedule.readers.values(residency)
    return found


def _critical(slack: Slack, size: int, random: np.random.Generator) -> Cut:
    begin, end = slack.stretch(slack.position(slack.critical(random)), REACH * size)
    inside = slack.order[begin:end]
    return slack.some_of(begin, end, inside[np.argsort(slack.cycles[inside], kind="stable")][:size])


CUTS: dict[Neighbourhood, Callable[[Slack, int, np.random.Generator], Cut]] = {
    Neighbourhood.TIME: _time,
    Neighbourhood.CORES: _cores,
    Neighbourhood.CHAINS: _chains,
    Neighbourhood.CRITICAL: _critical,
}
"""For each neighbourhood: the cut around so many free activities, somewhere in a schedule."""
