"""A window of a plan: what is free, what is before it, and what comes behind."""

from functools import cached_property

import numpy as np

from spmilp.solvers.list_scheduler.records import Ints
from spmilp.solvers.lns.draft import Draft, Rows
from spmilp.solvers.lns.ground import Ground
from spmilp.units import Cycles


class Window:
    """The activities whose latest start lies in ``[first, until)`` are free.

    What starts earlier at the latest, stays where it is at its earliest; what starts later at the
    latest, stays there, and moves to the left as a whole by what the window saves. If that is
    nothing, all times are valid as they were: the earliest on the one side of a cut by latest
    starts go together with the latest on the other.

    Parameters
    ----------
    early, late
        Start cycles of every activity, each as early and as late as it can be for one makespan.
    """

    def __init__(
        self, ground: Ground, draft: Draft, early: Ints, late: Ints, first: Cycles, until: Cycles
    ) -> None:
        self.ground = ground
        self.draft = draft
        self.first = first
        self.until = until
        lives = draft.cycles > 0
        self.is_before = lives & (late < first)
        self._is_behind = lives & (late >= until)
        self._early = early
        self._late = late
        self.free = np.flatnonzero(lives & (late >= first) & (late < until)).tolist()
        self._is_free = frozenset(self.free)
        self.cycles: list[int] = draft.cycles.tolist()
        self.early: list[int] = early.tolist()
        self.late: list[int] = late.tolist()
        self.filler: list[int] = draft.filler.tolist()
        self.parent: list[int] = draft.parent.tolist()
        self.heir: list[int] = draft.heir.tolist()

    def is_free(self, activity: int) -> bool:
        """Say whether an activity is in the window."""
        return activity in self._is_free

    def early_end(self, activity: int) -> Cycles:
        """Return the earliest end of an activity."""
        return self.early[activity] + self.cycles[activity]

    def late_end(self, activity: int) -> Cycles:
        """Return the latest end of an activity."""
        return self.late[activity] + self.cycles[activity]

    @cached_property
    def running(self) -> Cycles:
        """The cycle at which the last activity before the window has ended."""
        ends = (self._early + self.draft.cycles)[self.is_before]
        return int(ends.max(initial=0))

    @cached_property
    def end(self) -> Cycles:
        """The cycle by which the window and all before it have ended."""
        return max(self.running, max(map(self.late_end, self.free), default=0))

    @cached_property
    def start(self) -> Cycles:
        """The cycle before which nothing of the window may start."""
        return max(0, 2 * self.first - self.end)

    @cached_property
    def near(self) -> list[int]:
        """The activities that may hold something between the start and the end of the window."""
        ends = self._early + self.draft.cycles
        before = self.is_before & (ends > self.start)
        behind = self._is_behind & (self._late < self.end)
        return sorted({*np.flatnonzero(before | behind).tolist(), *self.free})

    def residencies(self, memory: int) -> list[int]:
        """Return those of a memory that may be there between the start and the end."""
        held = np.flatnonzero(self.draft.memory == memory)
        return [one for one in held.tolist() if self._is_near(one)]

    def row(self, rows: Rows, index: int) -> list[int]:
        """Return one list of many."""
        found: list[int] = rows.items[rows.begin[index] : rows.begin[index + 1]].tolist()
        return found

    def touching(self, held: int) -> list[int]:
        """Return what fills and what reads a residency."""
        filler = self.filler[held]
        users = self.row(self.draft.users, held)
        return users if filler < 0 else [filler, *users]

    def _is_near(self, held: int) -> bool:
        filler, touching = self.filler[held], self.touching(held)
        if filler >= 0 and self.cycles[filler] == 0:
            return False
        if filler >= 0 and not self.is_before[filler] and self.late[filler] >= self.end:
            return False
        if self.draft.lasting[held] or not all(self.is_before[one] for one in touching):
            return True
        return max(map(self.early_end, touching), default=0) > self.start

    def result(self, found: dict[int, Cycles], saved: Cycles) -> Ints:
        """Return start cycles of all activities, from those of the window's and what it saves."""
        times = np.where(self.is_before, self._early, self._late - saved)
        for activity, cycle in found.items():
            times[activity] = cycle
        return times
