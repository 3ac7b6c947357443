"""The families of constraints: what a plan is. The list in ``add_all`` is the table of contents."""

from spmilp.solvers.cpsat.capacity import CapacityModel
from spmilp.solvers.cpsat.multicast import add_multicasts
from spmilp.solvers.cpsat.resources import add_engines_and_links, cores_run_one_task_at_a_time
from spmilp.solvers.cpsat.variables import Literal, Number, ResidencyVars, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency


class Constraints:
    """Adds every family of constraints to one model."""

    def __init__(self, variables: Variables, capacity: CapacityModel) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables
        self._capacity = capacity

    def add_all(self) -> None:
        """Add all families; the pairs in place come before the uses that they exempt."""
        cores_run_one_task_at_a_time(self._vars)
        self._tasks_follow_their_predecessors()
        self._tasks_end_in_time()
        self._capacity.add_pairs_in_place()
        self._resident_buffers_stay()
        self._residencies_are_filled_once()
        self._transfers_read_what_is_there()
        self._reads_are_served_once()
        self._reads_find_what_is_there()
        self._remote_reads_take_longer()
        self._residencies_are_numbered_by_time()
        self._outputs_are_there_at_the_end()
        self._boxes_of_a_tensor_keep_apart()
        self._the_makespan_is_the_last_end()
        add_multicasts(self._vars)
        add_engines_and_links(self._vars)
        self._capacity.add_capacities()
        self._capacity.add_addresses()

    def _tasks_follow_their_predecessors(self) -> None:
        for task, before in zip(self._vars.tasks, self._tables.predecessors, strict=True):
            for earlier in before:
                self._model.add(task.start >= self._vars.tasks[earlier].end)

    def _tasks_end_in_time(self) -> None:
        for task, cycle in self._tables.not_after.items():
            self._model.add(self._vars.tasks[task].end <= cycle)

    def _resident_buffers_stay(self) -> None:
        """There, until all that read any of them have ended; the last may write in their place."""
        for buffer, memory in self._tables.residents():
            key = CandidateResidency(buffer, memory, 0)
            residency = self._vars.residencies.get(key)
            if residency is None:
                self._model.add_bool_or([])
                continue
            if residency.present is not self._vars.true:
                self._model.add(residency.present == 1)
            for task in self._tables.readers_of_any(buffer) if residency.end is not None else ():
                pairs = self._vars.in_place.items()
                over = [literal for pair, literal in pairs if pair[:2] == (task, key)]
                stays = self._model.add(residency.end >= self._vars.tasks[task].end)
                if over:
                    stays.only_enforce_if([~literal for literal in over])

    def _residencies_are_filled_once(self) -> None:
        """By the task that writes it, its own transfer, or a multicast; times follow from that."""
        for residency in self._vars.residencies.values():
            lifecycle, fills = residency.lifecycle, [*residency.roots.values()]
            if lifecycle.sources:
                fills.append(residency.moved)
            if lifecycle.writer is not None:
                fills.append(self._vars.tasks[lifecycle.writer].memories[residency.key.memory])
            if not lifecycle.initial and not (len(fills) == 1 and fills[0] is residency.present):
                self._model.add(sum(fills) == residency.present)
            if lifecycle.writer is not None and len(fills) > 1:
                task = self._vars.tasks[lifecycle.writer]
                here = task.memories[residency.key.memory]
                self._model.add(residency.start == task.start).only_enforce_if(here)
                self._model.add(residency.valid == task.end).only_enforce_if(here)
            self._a_transfer_has_one_source_and_one_option(residency)

    def _a_transfer_has_one_source_and_one_option(self, residency: ResidencyVars) -> None:
        """And the option begins in the memory of the source."""
        sources = residency.all_sources()
        if len(sources) > 1:
            self._model.add_exactly_one([*(literal for _, literal in sources), ~residency.moved])
        if len(residency.options) > 1:
            self._model.add_exactly_one([*residency.options.values(), ~residency.moved])
        memories = sorted({option.source for option in residency.options})
        for memory in memories if len(memories) > 1 else ():
            here = [literal for source, literal in sources if source.memory == memory]
            options = [taken for o, taken in residency.options.items() if o.source == memory]
            self._model.add(sum(here) == sum(options))
        self._copies_have_the_dimensions_of_their_engine(residency)

    def _copies_have_the_dimensions_of_their_engine(self, residency: ResidencyVars) -> None:
        slice_, transfers = residency.key.slice, self._tables.transfers
        for source, literal in residency.all_sources():
            for option, taken in residency.options.items():
                if option.source == source.memory and not transfers.can_copy(
                    option, slice_, source.slice
                ):
                    self._model.add_bool_or([~literal, ~taken])

    def _transfers_read_what_is_there(self) -> None:
        for residency in self._vars.residencies.values():
            for source, literal in residency.sources.items():
                self._is_used(source, literal, residency.start, residency.valid)
            for source, literal in residency.late_sources.items():
                self._is_used(source, literal, residency.start, None)

    def _is_used(
        self, key: CandidateResidency, literal: Literal, start: Number, end: Number | None
    ) -> None:
        """A use finds the residency valid; one that is not late finds it until its end."""
        used = self._vars.residencies[key]
        if used.present is not self._vars.true and literal is not self._vars.true:
            self._model.add_implication(literal, used.present)
        elif used.present is not self._vars.true:
            self._model.add(used.present == 1)
        if not used.lifecycle.initial:
            self._model.add(start >= used.valid).only_enforce_if(literal)
        if end is not None and used.end is not None:
            self._model.add(end <= used.end).only_enforce_if(literal)

    def _reads_are_served_once(self) -> None:
        """By a residency in the memory in which the task runs, unless cores read remotely."""
        for (task, _), read in self._vars.reads.items():
            servers = read.servers()
            if len(servers) != 1:
                self._model.add_exactly_one([literal for _, literal in servers])
            memories = self._vars.tasks[task].memories
            if self._tables.machine.remote is not None or len(memories) == 1:
                continue
            for memory, here in memories.items():
                local = [literal for key, literal in servers if key.memory == memory]
                self._model.add(sum(local) == here)

    def _reads_find_what_is_there(self) -> None:
        """The operand of a pair in place gives its bytes up when the task starts."""
        pairs: dict[tuple[int, CandidateResidency], list[Literal]] = {}
        for (task, old, _), literal in self._vars.in_place.items():
            pairs.setdefault((task, old), []).append(literal)
        for (task, position), read in self._vars.reads.items():
            times = self._vars.tasks[task]
            slice_ = self._tables.problem.tasks[task].reads[position]
            for key, literal in read.on.items():
                exempt = pairs.get((task, key), []) if key.slice == slice_ else []
                self._is_used(key, literal, times.start, None if exempt else times.end)
                end = self._vars.residencies[key].end
                if exempt and end is not None:
                    unless = [literal, *(~one for one in exempt)]
                    self._model.add(times.end <= end).only_enforce_if(unless)
            for key, literal in read.late.items():
                self._is_used(key, literal, times.start, None)

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
        extra: Number = 0
        memories = self._vars.tasks[task].memories
        sources: dict[int, list[Literal]] = {}
        for key, literal in self._vars.reads[task, position].servers():
            sources.setdefault(key.memory, []).append(literal)
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

    def _residencies_are_numbered_by_time(self) -> None:
        """By the cycle from which they are valid."""
        for key, following in self._vars.structure.successive():
            one, other = self._vars.residencies[key], self._vars.residencies[following]
            self._model.add_implication(other.present, one.present)
            if not one.lifecycle.initial:
                self._model.add(one.valid <= other.valid).only_enforce_if(other.present)

    def _outputs_are_there_at_the_end(self) -> None:
        for buffer in self._tables.problem.buffers:
            if buffer.ends_in is None:
                continue
            there = [
                residency
                for residency in self._vars.residencies.values()
                if residency.key[:2] == (buffer.index, buffer.ends_in)
            ]
            self._model.add_bool_or([self._is_kept(residency) for residency in there])

    def _is_kept(self, residency: ResidencyVars) -> Literal:
        """Return a literal that implies that a residency lasts until the makespan."""
        if residency.end is None or residency.lifecycle.open:
            return residency.present
        kept = self._vars.literal(f"{residency.key} kept")
        self._model.add_implication(kept, residency.present)
        self._model.add(residency.end >= self._vars.makespan).only_enforce_if(kept)
        return kept

    def _boxes_of_a_tensor_keep_apart(self) -> None:
        """Two residencies at places that overlap in a tensor do not exist at one time."""
        for pair in self._vars.structure.scope.conflicts:
            self._model.add_no_overlap(
                [self._capacity.interval(self._vars.residencies[key]) for key in pair]
            )

    def _the_makespan_is_the_last_end(self) -> None:
        makespan = self._vars.makespan
        for task in self._vars.tasks:
            self._model.add(makespan >= task.end)
        for residency in self._vars.residencies.values():
            if residency.lifecycle.sources or residency.lifecycle.roots:
                self._model.add(makespan >= residency.valid).only_enforce_if(residency.present)
