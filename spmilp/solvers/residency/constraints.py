"""What holds in every plan of a scope, addresses left aside."""

from collections import defaultdict

from ortools.sat.python import cp_model

from spmilp.solvers.residency.occupancy import Occupancies
from spmilp.solvers.residency.scope import Run
from spmilp.solvers.residency.use_points import BEGINNING, Location
from spmilp.solvers.residency.variables import PointVars, Source, Variables
from spmilp.units import SliceIdx, TaskIdx


class Constraints:
    """Adds every family of constraints to a model."""

    def __init__(self, variables: Variables, occupancies: Occupancies) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._slots = variables.use_points.scope.slots
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
        """Return of which literals one holds if a slice can be passed on before a task starts.

        A memory in which no core works may pass on at once what is loaded into it to those in which
        some do, and no other: so nothing goes round in a circle.
        """
        source = self._vars.at(holder, step)
        if source is None:
            return []
        use_points = self._vars.use_points
        if use_points.is_working(location.memory) and not use_points.is_working(holder.memory):
            return source.there_at_start()
        return [] if source.kept_before is None else [source.kept_before]

    def _comes_after_the_task(self, holder: Location, load: cp_model.IntVar, step: int) -> None:
        """What comes after a task was there when it ran, or it wrote it, and not over it."""
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
        """One result at most overwrites an operand, by a task that runs, and then that is gone.

        It lies there by itself, for what lies inside its buffer is not written over.
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
