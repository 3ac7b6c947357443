"""The literals of a course: what is where at which step, what is stored, what is taken over."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.cpsat.ways import Way
from spmilp.solvers.residency.course import Course
from spmilp.solvers.residency.supplies import Supplies
from spmilp.solvers.residency.visits import Home, Reason, Visit, Visits
from spmilp.units import SliceIdx, TaskIdx


class Source(NamedTuple):
    """What holds a slice that is brought, and the way that it takes."""

    holder: Home
    way: Way


@dataclass(slots=True)
class Spot:
    """A visit with its literals.

    Parameters
    ----------
    there
        Whether the slice is there.
    came, stays
        Whether it has been there since the visit before, and is until the next one; ``None`` where
        there is no such visit.
    fills
        Whether it is brought from each source.
    """

    visit: Visit
    there: cp_model.IntVar
    came: cp_model.IntVar | None = None
    stays: cp_model.IntVar | None = None
    fills: dict[Source, cp_model.IntVar] = field(default_factory=dict)


class Store(NamedTuple):
    """What stores a slice when its buffer comes into being, and whether it does."""

    way: Way
    literal: cp_model.IntVar


class Takeover(NamedTuple):
    """A task that may write a result in place of an operand."""

    task: TaskIdx
    old: Home
    new: Home


class Variables:
    """All literals of one course.

    Attributes
    ----------
    spots
        Of each home, in order of steps.
    births
        Where each buffer is that comes into being on the chip.
    stores
        Of buffers, and of parts that may be stored instead of them.
    takeovers
        Whether each happens.
    """

    def __init__(self, model: cp_model.CpModel, tables: Tables, course: Course) -> None:
        self._model = model
        self._tables = tables
        self._course = course
        self._supplies = Supplies(tables)
        self._visits = Visits(tables, course)
        self.spots = {home: self._spots(visits) for home, visits in self._visits.of.items()}
        self.births = {
            home.slice: home
            for home, spots in self.spots.items()
            if spots[0].visit.reason is Reason.BORN
        }
        self._at = {
            (home, spot.visit.step): spot for home, spots in self.spots.items() for spot in spots
        }
        self.stores = dict(self._stores())
        for home, spots in self.spots.items():
            for spot in spots:
                spot.fills.update(self._fills(home, spot))
        self.takeovers = dict(self._takeovers())

    def at(self, home: Home, step: int) -> Spot:
        """Return the spot of a home at a step at which it is visited."""
        return self._at[home, step]

    def _spots(self, visits: tuple[Visit, ...]) -> list[Spot]:
        spots: list[Spot] = []
        for visit in visits:
            there = self._model.new_constant(1) if visit.is_needed else self._model.new_bool_var("")
            spot = Spot(visit, there)
            if spots:
                spot.came = spots[-1].stays = self._model.new_bool_var("")
            spots.append(spot)
        return spots

    def _stores(self) -> Iterator[tuple[SliceIdx, Store]]:
        """Yield what may be stored; at its place in a tensor a buffer lies as a whole or not."""
        dram = self._supplies.dram
        for buffer, home in self.births.items():
            is_output = self._tables.problem.buffers[buffer].ends_in == dram
            placed = is_output or self._tables.ways.at_place(buffer, dram)
            for slice_ in (buffer, *(() if placed else self._tables.parts[buffer])):
                way = self._supplies.way(slice_, buffer, home.memory, dram)
                if way is not None:
                    yield slice_, Store(way, self._model.new_bool_var(""))

    def _fills(self, home: Home, spot: Spot) -> Iterator[tuple[Source, cp_model.IntVar]]:
        if spot.visit.reason is not Reason.BORN:
            for holder in self._holders(home, spot.visit):
                way = self._supplies.way(home.slice, holder.slice, holder.memory, home.memory)
                if way is not None:
                    yield Source(holder, way), self._model.new_bool_var("")

    def _holders(self, home: Home, visit: Visit) -> Iterator[Home]:
        """Yield what a slice may be copied out of at a visit: itself or its buffer, elsewhere."""
        problem, dram = self._tables.problem, self._supplies.dram
        buffer = problem.slices[home.slice].buffer
        if problem.buffers[buffer].starts_in == dram:
            yield Home(buffer, dram)
        for slice_ in dict.fromkeys((home.slice, buffer)):
            if slice_ in self.stores:
                yield Home(slice_, dram)
            for memory in range(len(self._tables.machine.memories)):
                holder = Home(slice_, memory)
                if memory != home.memory and (holder, visit.step) in self._at:
                    yield holder

    def _takeovers(self) -> Iterator[tuple[Takeover, cp_model.IntVar]]:
        memories = self._course.memories(self._tables)
        for task in self._tables.problem.tasks:
            buffers = [self._tables.problem.slices[read].buffer for read in task.reads]
            for read, written in task.in_place:
                # A buffer of which the task also reads a part would be read while written over.
                if read >= len(self._tables.problem.buffers) or buffers.count(read) == 1:
                    memory = memories[task.index]
                    pair = Takeover(task.index, Home(read, memory), Home(written, memory))
                    yield pair, self._model.new_bool_var("")
