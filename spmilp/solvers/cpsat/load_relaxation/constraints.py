"""Where what is loaded or read was before, and what a memory keeps for the tasks that will read it.

It was in a DRAM, in another memory, or was written there.
"""

from collections import defaultdict
from collections.abc import Mapping

from spmilp.solvers.cpsat.load_relaxation.loads import DRAM, ELSEWHERE, Load, LoadKey, Loads
from spmilp.solvers.cpsat.strengthen import Demand
from spmilp.solvers.cpsat.variables import Literal, Number
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


class Precedence:
    """Constraints on the order of loads, stores, and the tasks that write and read.

    Attributes
    ----------
    local
        For each read and each memory in which its task may run: whether it does so, and reads what
        lies in that very memory.
    """

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._vars = loads.variables
        self._model = loads.variables.model
        self._tables = loads.tables
        self._first: dict[SliceIdx, tuple[Number, list[Literal]]] = {}
        self._with_buffer: dict[tuple[SliceIdx, MemoryIdx], Literal] = {}
        self.local: dict[tuple[TaskIdx, SliceIdx, MemoryIdx], Literal] = {}

    def add(self) -> None:
        """Add all of them."""
        self._loads_follow_their_origin()
        self._stores_follow_the_writer()
        self._reads_find_their_slice()

    def _loads_follow_their_origin(self) -> None:
        for key, load in self._loads.into.items():
            writer = self._tables.writers[self._loads.buffer(key.slice)]
            if writer is not None:
                end = self._vars.tasks[writer].end
                self._model.add(load.start >= end).only_enforce_if(load.present)
            if self._begins_in_dram(key.slice):
                if ELSEWHERE in load.origins:
                    taken = load.origins[ELSEWHERE].taken
                    self._came_out_of_dram(key.slice, load.start, taken)
            elif DRAM in load.origins:
                self._was_stored(key.slice, load)

    def _begins_in_dram(self, slice_: SliceIdx) -> bool:
        starts = self._tables.problem.buffers[self._loads.buffer(slice_)].starts_in
        return starts is not None and self._tables.is_dram(starts)

    def _came_out_of_dram(self, slice_: SliceIdx, start: Number, literal: Literal) -> None:
        """What comes from elsewhere, or is read there, came out of a DRAM before."""
        if slice_ not in self._first:
            self._first[slice_] = self._first_out_of_dram(slice_)
        first, choices = self._first[slice_]
        self._model.add_bool_or([*choices, ~literal])
        self._model.add(start >= first).only_enforce_if(literal)

    def _first_out_of_dram(self, slice_: SliceIdx) -> tuple[Number, list[Literal]]:
        first = self._vars.cycle(f"slice{slice_} first out of DRAM")
        holders = {slice_, self._loads.buffer(slice_)}
        choices = []
        for key, load in self._loads.into.items():
            if key.slice in holders and DRAM in load.origins:
                is_first = self._vars.literal(f"{key} first out of DRAM")
                self._model.add_implication(is_first, load.origins[DRAM].taken)
                self._model.add(first >= load.valid).only_enforce_if(is_first)
                choices.append(is_first)
        return first, choices

    def _was_stored(self, slice_: SliceIdx, load: Load) -> None:
        """What comes out of a DRAM where it was not at first was stored before."""
        taken, stores = load.origins[DRAM].taken, self._loads.stores
        holders = [holder for holder in self._tables.holders(slice_) if holder in stores]
        found = []
        for holder in holders:
            this = taken
            if len(holders) > 1:
                this = self._vars.literal(f"slice{slice_} stored as slice{holder}")
            self._model.add_implication(this, stores[holder].present)
            self._model.add(load.start >= stores[holder].valid).only_enforce_if(this)
            found.append(this)
        if found != [taken]:
            self._model.add_bool_or([*found, ~taken])

    def _stores_follow_the_writer(self) -> None:
        for slice_, store in self._loads.stores.items():
            buffer = self._loads.buffer(slice_)
            writer = self._tables.writers[buffer]
            if writer is not None:
                self._model.add(store.start >= self._vars.tasks[writer].end)
            self._model.add(self._vars.makespan >= store.valid).only_enforce_if(store.present)
            ends = self._tables.problem.buffers[buffer].ends_in
            if slice_ == buffer and ends is not None and self._tables.is_dram(ends):
                self._model.add(store.present == 1)

    def _reads_find_their_slice(self) -> None:
        """Of private slices :class:`Retention` says more."""
        reads_remotely = self._tables.machine.remote is not None
        for task in self._tables.problem.tasks:
            times = self._vars.tasks[task.index]
            extra: Number = 0
            for read in task.reads:
                for memory, here in times.memories.items():
                    local = here
                    if reads_remotely:
                        local = self._vars.literal(f"task{task.index} reads {read} here")
                        extra += self._read_remotely(task.index, read, memory, local)
                    self.local[task.index, read, memory] = local
                    if not self._loads.is_private(read, memory):
                        self._read_locally(times.start, read, memory, local)
            if reads_remotely:
                for pool, here in times.pools.items():
                    least = self._tables.cycles_on(task.index, pool)
                    self._model.add(times.size >= least + extra).only_enforce_if(here)

    def _read_remotely(
        self, task: TaskIdx, read: SliceIdx, memory: MemoryIdx, local: Literal
    ) -> Number:
        """Return the least cycles that reading elsewhere adds, if the read is not local."""
        here = self._vars.tasks[task].memories[memory]
        cycles = [
            found
            for holder in self._tables.holders(read)
            for other in self._loads.candidates.of(holder)
            if other != memory
            for found in (self._tables.remote_cycles(read, other, memory),)
            if found is not None
        ]
        self._model.add_implication(local, here)
        if not cycles:
            self._model.add_implication(here, local)
            return 0
        away = self._vars.literal(f"task{task} reads slice{read} away from memory{memory}")
        self._model.add(away + local == here)
        if self._begins_in_dram(read):
            self._came_out_of_dram(read, self._vars.tasks[task].start, away)
        return min(cycles) * away

    def _read_locally(
        self, start: Number, read: SliceIdx, memory: MemoryIdx, local: Literal
    ) -> None:
        """The slice or its buffer was loaded here before, or began here."""
        buffer = self._loads.buffer(read)
        if self._tables.problem.buffers[buffer].starts_in == memory:
            return
        writer = self._tables.writers[buffer]
        needed = [local]
        if writer is not None and memory in self._vars.tasks[writer].memories:
            needed.append(~self._vars.tasks[writer].memories[memory])
        keys = [LoadKey(holder, memory, None) for holder in self._tables.holders(read)]
        able = [key for key in keys if key in self._loads.into]
        if not able:
            self._model.add_bool_or([~literal for literal in needed])
        for key in able:
            conditions = list(needed)
            if len(able) > 1:
                with_buffer = self._comes_with_its_buffer(read, memory)
                conditions.append(with_buffer if key.slice == buffer else ~with_buffer)
            load = self._loads.into[key]
            self._model.add_bool_or([load.present, *(~literal for literal in conditions)])
            self._model.add(start >= load.valid).only_enforce_if(conditions)

    def _comes_with_its_buffer(self, read: SliceIdx, memory: MemoryIdx) -> Literal:
        key = read, memory
        if key not in self._with_buffer:
            name = f"slice{read} in memory{memory} with its buffer"
            self._with_buffer[key] = self._vars.literal(name)
        return self._with_buffer[key]


class Retention:
    """For each read of a private slice: since when its bytes have lain in the memory.

    Of a plan, look at the residency that serves the read. Either the task is the first that reads
    it, and the residency is as old as the load that fills it, or as the end of the task that wrote
    it; or another task there read it before, and since the end of the last such task the bytes have
    been kept. Each task and each writer is followed by one next reader at most. So the memory has
    the slice's bytes from then until the task starts (where cores read remotely, until it ends, for
    then the working sets of tasks leave operands out). One residency counts at no cycle twice, for
    between two of its readers there is none.
    """

    def __init__(
        self, loads: Loads, local: Mapping[tuple[TaskIdx, SliceIdx, MemoryIdx], Literal]
    ) -> None:
        self._loads = loads
        self._vars = loads.variables
        self._model = loads.variables.model
        self._tables = loads.tables
        self._local = local
        self.demands: list[Demand] = []

    def add(self) -> None:
        """Add the constraints, and note the demands on the memories."""
        for slice_, memory in self._loads.private():
            self._add(slice_, memory)

    def _add(self, slice_: SliceIdx, memory: MemoryIdx) -> None:
        written = self._written(slice_, memory)
        readers = self._loads.readers(slice_, memory)
        following: dict[TaskIdx | None, list[Literal]] = defaultdict(list)
        fresh = []
        for reader in readers:
            local = self._local[reader, slice_, memory]
            since = self._keep(slice_, memory, reader, local)
            choices = []
            load = self._loads.into.get(LoadKey(slice_, memory, reader))
            if load is not None:
                self._model.add(since == load.start).only_enforce_if(load.present)
                start = self._vars.tasks[reader].start
                self._model.add(start >= load.valid).only_enforce_if(load.present)
                choices.append(load.present)
                fresh.append(load.present)
            for before, (here, end) in self._before(slice_, memory, reader, written).items():
                kept = self._vars.literal(
                    f"slice{slice_} in memory{memory} for task{reader} since task{before}"
                )
                self._model.add_implication(kept, here)
                self._model.add(since == end).only_enforce_if(kept)
                following[before].append(kept)
                choices.append(kept)
            self._model.add(sum(choices) == local)
        for some in following.values():
            self._model.add_at_most_one(some)
        for reader in readers:
            here = [] if written is None else [written[0]]
            local = self._local[reader, slice_, memory]
            self._model.add_bool_or([*fresh, *here, ~local])

    def _keep(self, slice_: SliceIdx, memory: MemoryIdx, reader: TaskIdx, local: Literal) -> Number:
        """Return the cycle since which the bytes are kept for a reader."""
        name = f"slice{slice_} in memory{memory} kept for task{reader}"
        times = self._vars.tasks[reader]
        since, cycles = self._vars.cycle(f"{name} since"), self._vars.cycle(name)
        until = times.start if self._tables.machine.remote is None else times.end
        interval = self._model.new_optional_interval_var(since, cycles, until, local, name)
        self.demands.append(Demand(memory, interval, self._tables.blocks_of(slice_, memory)))
        return since

    def _written(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[Literal, Number] | None:
        """Return whether the slice is written in this memory, and when; ``None`` if never."""
        writer = self._tables.writers[self._loads.buffer(slice_)]
        if writer is None or memory not in self._vars.tasks[writer].memories:
            return None
        times = self._vars.tasks[writer]
        return times.memories[memory], times.end

    def _before(
        self,
        slice_: SliceIdx,
        memory: MemoryIdx,
        reader: TaskIdx,
        written: tuple[Literal, Number] | None,
    ) -> dict[TaskIdx | None, tuple[Literal, Number]]:
        """Return, for each task after which the bytes may be kept for a reader, its end.

        ``None`` stands for the task that writes the slice.
        """
        found: dict[TaskIdx | None, tuple[Literal, Number]] = {}
        if written is not None:
            found[None] = written
        for other in self._loads.readers(slice_, memory):
            if other != reader and reader not in self._tables.ancestors[other]:
                local = self._local[other, slice_, memory]
                found[other] = local, self._vars.tasks[other].end
        return found
