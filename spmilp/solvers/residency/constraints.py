"""What holds in every plan of a scope, addresses left aside."""

from collections import defaultdict
from collections.abc import Iterator

from ortools.sat.python import cp_model

from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.room import Room
from spmilp.solvers.residency.scope import Scope
from spmilp.solvers.residency.variables import Source, Spot, Variables
from spmilp.solvers.residency.visits import BEGINNING, Home, Run
from spmilp.units import SliceIdx, TaskIdx


class Constraints:
    """Adds every family of constraints to a model."""

    def __init__(
        self, tables: ProblemTables, scope: Scope, variables: Variables, room: Room
    ) -> None:
        self._tables = tables
        self._scope = scope
        self._vars = variables
        self._room = room
        self._dram = tables.machine.drams[0].index
        self._taken_over: dict[tuple[Home, int], list[cp_model.IntVar]] = defaultdict(list)
        for pair, literal in variables.takeovers.items():
            self._taken_over[pair.old, pair.run.turn.step].append(literal)

    def add_all(self, model: cp_model.CpModel) -> None:
        """Add all families."""
        self._each_task_takes_one_turn(model)
        self._tasks_follow_each_other(model)
        self._what_stays_is_there(model)
        self._what_is_there_came_from_somewhere(model)
        self._what_is_brought_is_where_it_comes_from(model)
        self._reads_are_served(model)
        self._what_must_be_at_the_end_is(model)
        self._what_is_stored_is_there(model)
        self._what_is_taken_over_goes(model)
        self._memories_suffice(model)

    def _each_task_takes_one_turn(self, model: cp_model.CpModel) -> None:
        """And at each step one task runs."""
        at_step: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for task, turns in enumerate(self._scope.turns):
            if len(turns) > 1:
                runs = {turn: self._vars.runs[Run(task, turn)] for turn in turns}
                model.add_exactly_one(runs.values())
                for turn, literal in runs.items():
                    at_step[turn.step].append(literal)
        for literals in at_step.values():
            model.add_exactly_one(literals)

    def _tasks_follow_each_other(self, model: cp_model.CpModel) -> None:
        for task, turns in enumerate(self._scope.turns):
            for earlier in self._tables.predecessors[task]:
                latest = max(turn.step for turn in self._scope.turns[earlier])
                for step in sorted({turn.step for turn in turns if turn.step <= latest}):
                    now = sum(self._runs_by(task, step))
                    model.add(now <= sum(self._runs_by(earlier, step - 1)))

    def _runs_by(self, task: TaskIdx, step: int) -> list[cp_model.IntVar]:
        """Return the runs of a task at a step or before it."""
        turns = self._scope.turns[task]
        return [self._vars.runs[Run(task, turn)] for turn in turns if turn.step <= step]

    def _what_stays_is_there(self, model: cp_model.CpModel) -> None:
        for _, spot in self._all_spots():
            for kept in (spot.came, spot.stays):
                if kept is not None:
                    model.add_implication(kept, spot.there)

    def _what_is_there_came_from_somewhere(self, model: cp_model.CpModel) -> None:
        """A slice has stayed since the visit before, or is brought, or is written at this step."""
        for home, spot in self._all_spots():
            if home not in self._vars.visits.given or spot.visit.step != BEGINNING:
                ways = [*spot.early(), *spot.after.values(), *self._born(home, spot)]
                model.add(sum(ways) == spot.there)

    def _born(self, home: Home, spot: Spot) -> list[cp_model.IntVar]:
        if home.slice >= len(self._tables.problem.buffers):
            return []
        return [self._vars.runs[run] for run in spot.visit.writers]

    def _what_is_brought_is_where_it_comes_from(self, model: cp_model.CpModel) -> None:
        for home, spot in self._all_spots():
            for source, fill in spot.before.items():
                if source.holder.memory == self._dram:
                    self._comes_from_dram(model, source, fill, spot.visit.step)
                else:
                    model.add(fill <= sum(self._early_at(source.holder, home, spot.visit.step)))
            for source, fill in spot.after.items():
                self._comes_after_the_task(model, source.holder, fill, spot.visit.step)

    def _comes_from_dram(
        self, model: cp_model.CpModel, source: Source, fill: cp_model.IntVar, step: int
    ) -> None:
        """What comes from DRAM began there, or has been written and stored."""
        buffer = self._tables.problem.slices[source.holder.slice].buffer
        if self._tables.problem.buffers[buffer].starts_in != self._dram:
            model.add_implication(fill, self._vars.stored[source.holder.slice])
            writer = self._tables.writers[buffer]
            turns = () if writer is None else self._scope.turns[writer]
            if writer is not None and any(turn.step >= step for turn in turns):
                model.add(fill <= sum(self._runs_by(writer, step - 1)))

    def _early_at(self, holder: Home, home: Home, step: int) -> list[cp_model.IntVar]:
        """Return of which literals one holds if a slice can be given before a task starts.

        A memory in which no core works may pass on at once what it is brought to those in which
        some do, and no other: so nothing goes round in a circle.
        """
        given = self._vars.at(holder, step)
        if given is None:
            return []
        visits = self._vars.visits
        if visits.is_working(home.memory) and not visits.is_working(holder.memory):
            return given.early()
        return [] if given.came is None else [given.came]

    def _comes_after_the_task(
        self, model: cp_model.CpModel, holder: Home, fill: cp_model.IntVar, step: int
    ) -> None:
        """What comes after a task was there when it ran, or it wrote it, and not over it."""
        given = self._vars.at(holder, step)
        if given is None:
            return
        if step > BEGINNING:
            model.add(fill <= sum([*given.early(), *self._born(holder, given)]))
        else:
            model.add_implication(fill, given.there)
        for literal in self._taken_over[holder, step]:
            model.add_bool_or(fill.negated(), literal.negated())

    def _reads_are_served(self, model: cp_model.CpModel) -> None:
        """A slice is read where it lies by itself, or inside its buffer."""
        for run, literal in self._vars.runs.items():
            memory = self._tables.pools[run.turn.pool].memory
            for read in self._tables.problem.tasks[run.task].reads:
                homes = (Home(slice_, memory) for slice_ in self._vars.visits.related(read))
                spots = (self._vars.at(home, run.turn.step) for home in homes)
                early = [one for spot in spots if spot is not None for one in spot.early()]
                model.add(sum(early) >= literal)

    def _what_must_be_at_the_end_is(self, model: cp_model.CpModel) -> None:
        for home in self._vars.visits.kept:
            model.add(sum(self._vars.spots[home][-1].early()) >= 1)
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in == self._dram and buffer.starts_in != self._dram:
                stored = self._vars.stored.get(buffer.index)
                # Without a way to DRAM there is no plan in this scope.
                model.add_bool_or([] if stored is None else [stored])

    def _what_is_stored_is_there(self, model: cp_model.CpModel) -> None:
        """It is stored once, when it comes into being, as a whole or in parts."""
        stores: dict[SliceIdx, list[cp_model.IntVar]] = defaultdict(list)
        for store, literal in self._vars.stores.items():
            stores[store.slice].append(literal)
            holder = self._vars.at(store.holder, store.step)
            if holder is not None:
                model.add_implication(literal, holder.there)
            writer = self._tables.writers[store.holder.slice]
            if writer is not None:
                turns = [turn for turn in self._scope.turns[writer] if turn.step == store.step]
                runs = (self._vars.runs[Run(writer, turn)] for turn in turns)
                model.add_bool_or(literal.negated(), *runs)
        for slice_, literals in stores.items():
            model.add(sum(literals) == self._vars.stored[slice_])
            buffer = self._tables.problem.slices[slice_].buffer
            if slice_ != buffer and buffer in self._vars.stored:
                model.add_at_most_one(self._vars.stored[slice_], self._vars.stored[buffer])

    def _what_is_taken_over_goes(self, model: cp_model.CpModel) -> None:
        """An operand is written over by one result at most, by a task that runs, and is gone then.

        It lies there by itself, for what lies inside its buffer is not written over.
        """
        for (home, step), literals in self._taken_over.items():
            model.add_at_most_one(literals)
            old = self._vars.at(home, step)
            for literal in literals:
                model.add(literal <= sum([] if old is None else old.early()))
                if old is not None and old.stays is not None:
                    model.add_bool_or(literal.negated(), old.stays.negated())
        results: dict[tuple[Run, Home], list[cp_model.IntVar]] = defaultdict(list)
        for pair, literal in self._vars.takeovers.items():
            model.add_implication(literal, self._vars.runs[pair.run])
            results[pair.run, pair.new].append(literal)
        for literals in results.values():
            model.add_at_most_one(literals)

    def _memories_suffice(self, model: cp_model.CpModel) -> None:
        """The blocks that are taken at a step are no more than there are."""
        for crowd in self._room.crowds():
            capacity = self._tables.capacity[crowd.memory]
            taken = [self._room.blocks(one.home) * one.literal for one in crowd.tenants]
            taken += [self._room.scratch(run) * self._vars.runs[run] for run in crowd.runs]
            for pair in crowd.takeovers:
                shared = min(self._room.blocks(home) for home in (pair.old, pair.new))
                taken.append(-shared * self._vars.takeovers[pair])
            if capacity is not None:
                model.add(sum(taken) <= capacity)

    def _all_spots(self) -> Iterator[tuple[Home, Spot]]:
        for home, spots in self._vars.spots.items():
            for spot in spots:
                yield home, spot
