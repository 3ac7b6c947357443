"""The literals of a model: the slots of tasks, what is where, what is stored and overwritten.

Every load and store has the cheapest transfer option between its two memories.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.formulation.tables import ProblemTables, TransferOption
from spmilp.solvers.residency.scope import Run
from spmilp.solvers.residency.use_points import BEGINNING, Location, UsePoint, UsePoints
from spmilp.units import MemoryIdx, SliceIdx


class Source(NamedTuple):
    """What holds a slice that is loaded, and the transfer."""

    holder: Location
    option: TransferOption


@dataclass(slots=True)
class PointVars:
    """The literals of a use point.

    Parameters
    ----------
    there
        Whether the slice is there.
    kept_before, kept_after
        Whether it has been there since the use point before, and is until the next one; ``None``
        where there is no such point.
    loads_before, loads_after
        Whether it is loaded from each source before the task of the step starts, or when the task
        has ended.
    """

    use: UsePoint
    there: cp_model.IntVar
    kept_before: cp_model.IntVar | None = None
    kept_after: cp_model.IntVar | None = None
    loads_before: dict[Source, cp_model.IntVar] = field(default_factory=dict)
    loads_after: dict[Source, cp_model.IntVar] = field(default_factory=dict)

    def there_at_start(self) -> list[cp_model.IntVar]:
        """Return the literals of which one holds if the slice is there when the task starts."""
        kept = [] if self.kept_before is None else [self.kept_before]
        return [*kept, *self.loads_before.values()]


class Store(NamedTuple):
    """A slice that is copied to DRAM when its buffer comes into being: out of what, and how."""

    slice: SliceIdx
    holder: Location
    step: int
    option: TransferOption


class InPlaceWrite(NamedTuple):
    """A run that may write a result in place of an operand."""

    run: Run
    old: Location
    new: Location


class Variables:
    """All literals of one scope.

    Attributes
    ----------
    runs
        Whether each task takes each of its slots.
    points
        Of each location, in order of steps.
    stored
        Whether a slice is stored at all.
    stores, in_place
        Whether each happens.
    """

    def __init__(self, model: cp_model.CpModel, use_points: UsePoints) -> None:
        self.model = model
        self.tables = use_points.tables
        self.use_points = use_points
        self._cheapest = CheapestTransfers(self.tables)
        self.dram = self._cheapest.dram
        self.runs = {
            Run(task, slot): model.new_constant(1) if len(slots) == 1 else model.new_bool_var("")
            for task, slots in enumerate(use_points.scope.slots)
            for slot in slots
        }
        self.points = {location: self._points(some) for location, some in use_points.of.items()}
        self._at = {
            (location, point.use.step): point
            for location, points in self.points.items()
            for point in points
        }
        self.stores = {store: model.new_bool_var("") for store in self._stores()}
        self.stored = {
            slice_: model.new_bool_var("")
            for slice_ in dict.fromkeys(store.slice for store in self.stores)
        }
        for (location, _), point in self._at.items():
            self._add_loads(location, point)
        self.in_place = {pair: model.new_bool_var("") for pair in self._in_place_writes()}

    def at(self, location: Location, step: int) -> PointVars | None:
        """Return the literals of a location at a step, if there is a use point."""
        return self._at.get((location, step))

    def all_points(self) -> Iterator[tuple[Location, PointVars]]:
        """Yield every use point with its location."""
        for location, points in self.points.items():
            for point in points:
                yield location, point

    def _points(self, uses: tuple[UsePoint, ...]) -> list[PointVars]:
        points: list[PointVars] = []
        for use in uses:
            point = PointVars(use, self.model.new_bool_var(""))
            if points:
                point.kept_before = points[-1].kept_after = self.model.new_bool_var("")
            points.append(point)
        return points

    def _stores(self) -> Iterator[Store]:
        """Yield the stores to DRAM of what comes into being on the chip, as a whole or in parts.

        Straight from there, or through a memory in which no core works. At its place in a tensor a
        buffer lies as a whole or not at all.
        """
        for location, point in self.all_points():
            if not point.use.writers and not self.use_points.is_initial(location, point.use):
                continue
            for slice_ in self._storable(location.slice):
                for holder in self._near(location, point.use.step):
                    option = self._cheapest.option(slice_, location.slice, holder.memory, self.dram)
                    if option is not None:
                        yield Store(slice_, holder, point.use.step, option)

    def _storable(self, buffer: SliceIdx) -> tuple[SliceIdx, ...]:
        is_output = self.tables.problem.buffers[buffer].ends_in == self.dram
        if is_output or self.tables.at_place(buffer, self.dram):
            return (buffer,)
        return (buffer, *self.tables.parts[buffer])

    def _near(self, location: Location, step: int) -> Iterator[Location]:
        """Yield a location itself, and those of the slice where no core works."""
        yield location
        for memory in range(len(self.tables.machine.memories)):
            other = Location(location.slice, memory)
            if not self.use_points.is_working(memory) and (other, step) in self._at:
                yield other

    def _add_loads(self, location: Location, point: PointVars) -> None:
        step, holders = point.use.step, self.tables.holders(location.slice)
        buffer = self.tables.problem.slices[location.slice].buffer
        begins_in_dram = self.tables.problem.buffers[buffer].starts_in == self.dram
        outside = [Location(buffer, self.dram)] if begins_in_dram else []
        outside += [Location(holder, self.dram) for holder in holders if holder in self.stored]
        inside = [
            Location(holder, memory)
            for holder in holders
            for memory in range(len(self.tables.machine.memories))
            if memory != location.memory and (Location(holder, memory), step) in self._at
        ]
        works = self.use_points.is_working(location.memory)
        is_wanted = bool(point.use.readers) or location in self.use_points.final or not works
        for holder in (*outside, *inside):
            option = self._cheapest.option(
                location.slice, holder.slice, holder.memory, location.memory
            )
            if option is None:
                continue
            if is_wanted and step > BEGINNING:
                point.loads_before[Source(holder, option)] = self.model.new_bool_var("")
            if holder.memory != self.dram and step < len(self.use_points.scope.slots):
                point.loads_after[Source(holder, option)] = self.model.new_bool_var("")

    def _in_place_writes(self) -> Iterator[InPlaceWrite]:
        problem = self.tables.problem
        for run in self.runs:
            task = problem.tasks[run.task]
            memory = self.tables.pools[run.slot.pool].memory
            buffers = [problem.slices[read].buffer for read in task.reads]
            for read, written in task.in_place:
                # A buffer of which the task also reads a part would be read while written over.
                alone = read >= len(problem.buffers) or buffers.count(read) == 1
                if alone and (Location(read, memory), run.slot.step) in self._at:
                    yield InPlaceWrite(run, Location(read, memory), Location(written, memory))


class CheapestTransfers:
    """The cheapest transfer options of one problem, in its first quantity.

    Attributes
    ----------
    dram
        Where slices wait that are not on the chip.
    """

    def __init__(self, tables: ProblemTables) -> None:
        self._tables = tables
        self._in_energy = tables.problem.objective.first is Quantity.ENERGY
        self.dram = tables.machine.drams[0].index

    def option(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> TransferOption | None:
        """Return the cheapest one that copies a slice out of what holds it; ``None`` without any.

        Of several, the one with the fewest cycles.
        """
        able = self._tables.transfers.out_of(holder, slice_, source, destination)
        return min(able, key=lambda one: (self.cost(one), one.cycles, one.engine), default=None)

    def cost(self, option: TransferOption) -> int:
        """Return what a transfer adds to the first quantity."""
        return option.energy if self._in_energy else option.traffic
