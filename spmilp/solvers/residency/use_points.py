"""The steps at which a slice may have a reason to be in a memory on the chip."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.scope import Run, Scope
from spmilp.units import MemoryIdx, SliceIdx

BEGINNING = -1
"""The step before the first task; the one after the last task is their number."""

MOST_MEMORIES = 4
"""Of which a slice may come from another than DRAM at a step."""


class Location(NamedTuple):
    """A slice in a memory."""

    slice: SliceIdx
    memory: MemoryIdx


@dataclass(slots=True)
class UsePoint:
    """A step at which a slice may be in a memory on the chip.

    Parameters
    ----------
    writers, readers
        Runs at this step that write it, and that read it or a part of it, in this memory. Without
        any it may only wait there, come from there or go there.
    """

    step: int
    writers: list[Run] = field(default_factory=list)
    readers: list[Run] = field(default_factory=list)


class UsePoints:
    """All use points of a scope.

    Attributes
    ----------
    of
        Those of each location, in order of steps; at each step there is one at most.
    initial, final
        The locations of slices that are there at the beginning, and of those that have to be at the
        end.
    """

    def __init__(self, tables: ProblemTables, scope: Scope) -> None:
        self.tables = tables
        self.scope = scope
        self._found: dict[Location, dict[int, UsePoint]] = defaultdict(dict)
        self._worked_in = frozenset(pool.memory for pool in tables.pools)
        buffers = tables.problem.buffers
        self.initial = frozenset(self._on_chip((b.index, b.starts_in) for b in buffers))
        self.final = frozenset(self._on_chip((b.index, b.ends_in) for b in buffers))
        for location in self.initial:
            self._point(location, BEGINNING)
        for location in self.final:
            self._point(location, len(scope.slots))
        self._add_those_of_runs()
        self._add_those_on_the_way()
        self.of = {
            location: tuple(points[step] for step in sorted(points))
            for location, points in sorted(self._found.items())
        }

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(points) for points in self.of.values())

    def is_initial(self, location: Location, point: UsePoint) -> bool:
        """Say whether a slice is there at the beginning, and this is it."""
        return location in self.initial and point.step == BEGINNING

    def is_working(self, memory: MemoryIdx) -> bool:
        """Say whether cores work in a memory."""
        return memory in self._worked_in

    def _on_chip(self, ends: Iterable[tuple[SliceIdx, MemoryIdx | None]]) -> Iterable[Location]:
        for buffer, memory in ends:
            if memory is not None and not self.tables.is_dram(memory):
                yield Location(buffer, memory)

    def _add_those_of_runs(self) -> None:
        for task, slots in zip(self.tables.problem.tasks, self.scope.slots, strict=True):
            for slot in slots:
                run, memory = Run(task.index, slot), self.tables.pools[slot.pool].memory
                for written in task.writes:
                    self._point(Location(written, memory), slot.step).writers.append(run)
                for read in task.reads:
                    for holder in self.tables.holders(read):
                        if self.tables.fits(holder, memory):
                            readers = self._point(Location(holder, memory), slot.step).readers
                            if run not in readers:
                                readers.append(run)

    def _add_those_on_the_way(self) -> None:
        """Add those where a slice may come from or wait while something happens elsewhere.

        On a machine with few memories these are all of them. On others they are those in which
        something happened to the slice last.
        """
        memories = range(len(self.tables.machine.memories))
        chip = [memory for memory in memories if not self.tables.is_dram(memory)]
        happens: dict[SliceIdx, dict[int, set[MemoryIdx]]] = defaultdict(lambda: defaultdict(set))
        for location, points in self._found.items():
            for holder in self.tables.holders(location.slice):
                for step in points:
                    happens[holder][step].add(location.memory)
        for slice_, steps in happens.items():
            recent = chip if len(chip) <= MOST_MEMORIES else []
            for step in sorted(steps):
                here = steps[step]
                for memory in recent:
                    if here != {memory} and self._are_linked(slice_, memory, here - {memory}):
                        self._point(Location(slice_, memory), step)
                if len(chip) > MOST_MEMORIES:
                    others = [memory for memory in recent if memory not in here]
                    recent = [*sorted(here), *others][:MOST_MEMORIES]

    def _are_linked(self, slice_: SliceIdx, memory: MemoryIdx, others: Iterable[MemoryIdx]) -> bool:
        transfers = self.tables.transfers
        return self.tables.fits(slice_, memory) and any(
            transfers.between(slice_, memory, other) or transfers.between(slice_, other, memory)
            for other in others
        )

    def _point(self, location: Location, step: int) -> UsePoint:
        return self._found[location].setdefault(step, UsePoint(step))
