"""The steps at which a slice may have a reason to be in a memory on the chip."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from spmilp.machine.machine import MemoryKind
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.residency.scope import Scope, Turn
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx

BEGINNING = -1
"""The step before the first task; the one after the last task is their number."""

MOST_MEMORIES = 4
"""Up to so many memories on the chip, a slice may wait in one where no task touches it."""


class Home(NamedTuple):
    """A slice in a memory on the chip."""

    slice: SliceIdx
    memory: MemoryIdx


class Run(NamedTuple):
    """A task that takes one of its turns."""

    task: TaskIdx
    turn: Turn


@dataclass(slots=True)
class Visit:
    """A step at which a slice may be in a memory.

    Parameters
    ----------
    writers, readers
        Runs at this step that write it, and that read it or a part of it, in this memory. Without
        any it may only wait there, come from there or go there.
    """

    step: int
    writers: list[Run] = field(default_factory=list)
    readers: list[Run] = field(default_factory=list)


class Visits:
    """All visits of a scope.

    Attributes
    ----------
    of
        Those of each home, in order of steps; at each step there is one at most.
    given, kept
        The homes of slices that are there at the beginning, and of those that have to be at the
        end.
    """

    def __init__(self, tables: Tables, scope: Scope) -> None:
        self._tables = tables
        self._scope = scope
        self._found: dict[Home, dict[int, Visit]] = defaultdict(dict)
        self._worked_in = frozenset(pool.memory for pool in tables.pools)
        self.given = frozenset(
            self._on_chip((b.index, b.starts_in) for b in tables.problem.buffers)
        )
        self.kept = frozenset(self._on_chip((b.index, b.ends_in) for b in tables.problem.buffers))
        for home in self.given:
            self._visit(home, BEGINNING)
        for home in self.kept:
            self._visit(home, len(scope.turns))
        self._runs_visit()
        self._others_pass()
        self.of = {
            home: tuple(visits[step] for step in sorted(visits))
            for home, visits in sorted(self._found.items())
        }

    def is_working(self, memory: MemoryIdx) -> bool:
        """Say whether cores work in a memory."""
        return memory in self._worked_in

    def related(self, slice_: SliceIdx) -> tuple[SliceIdx, ...]:
        """Return what a slice can be copied out of, or read in: itself, and its buffer."""
        return tuple(dict.fromkeys((slice_, self._tables.problem.slices[slice_].buffer)))

    def _on_chip(self, ends: Iterable[tuple[SliceIdx, MemoryIdx | None]]) -> Iterable[Home]:
        memories = self._tables.machine.memories
        for buffer, memory in ends:
            if memory is not None and memories[memory].kind is not MemoryKind.DRAM:
                yield Home(buffer, memory)

    def _runs_visit(self) -> None:
        for task, turns in zip(self._tables.problem.tasks, self._scope.turns, strict=True):
            for turn in turns:
                run, memory = Run(task.index, turn), self._tables.pools[turn.pool].memory
                for written in task.writes:
                    self._visit(Home(written, memory), turn.step).writers.append(run)
                for read in task.reads:
                    for slice_ in self.related(read):
                        if self._tables.fits(slice_, memory):
                            readers = self._visit(Home(slice_, memory), turn.step).readers
                            if run not in readers:
                                readers.append(run)

    def _others_pass(self) -> None:
        """Add a visit wherever something may happen to a slice in another memory."""
        chip = [m.index for m in self._tables.machine.memories if m.kind is not MemoryKind.DRAM]
        happens: dict[SliceIdx, dict[MemoryIdx, set[int]]] = defaultdict(lambda: defaultdict(set))
        for home, visits in self._found.items():
            for slice_ in self.related(home.slice):
                happens[slice_][home.memory] |= set(visits)
        for slice_, places in happens.items():
            for memory in chip if len(chip) <= MOST_MEMORIES else places:
                others = {other: steps for other, steps in places.items() if other != memory}
                if self._tables.fits(slice_, memory) and self._are_linked(slice_, memory, others):
                    for step in sorted(step for steps in others.values() for step in steps):
                        self._visit(Home(slice_, memory), step)

    def _are_linked(self, slice_: SliceIdx, memory: MemoryIdx, others: Iterable[MemoryIdx]) -> bool:
        ways = self._tables.ways
        return any(
            ways.between(slice_, memory, other) or ways.between(slice_, other, memory)
            for other in others
        )

    def _visit(self, home: Home, step: int) -> Visit:
        return self._found[home].setdefault(step, Visit(step))
