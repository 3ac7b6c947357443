"""What holds in every plan of a course, addresses left aside."""

from collections import defaultdict
from collections.abc import Iterator

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.residency.course import Course
from spmilp.solvers.residency.room import Room
from spmilp.solvers.residency.variables import Spot, Variables
from spmilp.solvers.residency.visits import Home, Reason


class Constraints:
    """Adds every family of constraints to the model of a course."""

    def __init__(self, tables: Tables, course: Course, variables: Variables, room: Room) -> None:
        self._tables = tables
        self._course = course
        self._vars = variables
        self._room = room

    def add_all(self, model: cp_model.CpModel) -> None:
        """Add all families."""
        self._what_stays_is_there(model)
        self._what_is_there_came_from_somewhere(model)
        self._sources_have_what_they_give(model)
        self._reads_are_served(model)
        self._outputs_are_stored(model)
        self._what_is_stored_is_there(model)
        self._what_is_taken_over_goes(model)
        self._memories_suffice(model)

    def _what_stays_is_there(self, model: cp_model.CpModel) -> None:
        for spot in self._all_spots():
            for kept in (spot.came, spot.stays):
                if kept is not None:
                    model.add_implication(kept, spot.there)

    def _what_is_there_came_from_somewhere(self, model: cp_model.CpModel) -> None:
        """A slice that is not born at a visit has stayed since the last one, or is brought."""
        for spot in self._all_spots():
            if spot.visit.reason is not Reason.BORN:
                came = [] if spot.came is None else [spot.came]
                model.add(sum([*came, *spot.fills.values()]) == spot.there)

    def _sources_have_what_they_give(self, model: cp_model.CpModel) -> None:
        for spot in self._all_spots():
            for source, fill in spot.fills.items():
                store = self._vars.stores.get(source.holder.slice)
                if source.holder.memory in self._room.memories:
                    given = self._vars.at(source.holder, spot.visit.step)
                    self._gives(model, fill, spot, given, source.holder)
                elif store is not None:
                    model.add_implication(fill, store.literal)

    def _gives(
        self, model: cp_model.CpModel, fill: cp_model.IntVar, spot: Spot, given: Spot, holder: Home
    ) -> None:
        """Let a slice come from another memory: before the task only what has been there."""
        after = spot.visit.reason is Reason.PASSES
        if not (after and given.visit.reason in (Reason.BORN, Reason.READ)):
            model.add_bool_or(fill.negated(), *([] if given.came is None else [given.came]))
            return
        model.add_implication(fill, given.there)
        for pair, literal in self._vars.takeovers.items():
            if pair.old == holder and self._course.steps[pair.task] == spot.visit.step:
                model.add_bool_or(fill.negated(), literal.negated())

    def _reads_are_served(self, model: cp_model.CpModel) -> None:
        """A slice is read where it lies by itself, or inside its buffer."""
        memories = self._course.memories(self._tables)
        for step, index in enumerate(self._course.order):
            for read in self._tables.problem.tasks[index].reads:
                buffer = self._tables.problem.slices[read].buffer
                if read != buffer:
                    homes = (Home(slice_, memories[index]) for slice_ in (read, buffer))
                    model.add_bool_or(
                        self._vars.at(home, step).there
                        for home in homes
                        if home in self._vars.spots
                    )

    def _outputs_are_stored(self, model: cp_model.CpModel) -> None:
        dram = self._tables.machine.drams[0].index
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in == dram and buffer.starts_in != dram:
                store = self._vars.stores.get(buffer.index)
                # Without a way to DRAM no plan of this course exists.
                model.add_bool_or([] if store is None else [store.literal])

    def _what_is_stored_is_there(self, model: cp_model.CpModel) -> None:
        for slice_, store in self._vars.stores.items():
            buffer = self._tables.problem.slices[slice_].buffer
            born = self._vars.spots[self._vars.births[buffer]][0]
            model.add_implication(store.literal, born.there)
            whole = self._vars.stores.get(buffer)
            if slice_ != buffer and whole is not None:
                model.add_at_most_one(store.literal, whole.literal)

    def _what_is_taken_over_goes(self, model: cp_model.CpModel) -> None:
        """An operand is written over by one result at most, and is gone then."""
        shared: dict[tuple[Home, int], list[cp_model.IntVar]] = defaultdict(list)
        for pair, literal in self._vars.takeovers.items():
            step = self._course.steps[pair.task]
            old = self._vars.at(pair.old, step)
            model.add_implication(literal, old.there)
            if old.stays is not None:
                model.add_bool_or(literal.negated(), old.stays.negated())
            shared[pair.old, step].append(literal)
            shared[pair.new, step].append(literal)
        for literals in shared.values():
            model.add_at_most_one(literals)

    def _memories_suffice(self, model: cp_model.CpModel) -> None:
        """The blocks that are taken at a step are no more than there are."""
        for crowd in self._room.crowds():
            capacity = self._tables.capacity[crowd.memory]
            taken = [self._room.blocks(one.home) * one.literal for one in crowd.tenants]
            for pair, literal in crowd.takeovers:
                shared = min(self._room.blocks(home) for home in (pair.old, pair.new))
                taken.append(-shared * literal)
            if capacity is not None:
                model.add(sum(taken) + self._room.scratch(crowd) <= capacity)

    def _all_spots(self) -> Iterator[Spot]:
        for spots in self._vars.spots.values():
            yield from spots
