"""A small relaxation: tasks, what is loaded into which memory for them, and how long it is kept.

Of a plan it keeps where and when tasks run, the transfers that bring a slice into a memory (its
*loads*, each with whether it comes out of a DRAM, and when), and what a memory holds for a task
that will read it. It leaves out which copy a transfer reads, which route it takes, and how long a
copy stays for others. So every plan gives a solution of the same or a smaller value, and the
optimum is a lower bound; its proof is cheaper than that of the relaxation with open candidates, for
there are no pairs of residencies in it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import transfer_rate
from spmilp.problem.objective import Quantity
from spmilp.solvers.exact.formulation.candidates import (
    CandidateMemories,
    CandidateResidency,
    Scope,
    Structure,
)
from spmilp.solvers.exact.formulation.constraints import (
    Held,
    add_links,
    cores_run_one_task_at_a_time,
)
from spmilp.solvers.exact.formulation.model import Aim
from spmilp.solvers.exact.formulation.objective import energy_of_tasks, weighted
from spmilp.solvers.exact.formulation.strengthen import (
    Demand,
    Share,
    cores_have_time_for_their_work,
    head_and_tail,
    shares_fit,
    tasks_keep_to_their_heads_and_tails,
    use_memories_in_order,
    working_sets_and_others_share_a_memory,
)
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption
from spmilp.solvers.exact.formulation.translation import add_hints_of_tasks
from spmilp.solvers.exact.formulation.variables import Interval, Literal, Number, Variables
from spmilp.units import BufferIdx, Cycles, EngineIdx, LinkIdx, MemoryIdx, SliceIdx, TaskIdx

DRAM, ELSEWHERE = True, False
"""Where a load comes from."""


class LoadKey(NamedTuple):
    """Which load of a slice into a memory it is.

    ``reader`` is the task that is the first there to read what has arrived; ``None`` where loads
    are not told apart, and only the first one is in the model, and for what no task there reads.
    """

    slice: SliceIdx
    memory: MemoryIdx
    reader: TaskIdx | None


class LoadFrom(NamedTuple):
    """A load out of a DRAM, or from elsewhere, and the least that it takes.

    Of all its transfer options that is the least: its cycles, and the rates on those links and the
    channels of those engines that all have in common. ``alone`` says that no other load can be part
    of the same transfer.
    """

    taken: Literal
    interval: Interval
    cycles: Cycles
    options: tuple[TransferOption, ...]
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A transfer of a slice into a memory, if there is one."""

    present: Literal
    start: Number
    valid: Number
    origins: dict[bool, LoadFrom]


class Loads:
    """The loads that some plan may have.

    A residency is *private* if nothing but reads of its very slice by the one core of its memory
    can be served by it. Of such slices each load is in the model, told apart by the first task that
    reads it; of others, of which one transfer of the whole buffer may bring several at once, only
    the first load of the slice into the memory.

    Parameters
    ----------
    told_apart
        Without it no residency counts as private: a smaller and weaker model.

    Attributes
    ----------
    into
        The loads into memories that are no DRAM.
    stores
        The first store to a DRAM of each slice that does not begin there.
    shared
        The first transfer out of a DRAM of each slice of which one can serve several memories.
    """

    def __init__(self, variables: Variables, *, told_apart: bool) -> None:
        self.variables = variables
        self.tables = variables.tables
        self._model = variables.model
        self._machine = self.tables.machine
        self._told_apart = told_apart
        self.candidates = CandidateMemories(self.tables)
        self.into: dict[LoadKey, Load] = dict(self._make())
        self.stores: dict[SliceIdx, Load] = dict(self._make_stores())
        self.shared: dict[SliceIdx, LoadFrom] = dict(self._make_shared())

    def is_private(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether each load of a slice into a memory is in the model."""
        tables, buffer = self.tables, self.buffer(slice_)
        if not self._told_apart or not tables.has_single_core(memory) or tables.is_dram(memory):
            return False
        if self.starts_in(slice_) == memory:
            return False
        if slice_ == buffer:
            return not tables.parts[buffer]
        return memory not in self.candidates.of(buffer)

    def readers(self, slice_: SliceIdx, memory: MemoryIdx) -> tuple[TaskIdx, ...]:
        """Return the tasks that read a slice and may run in a memory."""
        tasks = self.variables.tasks
        readers = self.tables.readers[slice_]
        return tuple(task for task, _ in readers if memory in tasks[task].memories)

    def transfers(self) -> Iterator[tuple[CandidateResidency, LoadKey | None, LoadFrom]]:
        """Yield what holds links and engines, each under a key of its own."""
        for key, load in self.into.items():
            number = 0 if key.reader is None else key.reader + 1
            for origin, one in load.origins.items():
                yield CandidateResidency(key.slice, key.memory, 4 * number + int(origin)), key, one
        for slice_, store in self.stores.items():
            for one in store.origins.values():
                yield CandidateResidency(slice_, one.options[0].destination, 2), None, one
        for slice_, one in self.shared.items():
            yield CandidateResidency(slice_, -1, 3), None, one

    def buffer(self, slice_: SliceIdx) -> BufferIdx:
        """Return the buffer of a slice."""
        return self.tables.problem.slices[slice_].buffer

    def starts_in(self, slice_: SliceIdx) -> MemoryIdx | None:
        """Return where the buffer of a slice is at cycle 0."""
        return self.tables.problem.buffers[self.buffer(slice_)].starts_in

    def begins_in_dram(self, slice_: SliceIdx) -> bool:
        """Say whether the buffer of a slice is in a DRAM at cycle 0."""
        starts = self.starts_in(slice_)
        return starts is not None and self.tables.is_dram(starts)

    def _make(self) -> Iterator[tuple[LoadKey, Load]]:
        for slice_ in self.candidates.slices():
            into = {
                memory: self._options_into(slice_, memory)
                for memory in self.candidates.of(slice_)
                if not self.tables.is_dram(memory) and self.starts_in(slice_) != memory
            }
            passed_on = any(options[ELSEWHERE] for options in into.values())
            for memory, options in into.items():
                if any(options.values()):
                    for key in self._keys(slice_, memory, passed_on):
                        yield key, self._load(key, options)

    def _keys(self, slice_: SliceIdx, memory: MemoryIdx, passed_on: bool) -> Iterator[LoadKey]:
        """Yield the loads of a slice into a memory.

        Where each has its reader, there is one more that nobody reads there: it is copied on, or
        read by other cores.
        """
        private = self.is_private(slice_, memory)
        for reader in self.readers(slice_, memory) if private else ():
            yield LoadKey(slice_, memory, reader)
        if not private or passed_on or self._machine.remote is not None:
            yield LoadKey(slice_, memory, None)

    def _load(self, key: LoadKey, options: Mapping[bool, tuple[TransferOption, ...]]) -> Load:
        name = f"slice{key.slice} into memory{key.memory} for {key.reader}"
        start, present = self.variables.cycle(f"{name} start"), self.variables.literal(name)
        able = {origin: some for origin, some in options.items() if some}
        least = {origin: min(one.cycles for one in some) for origin, some in able.items()}
        differ = len(set(least.values())) > 1
        valid = start + next(iter(least.values()))
        if differ:
            valid = self.variables.cycle(f"{name} valid")
        origins = {}
        for origin, some in able.items():
            taken = present
            if len(able) > 1:
                taken = self.variables.literal(f"{name} out of {'DRAM' if origin else 'another'}")
            if differ:
                self._model.add(valid == start + least[origin]).only_enforce_if(taken)
            origins[origin] = LoadFrom(
                taken=taken,
                interval=self._model.new_optional_fixed_size_interval_var(
                    start, least[origin], taken, f"{name} {origin}"
                ),
                cycles=least[origin],
                options=some,
                alone=not any(self._machine.engines[one.engine].multicast for one in some),
            )
        if len(able) > 1:
            self._model.add(sum(one.taken for one in origins.values()) == present)
        return Load(present=present, start=start, valid=valid, origins=origins)

    def _options_into(
        self, slice_: SliceIdx, memory: MemoryIdx
    ) -> dict[bool, tuple[TransferOption, ...]]:
        found: dict[bool, dict[TransferOption, None]] = {DRAM: {}, ELSEWHERE: {}}
        for holder in self.tables.holders(slice_):
            for source in self.candidates.of(holder):
                if source != memory:
                    able = self.tables.transfers.out_of(holder, slice_, source, memory)
                    found[self.tables.is_dram(source)].update(dict.fromkeys(able))
        return {origin: tuple(some) for origin, some in found.items()}

    def _make_stores(self) -> Iterator[tuple[SliceIdx, Load]]:
        for slice_ in self.candidates.slices():
            options = tuple(
                option
                for memory in self.candidates.of(slice_)
                if self.tables.is_dram(memory) and not self.begins_in_dram(slice_)
                for option in self._options_into(slice_, memory)[ELSEWHERE]
            )
            if options:
                key = LoadKey(slice_, options[0].destination, None)
                yield slice_, self._load(key, {ELSEWHERE: options})

    def _make_shared(self) -> Iterator[tuple[SliceIdx, LoadFrom]]:
        for slice_ in self.candidates.slices():
            some = [one for key, one in self.into.items() if key.slice == slice_]
            out = [(load, load.origins[DRAM]) for load in some if DRAM in load.origins]
            if all(one.alone for _, one in out):
                continue
            name = f"slice{slice_} out of DRAM"
            start, taken = self.variables.cycle(f"{name} start"), self.variables.literal(name)
            cycles = min(one.cycles for _, one in out)
            for load, one in out:
                self._model.add_implication(one.taken, taken)
                self._model.add(start + cycles <= load.valid).only_enforce_if(one.taken)
            interval = self._model.new_optional_fixed_size_interval_var(start, cycles, taken, name)
            options = tuple(option for _, one in out for option in one.options)
            yield slice_, LoadFrom(taken, interval, cycles, options, alone=True)


class Precedence:
    """Where what is loaded or read was before: in a DRAM, in another memory, or written there.

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
        """Add all constraints."""
        self._loads_follow_their_origin()
        self._stores_follow_the_writer()
        self._reads_find_their_slice()

    def _loads_follow_their_origin(self) -> None:
        for key, load in self._loads.into.items():
            writer = self._tables.writers[self._loads.buffer(key.slice)]
            if writer is not None:
                end = self._vars.tasks[writer].end
                self._model.add(load.start >= end).only_enforce_if(load.present)
            if self._loads.begins_in_dram(key.slice):
                if ELSEWHERE in load.origins:
                    taken = load.origins[ELSEWHERE].taken
                    self._came_out_of_dram(key.slice, load.start, taken)
            elif DRAM in load.origins:
                self._was_stored(key.slice, load)

    def _came_out_of_dram(self, slice_: SliceIdx, start: Number, literal: Literal) -> None:
        """What comes from elsewhere, or is read there, came out of a DRAM before."""
        if slice_ not in self._first:
            self._first[slice_] = self._first_out_of_dram(slice_)
        first, choices = self._first[slice_]
        self._model.add_bool_or([*choices, ~literal])
        self._model.add(start >= first).only_enforce_if(literal)

    def _first_out_of_dram(self, slice_: SliceIdx) -> tuple[Number, list[Literal]]:
        first = self._vars.cycle(f"slice{slice_} first out of DRAM")
        holders = self._tables.holders(slice_)
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
            for pool, here in times.pools.items() if reads_remotely else ():
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
        if self._loads.begins_in_dram(read):
            self._came_out_of_dram(read, self._vars.tasks[task].start, away)
        return min(cycles) * away

    def _read_locally(
        self, start: Number, read: SliceIdx, memory: MemoryIdx, local: Literal
    ) -> None:
        """The slice or its buffer was loaded here before, or began here."""
        buffer = self._loads.buffer(read)
        if self._loads.starts_in(read) == memory:
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
                if (read, memory) not in self._with_buffer:
                    name = f"slice{read} in memory{memory} with its buffer"
                    self._with_buffer[read, memory] = self._vars.literal(name)
                with_buffer = self._with_buffer[read, memory]
                conditions.append(with_buffer if key.slice == buffer else ~with_buffer)
            load = self._loads.into[key]
            self._model.add_bool_or([load.present, *(~literal for literal in conditions)])
            self._model.add(start >= load.valid).only_enforce_if(conditions)


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
        for slice_ in self._loads.candidates.slices():
            for memory in self._loads.candidates.of(slice_):
                if self._loads.is_private(slice_, memory):
                    self._add(slice_, memory)

    def _add(self, slice_: SliceIdx, memory: MemoryIdx) -> None:
        after = self._after(slice_, memory)
        readers = self._loads.readers(slice_, memory)
        following: dict[TaskIdx | None, list[Literal]] = defaultdict(list)
        fresh = [after[None][0]] if None in after else []
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
            for before, (here, end) in after.items():
                if before == reader:
                    continue
                if before is not None and reader in self._tables.ancestors[before]:
                    continue
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
            self._model.add_bool_or([*fresh, ~self._local[reader, slice_, memory]])

    def _keep(self, slice_: SliceIdx, memory: MemoryIdx, reader: TaskIdx, local: Literal) -> Number:
        """Return the cycle since which the bytes are kept for a reader."""
        name = f"slice{slice_} in memory{memory} kept for task{reader}"
        times = self._vars.tasks[reader]
        since, cycles = self._vars.cycle(f"{name} since"), self._vars.cycle(name)
        until = times.start if self._tables.machine.remote is None else times.end
        interval = self._model.new_optional_interval_var(since, cycles, until, local, name)
        self.demands.append(Demand(memory, interval, self._tables.blocks_of(slice_, memory)))
        return since

    def _after(
        self, slice_: SliceIdx, memory: MemoryIdx
    ) -> dict[TaskIdx | None, tuple[Literal, Number]]:
        """Return the tasks after which the bytes may be kept, with their ends.

        Each with whether it is here; ``None`` stands for the task that writes the slice.
        """
        found: dict[TaskIdx | None, tuple[Literal, Number]] = {}
        writer = self._tables.writers[self._loads.buffer(slice_)]
        if writer is not None and memory in self._vars.tasks[writer].memories:
            times = self._vars.tasks[writer]
            found[None] = times.memories[memory], times.end
        for other in self._loads.readers(slice_, memory):
            found[other] = self._local[other, slice_, memory], self._vars.tasks[other].end
        return found


class Resources:
    """Constraints on what loads hold for certain, whatever transfer each is."""

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._model = loads.variables.model
        self._tables = loads.tables
        self._machine = loads.tables.machine
        self._memories = range(len(self._machine.memories))
        self._destinations: dict[LinkIdx, set[MemoryIdx]] = defaultdict(set)
        for source in self._memories:
            for memory in self._memories:
                route = self._tables.routes.between(source, memory)
                for link in route.links if route is not None else ():
                    self._destinations[link].add(memory)

    def add(self) -> None:
        """Never more at a time than channels and rates allow, nor more in all than time does."""
        on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
        on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
        shares: dict[tuple[str, int], list[Share]] = defaultdict(list)
        for key, load, one in self._loads.transfers():
            head, tail = head_and_tail(self._tables, key.slice)
            if load is not None and load.reader is not None:
                # It has ended when its reader starts.
                tail = max(tail, self._tables.paths.tail[load.reader])
            engines = frozenset(option.engine for option in one.options)
            if len(engines) == 1 and one.alone:
                engine = next(iter(engines))
                on_engine[engine].append(one.interval)
                shares["engine", engine].append(Share(head, tail, one.cycles, one.taken))
            for link in self._common_links(key.memory, one):
                rate = min(self._least_rate(option) for option in one.options)
                on_link[link].append(Held(key, frozenset(one.options), None, one.interval, rate))
                part = rate / self._machine.links[link].rate
                shares["link", link].append(Share(head, tail, part * one.cycles, one.taken))
        for engine, intervals in sorted(on_engine.items()):
            channels = self._machine.engines[engine].channels
            self._model.add_cumulative(intervals, [1] * len(intervals), channels)
        add_links(self._loads.variables, on_link)
        for (what, index), parts in sorted(shares.items()):
            capacity = self._machine.engines[index].channels if what == "engine" else 1
            shares_fit(self._loads.variables, parts, capacity)

    def _common_links(self, memory: MemoryIdx, one: LoadFrom) -> list[LinkIdx]:
        """Return the links that every option holds; only its own where others may be part of it."""
        options = one.options
        common = set(options[0].links).intersection(*(option.links for option in options))
        if not one.alone:
            common = {link for link in common if self._destinations[link] == {memory}}
        return sorted(common)

    def _least_rate(self, option: TransferOption) -> Fraction:
        """Return the rate of a transfer, or the least of a multicast that it may belong to."""
        engine = self._machine.engines[option.engine]
        if not engine.multicast:
            return option.rate
        routes = (
            self._tables.routes.between(option.source, memory)
            for memory in self._memories
            if engine.serves(option.source, memory)
        )
        return min(transfer_rate(engine, route) for route in routes if route is not None)


def can_relax(tables: ProblemTables, quantity: Quantity) -> bool:
    """Say whether this relaxation knows anything of a quantity and a machine."""
    works = {tables.machine.memories[pool.memory].kind for pool in tables.pools}
    return quantity is not Quantity.PEAK_SPM and MemoryKind.DRAM not in works


class LoadRelaxation:
    """The model; ``cp`` and ``variables`` as those of a model of plans.

    Parameters
    ----------
    retention
        Whether what memories keep for readers is in the model, and each load that it needs;
        otherwise only the first loads are.
    """

    def __init__(self, tables: ProblemTables, aim: Aim, *, retention: bool) -> None:
        self.cp = cp_model.CpModel()
        self._tables = tables
        scope = Scope(pools=tuple(tables.pools_of(task.index) for task in tables.problem.tasks))
        empty = Structure(scope=scope, lifecycles={}, servers={})
        self.variables = Variables(self.cp, tables, empty, aim.horizon)
        self._loads = Loads(self.variables, told_apart=retention)
        self._add_all()
        use_memories_in_order(self.variables, aim.reading)
        self.cp.minimize(self._objective(aim.quantity))
        self.low, self.high = aim.floor, aim.best
        if aim.reading is not None:
            add_hints_of_tasks(self.variables, aim.reading)

    def _add_all(self) -> None:
        cores_run_one_task_at_a_time(self.variables)
        for task, before in zip(self.variables.tasks, self._tables.predecessors, strict=True):
            self.cp.add(self.variables.makespan >= task.end)
            for earlier in before:
                self.cp.add(task.start >= self.variables.tasks[earlier].end)
        precedence = Precedence(self._loads)
        precedence.add()
        retention = Retention(self._loads, precedence.local)
        retention.add()
        Resources(self._loads).add()
        # What has a reader is kept for it anyway.
        demands = retention.demands + [
            Demand(key.memory, one.interval, self._tables.blocks_of(key.slice, key.memory))
            for key, load in self._loads.into.items()
            if key.reader is None
            for one in load.origins.values()
        ]
        working_sets_and_others_share_a_memory(self.variables, demands)
        tasks_keep_to_their_heads_and_tails(self.variables)
        cores_have_time_for_their_work(self.variables)

    def _objective(self, quantity: Quantity) -> Number:
        if quantity is Quantity.MAKESPAN:
            return self.variables.makespan
        terms: list[tuple[Literal, int]] = [
            (one.taken, self._least_cost(quantity, key, one))
            for key, _, one in self._loads.transfers()
        ]
        if quantity is Quantity.ENERGY:
            terms += energy_of_tasks(self.variables)
        return weighted(terms)

    def _least_cost(self, quantity: Quantity, key: CandidateResidency, one: LoadFrom) -> int:
        """Return the traffic or energy of the transfer that has the least.

        What comes out of a DRAM for several memories at once is paid for there once.
        """
        size = self._tables.problem.slices[key.slice].bytes
        energy = quantity is Quantity.ENERGY
        memories = self._tables.machine.memories
        if key.slice in self._loads.shared and key.memory < 0:
            source = memories[one.options[0].source]
            return size * (source.energy_per_byte or 0) if energy else size
        if one.alone:
            return min(option.energy if energy else option.traffic for option in one.options)
        if energy:
            return size * (memories[key.memory].energy_per_byte or 0)
        return size if self._tables.is_dram(key.memory) else 0
