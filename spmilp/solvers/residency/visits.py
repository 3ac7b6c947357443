"""The steps at which a slice may have a reason to be in a memory on the chip."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from spmilp.machine.machine import MemoryKind
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.scope import Scope, Turn
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx

BEGINNING = -1
"""The step before the first task; the one after the last task is their number."""

MOST_MEMORIES = 4
"""Of which a slice may come from another than DRAM at a step."""


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

    def __init__(self, tables: ProblemTables, scope: Scope) -> None:
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

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(visits) for visits in self.of.values())

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
        """Add visits where a slice may come from or wait while something happens elsewhere.

        On a machine with few memories these are all of them. On others they are those in which
        something happened to the slice last.
        """
        chip = [m.index for m in self._tables.machine.memories if m.kind is not MemoryKind.DRAM]
        happens: dict[SliceIdx, dict[int, set[MemoryIdx]]] = defaultdict(lambda: defaultdict(set))
        for home, visits in self._found.items():
            for slice_ in self.related(home.slice):
                for step in visits:
                    happens[slice_][step].add(home.memory)
        for slice_, steps in happens.items():
            recent = chip if len(chip) <= MOST_MEMORIES else []
            for step in sorted(steps):
                here = steps[step]
                for memory in recent:
                    if here != {memory} and self._are_linked(slice_, memory, here - {memory}):
                        self._visit(Home(slice_, memory), step)
                if len(chip) > MOST_MEMORIES:
                    others = [memory for memory in recent if memory not in here]
                    recent = [*sorted(here), *others][:MOST_MEMORIES]

    def _are_linked(self, slice_: SliceIdx, memory: MemoryIdx, others: Iterable[MemoryIdx]) -> bool:
        ways = self._tables.transfers
        return self._tables.fits(slice_, memory) and any(
            ways.between(slice_, memory, other) or ways.between(slice_, other, memory)
            for other in others
        )

    def _visit(self, home: Home, step: int) -> Visit:
        return self._found[home].setdefault(step, Visit(step))
