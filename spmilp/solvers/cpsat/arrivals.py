"""A small relaxation: tasks, and the first arrival of each slice in each memory.

Of a plan it keeps where and when tasks run, and of all transfers that bring a slice into a memory
the one that ends first: whether it comes out of a DRAM, and when. What else there is, it leaves
out: later arrivals, which copy a transfer reads, and for how long things stay. So every plan gives
a solution of the same or a smaller value, and the optimum is a lower bound; its proof is much
cheaper than that of the relaxation with open stays, for there are no pairs of residencies in it.

What each arrival takes is the least that any of its ways takes: its cycles, and the rates on those
links and the channels of those engines that all its ways have in common.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import transfer_rate
from spmilp.problem.objective import Quantity
from spmilp.solvers.bounds.movement import Movement
from spmilp.solvers.bounds.paths import paths_of
from spmilp.solvers.cpsat.candidates import Candidates
from spmilp.solvers.cpsat.hints import add_hints_of_tasks
from spmilp.solvers.cpsat.objective import weighted
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.resources import Held, add_links
from spmilp.solvers.cpsat.scope import Scope, Stay
from spmilp.solvers.cpsat.strengthen import (
    Arriving,
    Share,
    cores_have_time_for_their_work,
    fit,
    head_and_tail,
    tasks_keep_to_their_heads_and_tails,
    working_sets_and_arrivals_share_a_memory,
)
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.symmetry import use_memories_in_order
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.cpsat.variables import Interval, Literal, Number, Variables
from spmilp.solvers.cpsat.ways import Way
from spmilp.units import BufferIdx, Cycles, EngineIdx, LinkIdx, MemoryIdx, SliceIdx

DRAM, ELSEWHERE = True, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """An arrival out of a DRAM, or from elsewhere, and the least that it takes.

    Parameters
    ----------
    alone
        Whether no other arrival can be part of the same transfer.
    """

    taken: Literal
    interval: Interval
    cycles: Cycles
    ways: tuple[Way, ...]
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The first transfer of a slice into a memory, if there is one."""

    present: Literal
    start: Number
    valid: Number
    kinds: dict[bool, Kind]


def can_relax(tables: Tables, quantity: Quantity) -> bool:
    """Say whether this relaxation knows anything of a quantity and a machine."""
    memories = tables.machine.memories
    works = {memories[pool.memory].kind for pool in tables.pools}
    return quantity is not Quantity.PEAK_SPM and MemoryKind.DRAM not in works


class Arrivals:
    """The model; ``cp`` and ``variables`` as those of a :class:`~spmilp.solvers.cpsat.model.Model`.

    Parameters
    ----------
    floor, best
        A lower bound on the quantity, and the value of the best plan.
    reading
        A plan, for the order of equal memories.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        quantity: Quantity,
        horizon: Cycles,
        floor: int,
        best: int | None,
        reading: Reading | None,
    ) -> None:
        self.cp = cp_model.CpModel()
        self._tables = tables
        self._machine = tables.machine
        self._candidates = Candidates(tables)
        self._paths = paths_of(tables.problem, Movement(tables.problem))
        pools = tuple(tables.pools_of(task.index) for task in tables.problem.tasks)
        empty = Structure(
            scope=Scope(pools=pools, stays=(), lasting=frozenset()), shapes={}, servers={}
        )
        self.variables = Variables(self.cp, tables, empty, horizon)
        self._destinations = self._destinations_of_links()
        self._arrivals = dict(self._make_arrivals())
        self._stores = dict(self._make_stores())
        self._first: dict[SliceIdx, tuple[Number, list[Literal]]] = {}
        self._shared = dict(self._make_shared())
        self._add_all(reading)
        objective = self._objective(quantity)
        self.cp.minimize(objective)
        self.low, self.high = floor, best
        if reading is not None:
            add_hints_of_tasks(self.cp, tables, self.variables, reading)

    def _add_all(self, reading: Reading | None) -> None:
        self._cores_run_one_task_at_a_time()
        self._tasks_follow_their_predecessors()
        self._arrivals_follow_their_origin()
        self._reads_find_what_is_there()
        self._add_links_and_engines()
        arriving = [
            Arriving(key[1], kind.interval, self._tables.problem.slices[key[0]].bytes)
            for key, arrival in self._arrivals.items()
            for kind in arrival.kinds.values()
        ]
        working_sets_and_arrivals_share_a_memory(self.cp, self._tables, self.variables, arriving)
        tasks_keep_to_their_heads_and_tails(self.cp, self.variables, self._paths)
        cores_have_time_for_their_work(self.cp, self._tables, self.variables, self._paths)
        use_memories_in_order(self.cp, self._tables, self.variables, reading)

    def _make_arrivals(self) -> Iterator[tuple[tuple[SliceIdx, MemoryIdx], Arrival]]:
        for slice_ in self._candidates.slices():
            buffer = self._tables.problem.buffers[self._buffer(slice_)]
            for memory in self._candidates.of(slice_):
                if self._kind(memory) is MemoryKind.DRAM or buffer.starts_in == memory:
                    continue
                ways = self._ways_into(slice_, memory)
                if any(ways.values()):
                    yield (slice_, memory), self._arrival(slice_, memory, ways)

    def _arrival(
        self, slice_: SliceIdx, memory: MemoryIdx, ways: Mapping[bool, tuple[Way, ...]]
    ) -> Arrival:
        name = f"slice{slice_} into memory{memory}"
        start, present = self.variables.cycle(f"{name} start"), self.variables.literal(name)
        able = {kind: some for kind, some in ways.items() if some}
        least = {kind: min(way.cycles for way in some) for kind, some in able.items()}
        valid: Number = start + next(iter(least.values()))
        if len(set(least.values())) > 1:
            valid = self.variables.cycle(f"{name} valid")
        kinds = {}
        for kind, some in able.items():
            taken = present
            if len(able) > 1:
                taken = self.variables.literal(f"{name} out of {'DRAM' if kind else 'another'}")
            if len(set(least.values())) > 1:
                self.cp.add(valid == start + least[kind]).only_enforce_if(taken)
            interval = self.cp.new_optional_fixed_size_interval_var(
                start, least[kind], taken, f"{name} {kind}"
            )
            alone = not any(self._machine.engines[way.engine].multicast for way in some)
            kinds[kind] = Kind(
                taken=taken, interval=interval, cycles=least[kind], ways=some, alone=alone
            )
        if len(able) > 1:
            self.cp.add(sum(kind.taken for kind in kinds.values()) == present)
        return Arrival(present=present, start=start, valid=valid, kinds=kinds)

    def _ways_into(self, slice_: SliceIdx, memory: MemoryIdx) -> dict[bool, tuple[Way, ...]]:
        found: dict[bool, dict[Way, None]] = {DRAM: {}, ELSEWHERE: {}}
        for holder in dict.fromkeys((slice_, self._buffer(slice_))):
            for source in self._candidates.of(holder):
                if source == memory:
                    continue
                for way in self._tables.ways.between(slice_, source, memory):
                    if self._tables.ways.can_copy(way, slice_, holder):
                        found[self._kind(source) is MemoryKind.DRAM][way] = None
        return {kind: tuple(some) for kind, some in found.items()}

    def _make_stores(self) -> Iterator[tuple[SliceIdx, Arrival]]:
        """Yield the first store to a DRAM of each slice that does not begin there."""
        for slice_ in self._candidates.slices():
            buffer = self._tables.problem.buffers[self._buffer(slice_)]
            if buffer.starts_in is not None and self._is_dram(buffer.starts_in):
                continue
            ways = tuple(
                way
                for memory in self._candidates.of(slice_)
                if self._is_dram(memory)
                for way in self._ways_into(slice_, memory)[ELSEWHERE]
            )
            if ways:
                yield slice_, self._arrival(slice_, ways[0].destination, {ELSEWHERE: ways})

    def _make_shared(self) -> Iterator[tuple[SliceIdx, Kind]]:
        """Yield the first transfer out of a DRAM of each slice of which one can serve several."""
        for slice_ in self._candidates.slices():
            kinds = [
                arrival.kinds[DRAM]
                for (one, _), arrival in self._arrivals.items()
                if one == slice_ and DRAM in arrival.kinds
            ]
            if not any(not kind.alone for kind in kinds):
                continue
            name = f"slice{slice_} out of DRAM"
            start, taken = self.variables.cycle(f"{name} start"), self.variables.literal(name)
            cycles = min(kind.cycles for kind in kinds)
            interval = self.cp.new_optional_fixed_size_interval_var(start, cycles, taken, name)
            for (one, _), arrival in self._arrivals.items():
                if one == slice_ and DRAM in arrival.kinds:
                    here = arrival.kinds[DRAM].taken
                    self.cp.add_implication(here, taken)
                    self.cp.add(start + cycles <= arrival.valid).only_enforce_if(here)
            ways = tuple(way for kind in kinds for way in kind.ways)
            yield (
                slice_,
                Kind(taken=taken, interval=interval, cycles=cycles, ways=ways, alone=True),
            )

    def _cores_run_one_task_at_a_time(self) -> None:
        for pool in self._tables.pools:
            runs = [
                task.runs[pool.index] for task in self.variables.tasks if pool.index in task.runs
            ]
            if len(pool.cores) == 1:
                self.cp.add_no_overlap(runs)
            elif len(runs) > len(pool.cores):
                self.cp.add_cumulative(runs, [1] * len(runs), len(pool.cores))

    def _tasks_follow_their_predecessors(self) -> None:
        for task, before in zip(self.variables.tasks, self._tables.predecessors, strict=True):
            self.cp.add(self.variables.makespan >= task.end)
            for earlier in before:
                self.cp.add(task.start >= self.variables.tasks[earlier].end)

    def _arrivals_follow_their_origin(self) -> None:
        for (slice_, _), arrival in self._arrivals.items():
            origin = self._tables.problem.buffers[self._buffer(slice_)].starts_in
            writer = self._tables.writers[self._buffer(slice_)]
            if writer is not None:
                end = self.variables.tasks[writer].end
                self.cp.add(arrival.start >= end).only_enforce_if(arrival.present)
            if origin is not None and self._is_dram(origin):
                if ELSEWHERE in arrival.kinds:
                    self._came_out_of_dram(slice_, arrival.start, arrival.kinds[ELSEWHERE].taken)
            elif DRAM in arrival.kinds:
                self._was_stored(slice_, arrival)
        for slice_, store in self._stores.items():
            writer = self._tables.writers[self._buffer(slice_)]
            if writer is not None:
                self.cp.add(store.start >= self.variables.tasks[writer].end)
            self.cp.add(self.variables.makespan >= store.valid).only_enforce_if(store.present)
            ends = self._tables.problem.buffers[self._buffer(slice_)].ends_in
            if slice_ == self._buffer(slice_) and ends is not None and self._is_dram(ends):
                self.cp.add(store.present == 1)

    def _came_out_of_dram(self, slice_: SliceIdx, start: Number, literal: Literal) -> None:
        """What comes from elsewhere, or is read there, came out of a DRAM before."""
        if slice_ not in self._first:
            first = self.variables.cycle(f"slice{slice_} first out of DRAM")
            leaders = []
            for holder in dict.fromkeys((slice_, self._buffer(slice_))):
                for (one, memory), arrival in self._arrivals.items():
                    if one == holder and DRAM in arrival.kinds:
                        leads = self.variables.literal(f"{holder} first into memory{memory}")
                        self.cp.add_implication(leads, arrival.kinds[DRAM].taken)
                        self.cp.add(first >= arrival.valid).only_enforce_if(leads)
                        leaders.append(leads)
            self._first[slice_] = first, leaders
        first, leaders = self._first[slice_]
        self.cp.add_bool_or([*leaders, ~literal])
        self.cp.add(start >= first).only_enforce_if(literal)

    def _was_stored(self, slice_: SliceIdx, arrival: Arrival) -> None:
        """What comes out of a DRAM where it was not at first was stored before."""
        taken = arrival.kinds[DRAM].taken
        holders = [h for h in dict.fromkeys((slice_, self._buffer(slice_))) if h in self._stores]
        found = []
        for holder in holders:
            store = self._stores[holder]
            this = taken
            if len(holders) > 1:
                this = self.variables.literal(f"slice{slice_} stored as slice{holder}")
            self.cp.add_implication(this, store.present)
            self.cp.add(arrival.start >= store.valid).only_enforce_if(this)
            found.append(this)
        if found != [taken]:
            self.cp.add_bool_or([*found, ~taken])

    def _reads_find_what_is_there(self) -> None:
        whole_first: dict[tuple[SliceIdx, MemoryIdx], Literal] = {}
        for task in self._tables.problem.tasks:
            times = self.variables.tasks[task.index]
            extra: Number = 0
            for position, read in enumerate(task.reads):
                for memory, here in times.memories.items():
                    local = here
                    if self._machine.remote is not None:
                        local = self.variables.literal(f"task{task.index} reads {position} here")
                        extra += self._read_remotely(task.index, read, memory, here, local)
                    self._read_locally(times.start, read, memory, local, whole_first)
            if self._machine.remote is not None:
                for pool, here in times.pools.items():
                    least = self._tables.cycles_on(task.index, pool)
                    self.cp.add(times.size >= least + extra).only_enforce_if(here)

    def _read_remotely(
        self, task: int, read: SliceIdx, memory: MemoryIdx, here: Literal, local: Literal
    ) -> Number:
        """Return the least cycles that reading elsewhere adds, if the read is not local."""
        holders = dict.fromkeys((read, self._buffer(read)))
        cycles = [
            found
            for holder in holders
            for other in self._candidates.of(holder)
            if other != memory
            for found in (self._tables.remote_cycles(read, other, memory),)
            if found is not None
        ]
        self.cp.add_implication(local, here)
        if not cycles:
            self.cp.add_implication(here, local)
            return 0
        away = self.variables.literal(f"task{task} reads slice{read} away from memory{memory}")
        self.cp.add(away + local == here)
        origin = self._tables.problem.buffers[self._buffer(read)].starts_in
        if origin is not None and self._is_dram(origin):
            self._came_out_of_dram(read, self.variables.tasks[task].start, away)
        return min(cycles) * away

    def _read_locally(
        self,
        start: Number,
        read: SliceIdx,
        memory: MemoryIdx,
        local: Literal,
        whole_first: dict[tuple[SliceIdx, MemoryIdx], Literal],
    ) -> None:
        """The slice or its buffer arrived here before, or began here."""
        buffer = self._buffer(read)
        if self._tables.problem.buffers[buffer].starts_in == memory:
            return
        writer = self._tables.writers[buffer]
        needed = [local]
        if writer is not None and memory in self.variables.tasks[writer].memories:
            needed.append(~self.variables.tasks[writer].memories[memory])
        able = [h for h in dict.fromkeys((read, buffer)) if (h, memory) in self._arrivals]
        if not able:
            self.cp.add_bool_or([~literal for literal in needed])
        for holder in able:
            conditions = list(needed)
            if len(able) > 1:
                key = read, memory
                if key not in whole_first:
                    whole_first[key] = self.variables.literal(f"slice{read} with its buffer")
                conditions.append(whole_first[key] if holder == buffer else ~whole_first[key])
            arrival = self._arrivals[holder, memory]
            self.cp.add_bool_or([arrival.present, *(~literal for literal in conditions)])
            self.cp.add(start >= arrival.valid).only_enforce_if(conditions)

    def _add_links_and_engines(self) -> None:
        on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
        on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
        shares: dict[tuple[str, int], list[Share]] = defaultdict(list)
        for key, kind in self._all_kinds():
            head, tail = head_and_tail(self._tables, self._paths, key.slice)
            engines = frozenset(way.engine for way in kind.ways)
            if len(engines) == 1 and kind.alone:
                engine = next(iter(engines))
                on_engine[engine].append(kind.interval)
                shares["engine", engine].append(Share(head, tail, kind.cycles, kind.taken))
            for link in self._common_links(key, kind):
                rate = min(self._least_rate(way) for way in kind.ways)
                some = frozenset(kind.ways)
                on_link[link].append(Held(key, some, None, kind.interval, rate, engines))
                part = rate / self._machine.links[link].rate
                shares["link", link].append(Share(head, tail, part * kind.cycles, kind.taken))
        for engine, intervals in sorted(on_engine.items()):
            channels = self._machine.engines[engine].channels
            self.cp.add_cumulative(intervals, [1] * len(intervals), channels)
        add_links(self.cp, self._tables, on_link)
        for (what, index), parts in sorted(shares.items()):
            capacity = self._machine.engines[index].channels if what == "engine" else 1
            fit(self.cp, self.variables, parts, capacity)

    def _all_kinds(self) -> Iterator[tuple[Stay, Kind]]:
        """Yield what holds links and engines, numbered so that each is known by its stay."""
        for (slice_, memory), arrival in self._arrivals.items():
            for number, kind in arrival.kinds.items():
                yield Stay(slice_, memory, int(number)), kind
        for slice_, store in self._stores.items():
            for kind in store.kinds.values():
                yield Stay(slice_, kind.ways[0].destination, 2), kind
        for slice_, kind in self._shared.items():
            yield Stay(slice_, -1, 3), kind

    def _common_links(self, key: Stay, kind: Kind) -> list[LinkIdx]:
        """Return the links that every way holds; where others may be part of it, only its own."""
        common = set(kind.ways[0].links).intersection(*(way.links for way in kind.ways))
        if not kind.alone:
            common = {link for link in common if self._destinations[link] == {key.memory}}
        return sorted(common)

    def _destinations_of_links(self) -> dict[LinkIdx, set[MemoryIdx]]:
        found: dict[LinkIdx, set[MemoryIdx]] = defaultdict(set)
        memories = range(len(self._machine.memories))
        for source in memories:
            for memory in memories:
                route = self._tables.routes.between(source, memory)
                for link in route.links if route is not None else ():
                    found[link].add(memory)
        return found

    def _least_rate(self, way: Way) -> Fraction:
        """Return the rate of a way, or the least that a multicast it belongs to may have."""
        engine = self._machine.engines[way.engine]
        if not engine.multicast:
            return way.rate
        routes = (
            self._tables.routes.between(way.source, memory.index)
            for memory in self._machine.memories
            if engine.serves(way.source, memory.index)
        )
        return min(transfer_rate(engine, route) for route in routes if route is not None)

    def _objective(self, quantity: Quantity) -> Number:
        if quantity is Quantity.MAKESPAN:
            return self.variables.makespan
        terms: list[tuple[Literal, int]] = []
        for key, kind in self._all_kinds():
            terms.append((kind.taken, self._least_cost(quantity, key, kind)))
        if quantity is Quantity.ENERGY:
            for task, times in zip(self._tables.problem.tasks, self.variables.tasks, strict=True):
                for pool, here in times.pools.items():
                    own = task.energy[self._tables.pools[pool].kind] if task.energy else 0
                    terms.append((here, own or 0))
        return weighted(terms)

    def _least_cost(self, quantity: Quantity, key: Stay, kind: Kind) -> int:
        """Return the traffic or energy of the way that has the least.

        What comes out of a DRAM for several memories at once is paid for there once.
        """
        size = self._tables.problem.slices[key.slice].bytes
        energy = quantity is Quantity.ENERGY
        memories = self._machine.memories
        if key.slice in self._shared and key.memory < 0:
            source = memories[kind.ways[0].source]
            return size * (source.energy_per_byte or 0) if energy else size
        if kind.alone:
            return min(way.energy if energy else way.traffic for way in kind.ways)
        if energy:
            return size * (memories[key.memory].energy_per_byte or 0)
        return size if self._is_dram(key.memory) else 0

    def _buffer(self, slice_: SliceIdx) -> BufferIdx:
        return self._tables.problem.slices[slice_].buffer

    def _kind(self, memory: MemoryIdx) -> MemoryKind:
        return self._machine.memories[memory].kind

    def _is_dram(self, memory: MemoryIdx) -> bool:
        return self._kind(memory) is MemoryKind.DRAM
