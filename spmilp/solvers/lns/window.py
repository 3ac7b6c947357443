"""A window of a plan: what is decided in it, what is before it, and what comes behind."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.lns.draft import Draft, Flags, Rows
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.known import Answer
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx


class Cut(NamedTuple):
    """What a window decides.

    Attributes
    ----------
    first, until
        Activities whose latest start lies in ``[first, until)`` are inside: they get new times.
    free
        Of each activity, whether its order may change, too, if it is inside. The others inside
        keep the order that they have on each resource and in each memory.
    """

    first: Cycles
    until: Cycles
    free: Flags


class Stay(NamedTuple):
    """A residency that may be there during a window, as it was before: ``[begin, end)``."""

    held: ResidencyIdx
    begin: Cycles
    end: Cycles
    bytes: Bytes


class Window:
    """The activities inside a cut get new times; all others move as two blocks at most.

    What starts earlier at the latest, stays where it is at its earliest; what starts later at the
    latest, stays there, and moves to the left as a whole by what the window saves. If that is
    nothing, all times are valid as they were: the earliest on the one side of a cut by latest
    starts go together with the latest on the other. Those are the *old* times of a window.

    Parameters
    ----------
    early, late
        Start cycles of every activity, each as early and as late as it can be for one makespan.

    Attributes
    ----------
    is_before, is_inside, is_free
        Of each activity: whether it comes before the window, gets a new time in it, and may change
        its order, too.
    cycles, old
        Of each activity: how long it takes, and when it started.
    filler, parent, heir
        Of each residency, as in the draft.
    """

    def __init__(self, ground: Ground, draft: Draft, early: Ints, late: Ints, cut: Cut) -> None:
        self.ground = ground
        self.draft = draft
        self.first = cut.first
        lives = draft.cycles > 0
        self._is_before = lives & (late < cut.first)
        self._is_behind = lives & (late >= cut.until)
        self._is_inside = lives & ~self._is_before & ~self._is_behind
        self._old = np.where(self._is_before, early, late)
        self.is_before: list[bool] = self._is_before.tolist()
        self.is_inside: list[bool] = self._is_inside.tolist()
        self.is_free: list[bool] = (self._is_inside & cut.free).tolist()
        self._late = late
        self.cycles: list[int] = draft.cycles.tolist()
        self.old: list[int] = self._old.tolist()
        self.filler: list[int] = draft.filler.tolist()
        self.parent: list[int] = draft.parent.tolist()
        self.heir: list[int] = draft.heir.tolist()

    def old_end(self, activity: int) -> Cycles:
        """Return the old end of an activity."""
        return self.old[activity] + self.cycles[activity]

    @cached_property
    def inside(self) -> list[int]:
        """The activities that get new times, in the order of the old ones."""
        return [one for one in self.near if self._is_inside[one]]

    @cached_property
    def running(self) -> Cycles:
        """The cycle at which the last activity before the window has ended."""
        return int((self._old + self.draft.cycles)[self._is_before].max(initial=0))

    @cached_property
    def end(self) -> Cycles:
        """The cycle by which the window and all before it have ended."""
        ends = (self._old + self.draft.cycles)[self._is_inside]
        return max(self.running, int(ends.max(initial=0)))

    @cached_property
    def start(self) -> Cycles:
        """The cycle before which nothing of the window may start."""
        return max(0, 2 * self.first - self.end)

    @cached_property
    def near(self) -> list[int]:
        """The activities that may hold something between the start and the end of the window.

        Those before, then those inside, then those behind, each in the order of their old times:
        equal windows list them in the same way wherever they are.
        """
        ends = self._old + self.draft.cycles
        before = self._is_before & (ends > self.start)
        behind = self._is_behind & (self._late < self.end)
        near = np.flatnonzero(before | behind | self._is_inside)
        side = self._is_behind[near].astype(np.int64) - self._is_before[near]
        turn = np.lexsort((self.draft.cycles[near], self._old[near], side))
        found: list[int] = near[turn].tolist()
        return found

    def stays(self, memory: MemoryIdx) -> list[Stay]:
        """Return the residencies of a memory that may be there between the start and the end."""
        held = np.flatnonzero(self.draft.memory == memory).tolist()
        found = [self._stay(one) for one in held if self._is_near(one)]
        return sorted(found, key=lambda stay: (stay.begin, stay.end, stay.bytes))

    def _stay(self, held: ResidencyIdx) -> Stay:
        filler, touching = self.filler[held], self.touching(held)
        begin = self.start
        if filler >= 0:
            begin = self.old_end(filler) if self.parent[held] >= 0 else self.old[filler]
        end = max(map(self.old_end, touching), default=0)
        if self.draft.lasting[held]:
            end = self.end
        size = int(self.draft.bytes[held])
        return Stay(held, max(begin, self.start), min(end, self.end), size)

    def row(self, rows: Rows, index: int) -> list[int]:
        """Return one list of many."""
        found: list[int] = rows.items[rows.begin[index] : rows.begin[index + 1]].tolist()
        return found

    def touching(self, held: ResidencyIdx) -> list[int]:
        """Return what fills and what reads a residency."""
        filler = self.filler[held]
        users = self.row(self.draft.users, held)
        return users if filler < 0 else [filler, *users]

    def _is_near(self, held: ResidencyIdx) -> bool:
        filler, touching = self.filler[held], self.touching(held)
        if filler >= 0 and self.cycles[filler] == 0:
            return False
        if filler >= 0 and not self.is_before[filler] and self._begin(held, filler) >= self.end:
            return False
        if self.draft.lasting[held] or not all(self.is_before[one] for one in touching):
            return True
        return max(map(self.old_end, touching), default=0) > self.start

    def _begin(self, held: ResidencyIdx, filler: int) -> Cycles:
        """Return the old begin of what an activity fills, if that is behind or inside.

        What takes over bytes inside may begin anywhere.
        """
        takes_over = self.parent[held] >= 0 and self._is_behind[filler]
        return self.old_end(filler) if takes_over else self.old[filler]

    def result(self, answer: Answer) -> Ints:
        """Return start cycles of all activities, for an answer that saves something."""
        times = np.where(self.is_before, self._old, self._late - answer.saved)
        times[self.inside] = self.start + np.array(answer.starts, np.int64)
        return times
