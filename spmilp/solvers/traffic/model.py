"""The constraint program: when tasks run, where slices lie, and what is stored.

Every load and store has the cheapest transfer option between its two memories.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.exact.formulation.tables import TransferOption
from spmilp.solvers.traffic.scope import BEGINNING, Location, Run, UsePoint, UsePoints
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


class Source(NamedTuple):
    """What holds a slice that is loaded, and the transfer."""

    holder: Location
    option: TransferOption


@dataclass(slots=True)
class PointVars:
    """The literals of a use point.

    The slice is ``there``; it stays from the use point before to this one (``kept_before``), and
    from this one to the next (``kept_after``), ``None`` where there is no such point. It is loaded
    from each source before the task of the step starts (``loads_before``), or when it has ended
    (``loads_after``).
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

    ``dram`` is where slices wait that are not on the chip. ``runs`` say whether each task takes
    each of its slots; ``points`` are those of each location, in order of steps. ``stored`` says
    whether a slice is stored at all, ``stores`` and ``in_place`` whether each happens.
    """

    def __init__(self, model: cp_model.CpModel, use_points: UsePoints) -> None:
        self.model = model
        self.tables = use_points.tables
        self.use_points = use_points
        self.dram = self.tables.machine.drams[0].index
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

    def cost(self, option: TransferOption) -> int:
        """Return what a transfer adds to the first quantity."""
        in_energy = self.tables.problem.objective.first is Quantity.ENERGY
        return option.energy if in_energy else option.traffic

    def _cheapest(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> TransferOption | None:
        """Return the cheapest transfer of a slice out of what holds it, if there is any.

        Of several, the one with the fewest cycles.
        """
        able = self.tables.transfers.out_of(holder, slice_, source, destination)
        return min(able, key=lambda one: (self.cost(one), one.cycles, one.engine), default=None)

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
                    option = self._cheapest(slice_, location.slice, holder.memory, self.dram)
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
            option = self._cheapest(location.slice, holder.slice, holder.memory, location.memory)
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


class Constraints:
    """Adds every family of constraints to a model."""

    def __init__(self, variables: Variables, capacity: Sequence[int | None]) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._slots = variables.use_points.scope
        self._vars = variables
        self._capacity = capacity
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
        """The blocks that are taken in a memory at a step are no more than there are.

        The steps at which something is used there suffice: what lies in the memory at any other
        step also lies there at the next of these. What is overwritten counts once.
        """
        blocks = self._tables.blocks_of
        taken: dict[MemoryIdx, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for run, runs in self._vars.runs.items():
            memory = self._tables.pools[run.slot.pool].memory
            scratch = self._tables.blocks(self._tables.problem.tasks[run.task].scratch, memory)
            taken[memory][run.slot.step].append(scratch * runs)
        for location, point in self._vars.all_points():
            taken[location.memory][point.use.step].append(blocks(*location) * point.there)
        steps = {memory: sorted(some) for memory, some in taken.items()}
        for location, points in self._vars.points.items():
            own = steps[location.memory]
            for point, following in pairwise(points):
                kept, first, last = point.kept_after, point.use.step, following.use.step
                between = own[bisect_right(own, first) : bisect_left(own, last)]
                if kept is not None:
                    for step in between:
                        taken[location.memory][step].append(blocks(*location) * kept)
        for pair, overwrites in self._vars.in_place.items():
            shared = min(blocks(*pair.old), blocks(*pair.new))
            taken[pair.old.memory][pair.run.slot.step].append(-shared * overwrites)
        for memory, at_steps in taken.items():
            capacity = self._capacity[memory]
            if capacity is not None:
                for terms in at_steps.values():
                    self._model.add(sum(terms) <= capacity)


class Model:
    """The model of one scope; ``capacity`` of each memory in blocks, ``None`` without limit."""

    def __init__(self, use_points: UsePoints, capacity: Sequence[int | None]) -> None:
        self.tables = use_points.tables
        self.cp = cp_model.CpModel()
        self.variables = Variables(self.cp, use_points)
        Constraints(self.variables, capacity).add_all()
        self._costs = [*self._costs_of_transfers(), *self._costs_of_tasks()]
        # The first quantity comes in steps of the greatest common divisor.
        self._grain = gcd(*(cost for cost, _ in self._costs)) or 1
        self._literals = [literal for _, literal in self._costs]
        self._parts = [cost // self._grain for cost, _ in self._costs]
        # Of plans that cost the same, those with the fewest transfers are best.
        weight = len(self._costs) + 1
        parts = [part * weight + 1 for part in self._parts]
        self.cp.minimize(cp_model.LinearExpr.weighted_sum(self._literals, parts))

    def limit(self, most: int) -> None:
        """Ask for so much of the first quantity at most."""
        total = cp_model.LinearExpr.weighted_sum(self._literals, self._parts)
        self.cp.add(total <= most // self._grain)

    def _costs_of_transfers(self) -> list[tuple[int, cp_model.IntVar]]:
        variables = self.variables
        costs = [(variables.cost(store.option), one) for store, one in variables.stores.items()]
        for _, point in variables.all_points():
            for loads in (point.loads_before, point.loads_after):
                costs += [(variables.cost(s.option), load) for s, load in loads.items()]
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
