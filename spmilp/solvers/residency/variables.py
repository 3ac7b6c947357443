"""The literals of a model: who takes which turn, what is where, what is stored and taken over."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.solvers.residency.scope import Scope
from spmilp.solvers.residency.supplies import Supplies
from spmilp.solvers.residency.visits import BEGINNING, Home, Run, Visit, Visits
from spmilp.units import SliceIdx


class Source(NamedTuple):
    """What holds a slice that is brought, and the way that it takes."""

    holder: Home
    way: TransferOption


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
    before, after
        Whether it is brought from each source before the task of the step starts, or when the task
        has ended.
    """

    visit: Visit
    there: cp_model.IntVar
    came: cp_model.IntVar | None = None
    stays: cp_model.IntVar | None = None
    before: dict[Source, cp_model.IntVar] = field(default_factory=dict)
    after: dict[Source, cp_model.IntVar] = field(default_factory=dict)

    def early(self) -> list[cp_model.IntVar]:
        """Return the literals of which one holds if the slice is there when the task starts."""
        return [*([] if self.came is None else [self.came]), *self.before.values()]


class Store(NamedTuple):
    """A slice that is copied to DRAM when its buffer comes into being: out of what, which way."""

    slice: SliceIdx
    holder: Home
    step: int
    way: TransferOption


class Takeover(NamedTuple):
    """A run that may write a result in place of an operand."""

    run: Run
    old: Home
    new: Home


class Variables:
    """All literals of one scope.

    Attributes
    ----------
    runs
        Whether each task takes each of its turns.
    spots
        Of each home, in order of steps.
    stored
        Whether a slice is stored at all.
    stores, takeovers
        Whether each happens.
    """

    def __init__(
        self, model: cp_model.CpModel, tables: ProblemTables, scope: Scope, visits: Visits
    ) -> None:
        self._model = model
        self._tables = tables
        self._scope = scope
        self._supplies = Supplies(tables)
        self.visits = visits
        self.runs = {
            Run(task, turn): self._literal(len(turns) == 1)
            for task, turns in enumerate(scope.turns)
            for turn in turns
        }
        self.spots = {home: self._spots(visits) for home, visits in self.visits.of.items()}
        self._at = {
            (home, spot.visit.step): spot for home, spots in self.spots.items() for spot in spots
        }
        self.stores = {store: model.new_bool_var("") for store in self._stores()}
        self.stored = {
            slice_: model.new_bool_var("")
            for slice_ in dict.fromkeys(store.slice for store in self.stores)
        }
        for (home, _), spot in self._at.items():
            self._may_be_brought(home, spot)
        self.takeovers = {pair: model.new_bool_var("") for pair in self._takeovers()}

    def at(self, home: Home, step: int) -> Spot | None:
        """Return the spot of a home at a step, if it is visited then."""
        return self._at.get((home, step))

    def _literal(self, is_true: bool) -> cp_model.IntVar:
        return self._model.new_constant(1) if is_true else self._model.new_bool_var("")

    def _spots(self, visits: tuple[Visit, ...]) -> list[Spot]:
        spots: list[Spot] = []
        for visit in visits:
            spot = Spot(visit, self._model.new_bool_var(""))
            if spots:
                spot.came = spots[-1].stays = self._model.new_bool_var("")
            spots.append(spot)
        return spots

    def _stores(self) -> Iterator[Store]:
        """Yield the ways to DRAM of what comes into being on the chip, as a whole or in parts.

        Straight from there, or through a memory in which no core works. At its place in a tensor a
        buffer lies as a whole or not at all.
        """
        for home, spots in self.spots.items():
            for spot in spots:
                is_given = home in self.visits.given and spot.visit.step == BEGINNING
                if spot.visit.writers or is_given:
                    for slice_ in self._storable(home.slice):
                        for holder in self._near(home, spot.visit.step):
                            way = self._supplies.store(slice_, home.slice, holder.memory)
                            if way is not None:
                                yield Store(slice_, holder, spot.visit.step, way)

    def _storable(self, buffer: SliceIdx) -> tuple[SliceIdx, ...]:
        dram = self._supplies.dram
        is_output = self._tables.problem.buffers[buffer].ends_in == dram
        if is_output or self._tables.at_place(buffer, dram):
            return (buffer,)
        return (buffer, *self._tables.parts[buffer])

    def _near(self, home: Home, step: int) -> Iterator[Home]:
        """Yield a home itself, and those of the slice where no core works."""
        yield home
        for memory in range(len(self._tables.machine.memories)):
            other = Home(home.slice, memory)
            if not self.visits.is_working(memory) and (other, step) in self._at:
                yield other

    def _may_be_brought(self, home: Home, spot: Spot) -> None:
        dram, step = self._supplies.dram, spot.visit.step
        buffer = self._tables.problem.slices[home.slice].buffer
        begins_in_dram = self._tables.problem.buffers[buffer].starts_in == dram
        outside = [Home(buffer, dram)] if begins_in_dram else []
        outside += [Home(s, dram) for s in self.visits.related(home.slice) if s in self.stored]
        inside = [
            Home(slice_, memory)
            for slice_ in self.visits.related(home.slice)
            for memory in range(len(self._tables.machine.memories))
            if memory != home.memory and (Home(slice_, memory), step) in self._at
        ]
        works = self.visits.is_working(home.memory)
        is_wanted = bool(spot.visit.readers) or home in self.visits.kept or not works
        for holder in (*outside, *inside):
            way = self._supplies.way(home.slice, holder.slice, holder.memory, home.memory)
            if way is None:
                continue
            if is_wanted and step > BEGINNING:
                spot.before[Source(holder, way)] = self._model.new_bool_var("")
            if holder.memory != dram and step < len(self._scope.turns):
                spot.after[Source(holder, way)] = self._model.new_bool_var("")

    def _takeovers(self) -> Iterator[Takeover]:
        for run in self.runs:
            task = self._tables.problem.tasks[run.task]
            memory = self._tables.pools[run.turn.pool].memory
            buffers = [self._tables.problem.slices[read].buffer for read in task.reads]
            for read, written in task.in_place:
                # A buffer of which the task also reads a part would be read while written over.
                alone = read >= len(self._tables.problem.buffers) or buffers.count(read) == 1
                if alone and (Home(read, memory), run.turn.step) in self._at:
                    yield Takeover(run, Home(read, memory), Home(written, memory))
