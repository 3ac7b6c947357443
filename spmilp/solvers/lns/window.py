"""A window of a schedule: what is decided in it, what is before it, and what comes behind."""

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.schedule import KEEPS_TIME, TimedSchedule, taken, timed
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx


class WindowSolution(NamedTuple):
    """What a window saves, and how.

    Attributes
    ----------
    saved
        Cycles by which all behind the window moves to the left.
    starts
        From the window's start, of the activities inside, in the order of their old times; empty
        where nothing is saved.
    """

    saved: Cycles
    starts: tuple[Cycles, ...]


class WindowResidency(NamedTuple):
    """A residency that may be there during a window, and when it was before: ``[begin, end)``.

    It begins with the window at the earliest. Its end is the true one, after the window's perhaps:
    what stays must not hand on its bytes to what begins just when the window ends.
    """

    residency: ResidencyIdx
    begin: Cycles
    end: Cycles
    bytes: Bytes


class Window:
    """The activities inside a window get new times; all others move as two blocks at most.

    What starts before the window at the latest stays where it is at its earliest; what starts
    behind it at the latest stays there, and moves to the left as a whole by what the window saves.
    If that is nothing, all times are valid as they were: the earliest on the one side of a cut by
    latest starts go together with the latest on the other. Those are the *old* times of a window.

    Parameters
    ----------
    early, late
        The schedule, with each activity as early and as late as it can be for one makespan.
    first, until
        Activities whose latest start lies in ``[first, until)`` are inside.

    Attributes
    ----------
    is_before, is_inside
        Of each activity: whether it comes before the window, and whether it gets a new time in it.
    cycles, old
        Of each activity: how long it takes, and when it started.
    filler, overwrites, overwritten_by
        Of each residency, as in the schedule.
    """

    def __init__(
        self,
        context: ScheduleContext,
        early: TimedSchedule,
        late: TimedSchedule,
        first: Cycles,
        until: Cycles,
    ) -> None:
        schedule = late.schedule
        self.context = context
        self.schedule = schedule
        self.first = first
        runs = schedule.cycles > 0
        self._is_before = runs & (late.start < first)
        self._is_behind = runs & (late.start >= until)
        self._is_inside = runs & ~self._is_before & ~self._is_behind
        self._late = late.start
        self._makespan = late.makespan
        self._old = np.where(self._is_before, early.start, late.start)
        self._old_end = self._old + schedule.cycles
        self.is_before: list[bool] = self._is_before.tolist()
        self.is_inside: list[bool] = self._is_inside.tolist()
        self.cycles: list[int] = schedule.cycles.tolist()
        self.old: list[int] = self._old.tolist()
        self.filler: list[int] = schedule.filler.tolist()
        self.overwrites: list[int] = schedule.overwrites.tolist()
        self.overwritten_by: list[int] = schedule.overwritten_by.tolist()

    def old_end(self, activity: int) -> Cycles:
        """Return the old end of an activity."""
        return self.old[activity] + self.cycles[activity]

    def earliest_start(self, activity: int) -> Cycles:
        """Return the cycle before which an activity must not start."""
        return int(self.schedule.head[activity])

    def latest_end(self, activity: int) -> Cycles:
        """Return the cycle by which an activity has to end if nothing is saved."""
        return self._makespan - int(self.schedule.tail[activity])

    @cached_property
    def running(self) -> Cycles:
        """The cycle at which the last activity before the window has ended."""
        return int(self._old_end[self._is_before].max(initial=0))

    @cached_property
    def end(self) -> Cycles:
        """The cycle by which the window and all before it have ended."""
        return max(self.running, int(self._old_end[self._is_inside].max(initial=0)))

    @cached_property
    def start(self) -> Cycles:
        """The cycle before which nothing of the window may start."""
        return max(0, 2 * self.first - self.end)

    @cached_property
    def near(self) -> list[int]:
        """The activities that may hold something between the start and the end of the window.

        Those before, then those inside, then those behind, each in the order of their old times.
        """
        before = self._is_before & (self._old_end > self.start)
        behind = self._is_behind & (self._late < self.end)
        near = np.flatnonzero(before | behind | self._is_inside)
        side = self._is_behind[near].astype(np.int64) - self._is_before[near]
        order = np.lexsort((self.schedule.cycles[near], self._old[near], side))
        found: list[int] = near[order].tolist()
        return found

    @cached_property
    def inside(self) -> list[int]:
        """The activities that get new times, in the order of the old ones."""
        return [one for one in self.near if self._is_inside[one]]

    def touched(self, activity: int) -> list[ResidencyIdx]:
        """Return what an activity reads and fills."""
        return [*self.schedule.reads.values(activity), *self.schedule.fills.values(activity)]

    def touching(self, residency: ResidencyIdx) -> list[int]:
        """Return what fills and what reads a residency."""
        filler, readers = self.filler[residency], self.schedule.readers.values(residency)
        return readers if filler < 0 else [filler, *readers]

    def residencies(self, memory: MemoryIdx) -> list[WindowResidency]:
        """Return the residencies of a memory that may be there between the start and the end."""
        there = np.flatnonzero(self.schedule.memory == memory).tolist()
        found = [self._residency(one) for one in there if self.is_near(one)]
        return sorted(found, key=lambda one: (one.begin, min(one.end, self.end), one.bytes))

    def _residency(self, residency: ResidencyIdx) -> WindowResidency:
        filler, begin = self.filler[residency], self.start
        if filler >= 0:
            overwrites = self.overwrites[residency] >= 0
            begin = self.old_end(filler) if overwrites else self.old[filler]
        end = max(map(self.old_end, self.touching(residency)), default=0)
        if self.schedule.lasting[residency]:
            end = max(end, self.end + 1)
        size = int(taken(self.schedule, residency, int(self.schedule.memory[residency])))
        return WindowResidency(residency, max(begin, self.start), end, size)

    def is_near(self, residency: ResidencyIdx) -> bool:
        """Say whether a residency may be there between the start and the end."""
        filler = self.filler[residency]
        if filler >= 0 and self.cycles[filler] == 0:
            return False
        if filler >= 0 and not self.is_before[filler]:
            # Inside, what overwrites bytes may begin anywhere.
            overwrites = self.overwrites[residency] >= 0 and self._is_behind[filler]
            if (self.old_end(filler) if overwrites else self.old[filler]) >= self.end:
                return False
        touching = self.touching(residency)
        if self.schedule.lasting[residency] or not all(self.is_before[one] for one in touching):
            return True
        return max(map(self.old_end, touching), default=0) > self.start

    def result(self, solution: WindowSolution) -> TimedSchedule:
        """Return the schedule with its new times, for a solution that saves something."""
        start = np.where(self.is_before, self._old, self._late - solution.saved)
        start[self.inside] = self.start + np.array(solution.starts, np.int64)
        return timed(self.schedule, start)


def window_somewhere(
    context: ScheduleContext,
    early: TimedSchedule,
    late: TimedSchedule,
    size: int,
    random: np.random.Generator,
) -> Window:
    """Return a window of so many activities, from one without slack on.

    All others can save nothing by themselves. At the end of the schedule the window has as many
    activities, not fewer.
    """
    order = np.argsort(late.start, kind="stable")
    schedule = late.schedule
    order = order[(schedule.cycles[order] > 0) & (schedule.fixed[order] != KEEPS_TIME)]
    critical = order[late.start[order] == early.start[order]]
    anchor = random.choice(critical if critical.size else order)
    position = int(np.searchsorted(late.start[order], late.start[anchor]))
    begin = max(0, min(position, order.size - size))
    starts = late.start[order[begin : begin + size]]
    return Window(context, early, late, int(starts[0]), int(starts[-1]) + 1)


class Claim(NamedTuple):
    """An amount of something, held for ``[begin, end)`` in cycles."""

    begin: int
    end: int
    amount: int


def handovers(claims: Sequence[Claim], capacity: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of claims, the first of which ends before the second begins.

    As long as they all do, the claims fit, whatever their times; they have to fit at the times
    given. These are the chains of Policella, Cesta, Oddo and Smith (AI Communications 20, 2007).
    What has been idle longest is handed on first: that leaves the second most room to begin sooner.

    Parameters
    ----------
    claims
        In the order in which they begin.
    """
    idle: deque[tuple[int, int | None]] = deque([(capacity, None)])
    busy: list[int] = []
    for index, claim in enumerate(claims):
        ended = sorted((claims[one].end, one) for one in busy if claims[one].end <= claim.begin)
        busy = [one for one in busy if claims[one].end > claim.begin]
        idle.extend((claims[one].amount, one) for _, one in ended)
        need = claim.amount
        while need > 0 and idle:
            amount, giver = idle.popleft()
            if giver is not None:
                yield giver, index
            if amount > need:
                idle.appendleft((amount - need, giver))
            need -= amount
        busy.append(index)
