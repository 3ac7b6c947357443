"""The constraint program: when tasks run, where slices lie, what is stored, and addresses.

Every load and store has the cheapest transfer option between its two memories.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption, first_blocks
from spmilp.solvers.traffic.scope import BEGINNING, Location, Run, UsePoint, UsePoints
from spmilp.units import Bytes, MemoryIdx, SliceIdx, TaskIdx


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
        Whether it stays there from the use point before to this one, and from this one to the next;
        ``None`` where there is no such point.
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
            for task, slots in enumerate(use_points.scope)
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
        """Yield the stores to DRAM of buffers that begin on the chip, as a whole or in parts.

        A store leaves the memory where the buffer begins, or one in which no core works. A buffer
        that has a place in a tensor is stored as a whole or not at all.
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
            if holder.memory != self.dram and step < len(self.use_points.scope):
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


@dataclass(frozen=True, slots=True)
class Occupant:
    """A slice that lies in a memory at a step if its literal says so.

    Parameters
    ----------
    point
        Where its offset was chosen: at this use point, or at the one before.
    """

    location: Location
    point: PointVars
    literal: cp_model.IntVar


@dataclass(slots=True)
class Occupancy:
    """All that may lie in a memory at a step.

    Parameters
    ----------
    runs
        Those that may take place in this memory at this step.
    """

    memory: MemoryIdx
    step: int
    runs: list[Run] = field(default_factory=list)
    occupants: list[Occupant] = field(default_factory=list)
    in_place: list[InPlaceWrite] = field(default_factory=list)


class Occupancies:
    """Those of every memory on the chip, at each step at which it has a use point.

    These steps suffice: what lies in the memory at any other step also lies there at the next of
    these.
    """

    def __init__(self, variables: Variables) -> None:
        self._tables = variables.tables
        self._found: dict[MemoryIdx, dict[int, Occupancy]] = defaultdict(dict)
        for run in variables.runs:
            memory = self._tables.pools[run.slot.pool].memory
            self._at(memory, run.slot.step).runs.append(run)
        for location, point in variables.all_points():
            self._at(location.memory, point.use.step)
        for pair in variables.in_place:
            self._at(pair.old.memory, pair.run.slot.step).in_place.append(pair)
        steps = {memory: sorted(some) for memory, some in self._found.items()}
        for location, points in variables.points.items():
            self._add_occupants(location, points, steps[location.memory])

    def all(self) -> list[Occupancy]:
        """Return all of them, memory by memory, in order of steps."""
        return [some[step] for _, some in sorted(self._found.items()) for step in sorted(some)]

    def blocks(self, location: Location) -> int:
        """Return the blocks that a slice takes."""
        return self._tables.blocks_of(*location)

    def scratch(self, run: Run) -> int:
        """Return the blocks of scratch that a run takes."""
        size = self._tables.problem.tasks[run.task].scratch
        return self._tables.blocks(size, self._tables.pools[run.slot.pool].memory)

    def _at(self, memory: MemoryIdx, step: int) -> Occupancy:
        return self._found[memory].setdefault(step, Occupancy(memory, step))

    def _add_occupants(self, location: Location, points: list[PointVars], steps: list[int]) -> None:
        for point, following in zip(points, [*points[1:], None], strict=True):
            step = point.use.step
            here = self._at(location.memory, step)
            here.occupants.append(Occupant(location, point, point.there))
            if following is None or point.kept_after is None:
                continue
            last = bisect_right(steps, following.use.step - 1)
            for other in steps[bisect_right(steps, step) : last]:
                occupants = self._at(location.memory, other).occupants
                occupants.append(Occupant(location, point, point.kept_after))


class Offsets:
    """The first block of each slice at each use point.

    Attributes
    ----------
    scratch
        The first block of the scratch of each run.
    """

    def __init__(self, variables: Variables, occupancies: Occupancies) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables
        self._occupancies = occupancies
        self._offsets: dict[tuple[Location, int], cp_model.IntVar] = {}
        self.scratch: dict[Run, cp_model.IntVar] = {}
        for location, points in variables.points.items():
            self._choose(location, points)
        for occupancy in occupancies.all():
            self._are_apart(occupancy)

    def offset(self, location: Location, step: int) -> cp_model.IntVar:
        """Return the first block of a slice at a use point."""
        return self._offsets[location, step]

    def _choose(self, location: Location, points: list[PointVars]) -> None:
        """Give a slice an offset at each use point; while it is kept, it is the same."""
        size = self._tables.problem.slices[location.slice].bytes
        for before, point in zip([None, *points], points, strict=False):
            offset = self._new(location.memory, size)
            self._offsets[location, point.use.step] = offset
            if before is not None and point.kept_before is not None:
                same = self._model.add(offset == self._offsets[location, before.use.step])
                same.only_enforce_if(point.kept_before)

    def _new(self, memory: MemoryIdx, size: Bytes) -> cp_model.IntVar:
        ranges = [list(one) for one in first_blocks(self._tables.machine.memories[memory], size)]
        return self._model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), "")

    def _are_apart(self, occupancy: Occupancy) -> None:
        """Keep what lies in a memory at one step apart; what is overwritten counts once."""
        model, extents = self._model, []
        for occupant in occupancy.occupants:
            offset = self._offsets[occupant.location, occupant.point.use.step]
            writes = [pair for pair in occupancy.in_place if pair.old == occupant.location]
            blocks = self._occupancies.blocks(occupant.location)
            lies = self._unless_overwritten(occupant, writes)
            extents.append(model.new_optional_fixed_size_interval_var(offset, blocks, lies, ""))
            for pair in writes:
                new = self._offsets[pair.new, occupancy.step]
                own = self._occupancies.blocks(pair.new)
                happens = self._vars.in_place[pair]
                model.add(offset == new).only_enforce_if(happens)
                if blocks > own:
                    rest = offset + own, blocks - own, happens
                    extents.append(model.new_optional_fixed_size_interval_var(*rest, ""))
        for run in occupancy.runs:
            blocks = self._occupancies.scratch(run)
            if blocks:
                offset = self._new(occupancy.memory, self._tables.problem.tasks[run.task].scratch)
                self.scratch[run] = offset
                runs = self._vars.runs[run]
                extents.append(model.new_optional_fixed_size_interval_var(offset, blocks, runs, ""))
        model.add_no_overlap(extents)

    def _unless_overwritten(
        self, occupant: Occupant, writes: list[InPlaceWrite]
    ) -> cp_model.IntVar:
        """Return whether a slice has blocks of its own."""
        if not writes:
            return occupant.literal
        lies = self._model.new_bool_var("")
        overwritten = sum(self._vars.in_place[pair] for pair in writes)
        self._model.add(lies + overwritten == occupant.literal)
        return lies


class Constraints:
    """Adds every family of constraints to a model."""

    def __init__(self, variables: Variables, occupancies: Occupancies) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._slots = variables.use_points.scope
        self._vars = variables
        self._occupancies = occupancies
        self._overwritten: dict[tuple[Location, int], list[cp_model.IntVar]] = defaultdict(list)
        for pair, literal in variables.in_place.items():
            self._overwritten[pair.old, pair.run.slot.step].append(literal)

    def add_all(self) -> None:
        """Add all families."""
        self._each_task_takes_one_slot()
        self._tasks_follow_each_other()
        self._what_is_kept_is_there()
        self._what_is_there_came_from_somewhere()
        self._what_is_loaded_is_where_it_comes_from()
        self._reads_are_served()
        self._outputs_are_there_at_the_end()
        self._what_is_stored_is_there()
        self._what_is_overwritten_goes()
        self._memories_suffice()

    def _each_task_takes_one_slot(self) -> None:
        """And at each step one task runs."""
        at_step: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for task, slots in enumerate(self._slots):
            if len(slots) > 1:
                runs = {slot: self._vars.runs[Run(task, slot)] for slot in slots}
                self._model.add_exactly_one(runs.values())
                for slot, literal in runs.items():
                    at_step[slot.step].append(literal)
        for literals in at_step.values():
            self._model.add_exactly_one(literals)

    def _tasks_follow_each_other(self) -> None:
        for task, slots in enumerate(self._slots):
            for earlier in self._tables.predecessors[task]:
                latest = max(slot.step for slot in self._slots[earlier])
                for step in sorted({slot.step for slot in slots if slot.step <= latest}):
                    now = sum(self._runs_by(task, step))
                    self._model.add(now <= sum(self._runs_by(earlier, step - 1)))

    def _runs_by(self, task: TaskIdx, step: int) -> list[cp_model.IntVar]:
        """Return the runs of a task at a step or before it."""
        slots = self._slots[task]
        return [self._vars.runs[Run(task, slot)] for slot in slots if slot.step <= step]

    def _what_is_kept_is_there(self) -> None:
        for _, point in self._vars.all_points():
            for kept in (point.kept_before, point.kept_after):
                if kept is not None:
                    self._model.add_implication(kept, point.there)

    def _what_is_there_came_from_somewhere(self) -> None:
        """It was kept since the use point before, or is loaded, or is written at this step."""
        for location, point in self._vars.all_points():
            if not self._vars.use_points.is_initial(location, point.use):
                written = self._written(location, point)
                origins = [*point.there_at_start(), *point.loads_after.values(), *written]
                self._model.add(sum(origins) == point.there)

    def _written(self, location: Location, point: PointVars) -> list[cp_model.IntVar]:
        if location.slice >= len(self._tables.problem.buffers):
            return []
        return [self._vars.runs[run] for run in point.use.writers]

    def _what_is_loaded_is_where_it_comes_from(self) -> None:
        for location, point in self._vars.all_points():
            step = point.use.step
            for source, load in point.loads_before.items():
                if source.holder.memory == self._vars.dram:
                    self._comes_from_dram(source, load, step)
                else:
                    self._model.add(load <= sum(self._before_at(source.holder, location, step)))
            for source, load in point.loads_after.items():
                self._comes_after_the_task(source.holder, load, step)

    def _comes_from_dram(self, source: Source, load: cp_model.IntVar, step: int) -> None:
        """What comes from DRAM began there, or has been written and stored."""
        buffer = self._tables.problem.slices[source.holder.slice].buffer
        if self._tables.problem.buffers[buffer].starts_in != self._vars.dram:
            self._model.add_implication(load, self._vars.stored[source.holder.slice])
            writer = self._tables.writers[buffer]
            slots = () if writer is None else self._slots[writer]
            if writer is not None and any(slot.step >= step for slot in slots):
                self._model.add(load <= sum(self._runs_by(writer, step - 1)))

    def _before_at(self, holder: Location, location: Location, step: int) -> list[cp_model.IntVar]:
        """Return literals of which one holds if a slice can be passed on before a task starts.

        What is loaded before a task into a memory in which no core works may at once be loaded on
        into a memory in which cores work. All other memories only pass on what they have kept. So
        loads cannot depend on each other in a circle.
        """
        source = self._vars.at(holder, step)
        if source is None:
            return []
        use_points = self._vars.use_points
        if use_points.is_working(location.memory) and not use_points.is_working(holder.memory):
            return source.there_at_start()
        return [] if source.kept_before is None else [source.kept_before]

    def _comes_after_the_task(self, holder: Location, load: cp_model.IntVar, step: int) -> None:
        """What is loaded after a task was in its source then, or the task wrote it there.

        The task must not have written over it.
        """
        source = self._vars.at(holder, step)
        if source is None:
            return
        if step > BEGINNING:
            there = [*source.there_at_start(), *self._written(holder, source)]
            self._model.add(load <= sum(there))
        else:
            self._model.add_implication(load, source.there)
        for literal in self._overwritten[holder, step]:
            self._model.add_bool_or(load.negated(), literal.negated())

    def _reads_are_served(self) -> None:
        """A slice is read where it lies by itself, or inside its buffer."""
        for run, literal in self._vars.runs.items():
            memory = self._tables.pools[run.slot.pool].memory
            for read in self._tables.problem.tasks[run.task].reads:
                locations = (Location(holder, memory) for holder in self._tables.holders(read))
                points = (self._vars.at(location, run.slot.step) for location in locations)
                there = [one for p in points if p is not None for one in p.there_at_start()]
                self._model.add(sum(there) >= literal)

    def _outputs_are_there_at_the_end(self) -> None:
        for location in self._vars.use_points.final:
            last = self._vars.points[location][-1]
            self._model.add(sum(last.there_at_start()) >= 1)
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in == self._vars.dram and buffer.starts_in != self._vars.dram:
                stored = self._vars.stored.get(buffer.index)
                # Without a transfer to DRAM there is no plan in this scope.
                self._model.add_bool_or([] if stored is None else [stored])

    def _what_is_stored_is_there(self) -> None:
        """It is stored once, when it comes into being, as a whole or in parts."""
        stores: dict[SliceIdx, list[cp_model.IntVar]] = defaultdict(list)
        for store, literal in self._vars.stores.items():
            stores[store.slice].append(literal)
            holder = self._vars.at(store.holder, store.step)
            if holder is not None:
                self._model.add_implication(literal, holder.there)
            writer = self._tables.writers[store.holder.slice]
            if writer is not None:
                slots = [slot for slot in self._slots[writer] if slot.step == store.step]
                runs = (self._vars.runs[Run(writer, slot)] for slot in slots)
                self._model.add_bool_or(literal.negated(), *runs)
        for slice_, literals in stores.items():
            self._model.add(sum(literals) == self._vars.stored[slice_])
            buffer = self._tables.problem.slices[slice_].buffer
            if slice_ != buffer and buffer in self._vars.stored:
                self._model.add_at_most_one(self._vars.stored[slice_], self._vars.stored[buffer])

    def _what_is_overwritten_goes(self) -> None:
        """At most one result overwrites an operand, written by a task that runs, and ends it.

        The operand has a residency of its own: a part inside its buffer is never overwritten.
        """
        for (location, step), literals in self._overwritten.items():
            self._model.add_at_most_one(literals)
            old = self._vars.at(location, step)
            for literal in literals:
                self._model.add(literal <= sum([] if old is None else old.there_at_start()))
                if old is not None and old.kept_after is not None:
                    self._model.add_bool_or(literal.negated(), old.kept_after.negated())
        results: dict[tuple[Run, Location], list[cp_model.IntVar]] = defaultdict(list)
        for pair, literal in self._vars.in_place.items():
            self._model.add_implication(literal, self._vars.runs[pair.run])
            results[pair.run, pair.new].append(literal)
        for literals in results.values():
            self._model.add_at_most_one(literals)

    def _memories_suffice(self) -> None:
        """The blocks that are taken at a step are no more than there are."""
        for one in self._occupancies.all():
            capacity = self._tables.capacity[one.memory]
            taken = [self._occupancies.blocks(o.location) * o.literal for o in one.occupants]
            taken += [self._occupancies.scratch(run) * self._vars.runs[run] for run in one.runs]
            for pair in one.in_place:
                shared = min(self._occupancies.blocks(at) for at in (pair.old, pair.new))
                taken.append(-shared * self._vars.in_place[pair])
            if capacity is not None:
                self._model.add(sum(taken) <= capacity)


class Model:
    """The model of one scope, with or without addresses."""

    def __init__(self, use_points: UsePoints, *, addresses: bool) -> None:
        self.tables = use_points.tables
        self.cp = cp_model.CpModel()
        self.variables = Variables(self.cp, use_points)
        occupancies = Occupancies(self.variables)
        Constraints(self.variables, occupancies).add_all()
        self.addresses = Offsets(self.variables, occupancies) if addresses else None
        self._costs = [*self._costs_of_transfers(), *self._costs_of_tasks()]
        # The first quantity comes in steps of the greatest common divisor.
        self._grain = gcd(*(cost for cost, _ in self._costs)) or 1
        self._literals = [literal for _, literal in self._costs]
        self._parts = [cost // self._grain for cost, _ in self._costs]
        self._minimise()

    def limit(self, most: int) -> None:
        """Ask for so much of the first quantity at most."""
        total = cp_model.LinearExpr.weighted_sum(self._literals, self._parts)
        self.cp.add(total <= most // self._grain)

    def hint(self, values: Sequence[int]) -> None:
        """Begin near a solution of the model of the same scope without addresses."""
        for index, value in enumerate(values):
            self.cp.add_hint(self.cp.get_int_var_from_proto_index(index), value)

    def _costs_of_transfers(self) -> list[tuple[int, cp_model.IntVar]]:
        cheapest, variables = CheapestTransfers(self.tables), self.variables
        costs = [(cheapest.cost(s.option), literal) for s, literal in variables.stores.items()]
        for _, point in variables.all_points():
            for loads in (point.loads_before, point.loads_after):
                costs += [(cheapest.cost(s.option), load) for s, load in loads.items()]
        return costs

    def _costs_of_tasks(self) -> list[tuple[int, cp_model.IntVar]]:
        """Return the energy that runs take on their kind of core, where energy is to be small."""
        if self.tables.problem.objective.first is not Quantity.ENERGY:
            return []
        costs = []
        for run, literal in self.variables.runs.items():
            energy = self.tables.problem.tasks[run.task].energy
            kind = self.tables.pools[run.slot.pool].kind
            costs.append((energy[kind] or 0 if energy else 0, literal))
        return costs

    def _minimise(self) -> None:
        """Make the cost small, and of plans that cost the same the number of transfers."""
        weight = len(self._costs) + 1
        parts = [part * weight + 1 for part in self._parts]
        self.cp.minimize(cp_model.LinearExpr.weighted_sum(self._literals, parts))
