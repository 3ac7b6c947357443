"""The families of constraints: what a plan is. The list in ``add_all`` is the table of contents."""

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.multicast import add_multicasts
from spmilp.solvers.cpsat.resources import add_engines_and_links
from spmilp.solvers.cpsat.room import Room
from spmilp.solvers.cpsat.variables import Literal, Number, StayVars, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables


class Constraints:
    """Adds every family of constraints to one model."""

    def __init__(
        self, model: cp_model.CpModel, tables: ProblemTables, variables: Variables, room: Room
    ) -> None:
        self._model = model
        self._tables = tables
        self._vars = variables
        self._room = room

    def add_all(self) -> None:
        """Add all families; the pairs in place come before the uses that they exempt."""
        self._cores_run_one_task_at_a_time()
        self._tasks_follow_their_predecessors()
        self._room.add_pairs_in_place()
        self._stays_are_filled_once()
        self._transfers_read_what_is_there()
        self._reads_are_served_once()
        self._reads_find_what_is_there()
        self._remote_reads_take_longer()
        self._later_stays_come_later()
        self._outputs_are_there_at_the_end()
        self._boxes_of_a_tensor_keep_apart()
        self._the_makespan_is_the_last_end()
        add_multicasts(self._model, self._tables, self._vars)
        add_engines_and_links(self._model, self._tables, self._vars)
        self._room.add_capacities()
        self._room.add_addresses()

    def _cores_run_one_task_at_a_time(self) -> None:
        """The cores of a pool are alike: at most as many tasks at once as there are cores."""
        for pool in self._tables.pools:
            runs = [task.runs[pool.index] for task in self._vars.tasks if pool.index in task.runs]
            if len(pool.cores) == 1:
                self._model.add_no_overlap(runs)
            elif len(runs) > len(pool.cores):
                self._model.add_cumulative(runs, [1] * len(runs), len(pool.cores))

    def _tasks_follow_their_predecessors(self) -> None:
        for task, before in zip(self._vars.tasks, self._tables.predecessors, strict=True):
            for earlier in before:
                self._model.add(task.start >= self._vars.tasks[earlier].end)

    def _stays_are_filled_once(self) -> None:
        """By the task that writes it, its own transfer, or a multicast; times follow from that."""
        for stay in self._vars.stays.values():
            shape = stay.shape
            fills = [*stay.rides.values()]
            if shape.sources:
                fills.append(stay.moved)
            if shape.writer is not None:
                fills.append(self._vars.tasks[shape.writer].memories[shape.stay.memory])
            if not shape.initial and not (len(fills) == 1 and fills[0] is stay.present):
                self._model.add(sum(fills) == stay.present)
            if shape.writer is not None and len(fills) > 1:
                self._is_born(stay, self._vars.tasks[shape.writer].memories[shape.stay.memory])
            self._model_ways(stay)

    def _is_born(self, stay: StayVars, here: Literal) -> None:
        task = self._vars.tasks[stay.shape.writer or 0]
        self._model.add(stay.start == task.start).only_enforce_if(here)
        self._model.add(stay.valid == task.end).only_enforce_if(here)

    def _model_ways(self, stay: StayVars) -> None:
        """A transfer reads one stay and takes one way that begins in its memory."""
        arcs = [*stay.arcs.values(), *stay.late_arcs.values()]
        if len(arcs) > 1:
            self._model.add_exactly_one([*arcs, ~stay.moved])
        if len(stay.moves) > 1:
            self._model.add_exactly_one([*stay.moves.values(), ~stay.moved])
        sources = {way.source for way in stay.moves}
        for source in sorted(sources):
            if len(sources) > 1:
                arcs_here = [
                    literal
                    for family in (stay.arcs, stay.late_arcs)
                    for other, literal in family.items()
                    if other.memory == source
                ]
                moves = [literal for way, literal in stay.moves.items() if way.source == source]
                self._model.add(sum(arcs_here) == sum(moves))
        self._copies_have_the_dimensions_of_their_engine(stay)

    def _copies_have_the_dimensions_of_their_engine(self, stay: StayVars) -> None:
        ways = self._tables.transfers
        for family in (stay.arcs, stay.late_arcs):
            for source, arc in family.items():
                for way, move in stay.moves.items():
                    if way.source == source.memory and not ways.can_copy(
                        way, stay.shape.stay.slice, source.slice
                    ):
                        self._model.add_bool_or([~arc, ~move])

    def _transfers_read_what_is_there(self) -> None:
        for stay in self._vars.stays.values():
            for source, arc in stay.arcs.items():
                self._is_used(source, arc, stay.start, stay.valid)
            for source, arc in stay.late_arcs.items():
                self._is_used(source, arc, stay.start, None)

    def _is_used(
        self, stay: CandidateResidency, literal: Literal, start: Number, end: Number | None
    ) -> None:
        """A use finds the stay valid; one that is not late finds it until its end."""
        used = self._vars.stays[stay]
        if used.present is not self._vars.true and literal is not self._vars.true:
            self._model.add_implication(literal, used.present)
        elif used.present is not self._vars.true:
            self._model.add(used.present == 1)
        if not used.shape.initial:
            self._model.add(start >= used.valid).only_enforce_if(literal)
        if end is not None and used.end is not None:
            self._model.add(end <= used.end).only_enforce_if(literal)

    def _reads_are_served_once(self) -> None:
        """By a stay in the memory in which the task runs, unless cores read remotely."""
        for (task, _), read in self._vars.reads.items():
            serving = [*read.on.items(), *read.late.items()]
            if len(serving) != 1:
                self._model.add_exactly_one([literal for _, literal in serving])
            memories = self._vars.tasks[task].memories
            if self._tables.machine.remote is not None or len(memories) == 1:
                continue
            for memory, here in memories.items():
                local = [literal for stay, literal in serving if stay.memory == memory]
                self._model.add(sum(local) == here)

    def _reads_find_what_is_there(self) -> None:
        """The operand of a pair in place gives its bytes up when the task starts."""
        pairs: dict[tuple[int, CandidateResidency], list[Literal]] = {}
        for (task, old, _), literal in self._vars.in_place.items():
            pairs.setdefault((task, old), []).append(literal)
        for (task, position), read in self._vars.reads.items():
            times = self._vars.tasks[task]
            slice_ = self._tables.problem.tasks[task].reads[position]
            for stay, literal in read.on.items():
                exempt = pairs.get((task, stay), []) if stay.slice == slice_ else []
                self._is_used(stay, literal, times.start, None if exempt else times.end)
                end = self._vars.stays[stay].end
                if exempt and end is not None:
                    unless = [literal, *(~one for one in exempt)]
                    self._model.add(times.end <= end).only_enforce_if(unless)
            for stay, literal in read.late.items():
                self._is_used(stay, literal, times.start, None)

    def _remote_reads_take_longer(self) -> None:
        """A task takes its cycles in its pool, and those of each operand that lies elsewhere."""
        if self._tables.machine.remote is None:
            return
        for task, times in enumerate(self._vars.tasks):
            extra: Number = 0
            for position, read in enumerate(self._tables.problem.tasks[task].reads):
                extra += self._extra_of(task, position, read)
            for pool, here in times.pools.items():
                cycles = self._tables.cycles_on(task, pool)
                self._model.add(times.size == cycles + extra).only_enforce_if(here)

    def _extra_of(self, task: int, position: int, slice_: int) -> Number:
        """Return the extra cycles of one operand: one literal for each two memories."""
        read, extra = self._vars.reads[task, position], 0
        memories = self._vars.tasks[task].memories
        sources: dict[int, list[Literal]] = {}
        for stay, literal in (*read.on.items(), *read.late.items()):
            sources.setdefault(stay.memory, []).append(literal)
        for source, literals in sources.items():
            for local, here in memories.items():
                cycles = self._tables.remote_cycles(slice_, source, local)
                if cycles is None:
                    for literal in literals:
                        self._model.add_bool_or([~literal, ~here])
                elif cycles:
                    both = self._vars.literal(f"task{task} in {local} reads {position} in {source}")
                    self._model.add(sum(literals) + here <= 1 + both)
                    self._model.add_implication(both, here)
                    self._model.add(both <= sum(literals))
                    extra += cycles * both
        return extra

    def _later_stays_come_later(self) -> None:
        """Stays are numbered by the cycle from which they are valid."""
        for stay, following in self._vars.structure.numbers():
            one, other = self._vars.stays[stay], self._vars.stays[following]
            self._model.add_implication(other.present, one.present)
            if not one.shape.initial:
                self._model.add(one.valid <= other.valid).only_enforce_if(other.present)

    def _outputs_are_there_at_the_end(self) -> None:
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in is None:
                continue
            there = [
                stay
                for stay in self._vars.stays.values()
                if stay.shape.stay[:2] == (buffer.index, buffer.ends_in)
            ]
            kept = [self._is_kept(stay) for stay in there]
            self._model.add_bool_or(kept)

    def _is_kept(self, stay: StayVars) -> Literal:
        """Return a literal that implies that a stay lasts until the makespan."""
        if stay.end is None or stay.shape.open:
            return stay.present
        kept = self._vars.literal(f"{stay.shape.stay} kept")
        self._model.add_implication(kept, stay.present)
        self._model.add(stay.end >= self._vars.makespan).only_enforce_if(kept)
        return kept

    def _boxes_of_a_tensor_keep_apart(self) -> None:
        """Two stays at places that overlap in a tensor do not exist at one time."""
        for one, other in self._vars.structure.scope.conflicts:
            intervals = [self._room.interval(self._vars.stays[stay]) for stay in (one, other)]
            self._model.add_no_overlap(intervals)

    def _the_makespan_is_the_last_end(self) -> None:
        for task in self._vars.tasks:
            self._model.add(self._vars.makespan >= task.end)
        for stay in self._vars.stays.values():
            if stay.shape.sources or stay.shape.leaders:
                self._model.add(self._vars.makespan >= stay.valid).only_enforce_if(stay.present)
