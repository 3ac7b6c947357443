"""The steps at which a slice has a reason to be in a memory on the chip."""

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from spmilp.machine.machine import MemoryKind
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.residency.course import Course
from spmilp.units import MemoryIdx, SliceIdx

BEGINNING = -1
"""The step before the first task; the one after the last task is their number."""

MOST_MEMORIES = 4
"""Up to so many memories on the chip, a slice may wait in one where no task touches it."""


class Reason(Enum):
    """Why a slice may be in a memory at a step.

    ``BORN``
        The task of the step writes it, or it is there at the beginning.
    ``READ``
        The task of the step reads it, or a part of it. It may be brought before the task starts.
    ``KEPT``
        It has to be there at the end.
    ``PASSES``
        It is elsewhere, and may come from here or go here. It may be brought after the task.
    """

    BORN = auto()
    READ = auto()
    KEPT = auto()
    PASSES = auto()


class Home(NamedTuple):
    """A slice in a memory on the chip."""

    slice: SliceIdx
    memory: MemoryIdx


@dataclass(frozen=True)
class Visit:
    """A step at which a slice may be in a memory.

    Parameters
    ----------
    is_needed
        Whether it has to be.
    """

    step: int
    reason: Reason
    is_needed: bool


class Visits:
    """All visits of a course.

    Attributes
    ----------
    of
        Those of each home, in order of steps; at each step there is one at most.
    """

    def __init__(self, tables: Tables, course: Course) -> None:
        self._tables = tables
        self._course = course
        self._last = len(course.order)
        self._found: dict[Home, dict[int, Visit]] = defaultdict(dict)
        self._tasks_visit()
        self._beginning_and_end_visit()
        self._others_pass()
        self.of = {
            home: tuple(visits[step] for step in sorted(visits))
            for home, visits in sorted(self._found.items())
            if visits
        }

    @property
    def are_possible(self) -> bool:
        """Whether each slice fits each memory in which it has to be."""
        return all(
            self._tables.fits(*home)
            for home, visits in self.of.items()
            if any(visit.is_needed for visit in visits)
        )

    def related(self, slice_: SliceIdx) -> tuple[SliceIdx, ...]:
        """Return what a slice can be copied out of: itself, and its buffer."""
        buffer = self._tables.problem.slices[slice_].buffer
        return (slice_,) if slice_ == buffer else (slice_, buffer)

    def _tasks_visit(self) -> None:
        memories = self._course.memories(self._tables)
        for step, index in enumerate(self._course.order):
            task = self._tables.problem.tasks[index]
            for written in task.writes:
                self._add(Home(written, memories[index]), step, Reason.BORN, is_needed=True)
            for read in task.reads:
                # A part may also be read inside its buffer; the buffer has no other way.
                own, *whole = self.related(read)
                self._add(Home(own, memories[index]), step, Reason.READ, is_needed=not whole)
                for buffer in whole:
                    self._add(Home(buffer, memories[index]), step, Reason.READ, is_needed=False)

    def _beginning_and_end_visit(self) -> None:
        memories = self._tables.machine.memories
        for buffer in self._tables.problem.buffers:
            starts, ends = buffer.starts_in, buffer.ends_in
            if starts is not None and memories[starts].kind is not MemoryKind.DRAM:
                self._add(Home(buffer.index, starts), BEGINNING, Reason.BORN, is_needed=False)
            if ends is not None and memories[ends].kind is not MemoryKind.DRAM:
                self._add(Home(buffer.index, ends), self._last, Reason.KEPT, is_needed=True)

    def _others_pass(self) -> None:
        """Add a visit wherever something happens to a slice in another memory."""
        chip = [m.index for m in self._tables.machine.memories if m.kind is not MemoryKind.DRAM]
        happens: dict[SliceIdx, dict[MemoryIdx, set[int]]] = defaultdict(lambda: defaultdict(set))
        for home, visits in self._found.items():
            for slice_ in self.related(home.slice):
                happens[slice_][home.memory] |= set(visits)
        for slice_, places in happens.items():
            waits = chip if len(chip) <= MOST_MEMORIES else list(places)
            for memory in waits:
                if not self._is_linked(slice_, memory, places):
                    continue
                for other, steps in places.items():
                    if other != memory:
                        for step in sorted(steps):
                            self._pass(Home(slice_, memory), step)

    def _is_linked(
        self, slice_: SliceIdx, memory: MemoryIdx, places: dict[MemoryIdx, set[int]]
    ) -> bool:
        ways = self._tables.ways
        return any(
            ways.between(slice_, memory, other) or ways.between(slice_, other, memory)
            for other in places
            if other != memory
        ) and self._tables.fits(slice_, memory)

    def _pass(self, home: Home, step: int) -> None:
        if step not in self._found[home] and BEGINNING < step < self._last:
            self._found[home][step] = Visit(step, Reason.PASSES, False)

    def _add(self, home: Home, step: int, reason: Reason, *, is_needed: bool) -> None:
        if not is_needed and not self._tables.fits(*home):
            return
        known = self._found[home].get(step)
        if known is None or (is_needed and not known.is_needed):
            self._found[home][step] = Visit(step, reason, is_needed)
