"""A bound by search: CP-SAT on a relaxation in which cores and addresses need no names."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, lcm

from ortools.sat.python import cp_model

from spmilp.bounds.critical_path import Paths, PrecedenceGraph
from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import paths_of
from spmilp.bounds.working_set import WorkingSets
from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import routes_of, transfer_rate
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, LinkIdx, MemoryIdx, SliceIdx, TaskIdx


def relaxation_bound(
    problem: Problem, seconds: float, *, workers: int = 1, known: Cycles = 0, seed: int = 0
) -> Cycles:
    """Return a bound on the makespan from a search of at most ``seconds``.

    Every plan gives a solution of this relaxation with its makespan:

    - Tasks run for their cycles on the kind of their core, no more of a kind at once than it has
      cores, each between its head and its tail, in the order of the graph.
    - Of each buffer that lies in DRAM at first, the first transfer out of DRAM that brings the
      largest slice that tasks read ends before the first of its readers starts. It lasts at least
      the cycles of the fastest transfer option.
    - A buffer that must end in DRAM is brought there by a transfer after the end of its task.
    - These transfers hold at least the least rate of all their options on each link that all of
      these have in common, and a channel of some engine of one of them.
    - All memories that tasks use (in which cores work, or which they read remotely) together hold,
      at each cycle, the own bytes of the running tasks (:class:`.WorkingSets`); a slice of a buffer
      that lies in DRAM at first and of which tasks read no other slice, from the start of the
      transfer that brings it in until its first reader starts; and a buffer that nobody reads from
      the end of its task until it has left for DRAM. In all these cycles the bytes lie in some of
      them, for a copy is valid before its source may go, and none are bytes of another of these
      terms.

    Parameters
    ----------
    known
        A bound that has been proven otherwise.

    Returns
    -------
    Cycles
        At least ``known``.
    """
    model = _Relaxation(problem)
    model.model.add(model.makespan >= known)
    model.model.minimize(model.makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    status = solver.solve(model.model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        return max(known, ceil(solver.best_objective_bound - 1e-6))
    return known


@dataclass(slots=True)
class _Use:
    """Demands on one resource."""

    intervals: list[cp_model.IntervalVar] = field(default_factory=list)
    demands: list[int] = field(default_factory=list)

    def add(self, interval: cp_model.IntervalVar, demand: int) -> None:
        if demand > 0:
            self.intervals.append(interval)
            self.demands.append(demand)


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Links, engines and rate common to all transfers of a DRAM in one direction."""

    rate: Fraction
    links: frozenset[LinkIdx]
    engines: frozenset[int]


class _Relaxation:
    """The model; see :func:`relaxation_bound`."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._machine = problem.machine
        self._movement = Movement(problem)
        self._graph = PrecedenceGraph(problem, self._movement)
        self._paths: Paths = paths_of(problem, self._movement, self._graph)
        self._routes = routes_of(problem.machine)
        self.model = cp_model.CpModel()
        self._horizon = self._enough()
        self.makespan = self._number("makespan", self._paths.longest)
        self._links: dict[LinkIdx, list[tuple[cp_model.IntervalVar, Fraction]]] = {}
        self._channels = _Use()
        self._engines: set[int] = set()
        self._memory_use = _Use()
        self._slices_read: dict[BufferIdx, set[SliceIdx]] = {}
        for task in problem.tasks:
            for read in task.reads:
                self._slices_read.setdefault(problem.slices[read].buffer, set()).add(read)
        self._starts: list[cp_model.IntVar] = []
        self._ends: list[cp_model.IntVar] = []
        self._add_tasks()
        self._add_loads()
        self._add_stores()
        self._add_resources()

    def _enough(self) -> Cycles:
        """Return a makespan within which everything can happen one after the other."""
        slowest = sum(max(c or 0 for c in task.cycles) for task in self._problem.tasks)
        moves = sum(self._graph.loads) + sum(self._graph.stores)
        heads = max(self._paths.head, default=0) + max(self._paths.tail, default=0)
        buffers = sum(
            self._movement.least_load(dram.index, b.bytes)
            + self._movement.least_store(dram.index, b.bytes)
            for b in self._problem.buffers
            for dram in self._machine.drams
        )
        lags = sum(
            self._graph.lag(earlier, task.index)
            for task in self._problem.tasks
            for earlier in self._graph.before[task.index]
        )
        return slowest + moves + heads + 2 * buffers + lags

    def _number(self, name: str, least: Cycles = 0) -> cp_model.IntVar:
        return self.model.new_int_var(min(least, self._horizon), self._horizon, name)

    def _add_tasks(self) -> None:
        working_sets = WorkingSets(self._problem)
        machine = self._machine
        memories = {core.memory for core in machine.cores}
        shared = sorted(memories) if len(memories) < len(machine.cores) else []
        kinds = sorted({core.kind for core in machine.cores})
        on_kind = {kind: _Use() for kind in kinds}
        for task in self._problem.tasks:
            start = self._number(f"s{task.index}", self._paths.head[task.index])
            end = self._number(f"e{task.index}")
            choices = []
            for kind in kinds:
                cycles = task.cycles[kind]
                if cycles is None:
                    continue
                taken = self.model.new_bool_var(f"x{task.index}_{kind}")
                on_kind[kind].add(
                    self.model.new_optional_interval_var(
                        start, cycles, end, taken, f"i{task.index}_{kind}"
                    ),
                    1,
                )
                choices.append((taken, cycles))
            self.model.add_exactly_one(taken for taken, _ in choices)
            lasts = self._number(f"d{task.index}")
            self.model.add(lasts == sum(cycles * taken for taken, cycles in choices))
            run = self.model.new_interval_var(start, lasts, end, f"r{task.index}")
            self._memory_use.add(run, working_sets.own_bytes(task, shared))
            after = self._paths.tail[task.index] - self._paths.cycles[task.index]
            self.model.add(end + after <= self.makespan)
            self._starts.append(start)
            self._ends.append(end)
        for task in self._problem.tasks:
            for earlier in self._graph.before[task.index]:
                lag = self._graph.lag(earlier, task.index)
                self.model.add(self._starts[task.index] >= self._ends[earlier] + lag)
        for kind, use in on_kind.items():
            cores = sum(core.kind == kind for core in machine.cores)
            self.model.add_cumulative(use.intervals, use.demands, cores)

    def _add_loads(self) -> None:
        slices = self._problem.slices
        for buffer, read in sorted(self._slices_read.items()):
            if self._graph.distances.starts_in_dram(buffer):
                largest = max(read, key=lambda index: (slices[index].bytes, -index))
                readers = [task for task in self._problem.tasks if largest in task.reads]
                self._add_load(buffer, largest, readers)

    def _add_load(self, buffer: BufferIdx, slice_: SliceIdx, readers: Sequence[Task]) -> None:
        dram = self._problem.buffers[buffer].starts_in
        if dram is None:
            return
        size = self._problem.slices[slice_].bytes
        first = self._starts[readers[0].index]
        if len(readers) > 1:
            first = self._number(f"first{slice_}")
            self.model.add_min_equality(first, [self._starts[t.index] for t in readers])
        cycles = self._movement.least_load(dram, size)
        start, end = self._number(f"ls{slice_}"), self._number(f"le{slice_}")
        interval = self.model.new_interval_var(start, cycles, end, f"l{slice_}")
        self.model.add(end <= first)
        self._hold(interval, self._crossing(dram, outwards=True))
        if self._slices_read[buffer] == {slice_}:
            entered = start if self._is_direct(dram) else first - self._graph.distances.entry(size)
            self._keep(entered, first, size, f"k{slice_}")

    def _add_stores(self) -> None:
        for task in self._problem.tasks:
            for written in task.writes:
                dram = self._problem.buffers[written].ends_in
                if dram is None or not self._graph.distances.ends_in_dram(written):
                    continue
                self._add_store(task.index, written, dram, is_read=written in self._slices_read)

    def _add_store(
        self, task: TaskIdx, buffer: BufferIdx, dram: MemoryIdx, *, is_read: bool
    ) -> None:
        size = self._problem.buffers[buffer].bytes
        cycles = self._movement.least_store(dram, size)
        start, end = self._number(f"ws{buffer}"), self._number(f"we{buffer}")
        interval = self.model.new_interval_var(start, cycles, end, f"w{buffer}")
        self.model.add(start >= self._ends[task])
        self.model.add(end <= self.makespan)
        self._hold(interval, self._crossing(dram, outwards=False))
        if not is_read:
            direct = self._is_direct(dram)
            left = end if direct else self._ends[task] + self._graph.distances.exit(size)
            self._keep(self._ends[task], left, size, f"h{buffer}")

    def _keep(
        self,
        start: cp_model.LinearExprT,
        end: cp_model.LinearExprT,
        size: Bytes,
        name: str,
    ) -> None:
        lasts = self._number(f"{name}_lasts")
        self._memory_use.add(self.model.new_interval_var(start, lasts, end, name), size)

    def _is_direct(self, dram: MemoryIdx) -> bool:
        """Return whether there is no other memory than a DRAM and those that tasks use."""
        used = self._graph.distances.used
        return all(
            memory.index in used or memory.index == dram for memory in self._machine.memories
        )

    def _hold(self, interval: cp_model.IntervalVar, crossing: _Crossing) -> None:
        for link in crossing.links:
            self._links.setdefault(link, []).append((interval, crossing.rate))
        if crossing.engines:
            self._engines |= crossing.engines
            self._channels.add(interval, 1)

    def _crossing(self, dram: MemoryIdx, *, outwards: bool) -> _Crossing:
        rates: list[Fraction] = []
        routes: list[frozenset[LinkIdx]] = []
        engines: set[int] = set()
        for memory in self._machine.memories:
            ends = (dram, memory.index) if outwards else (memory.index, dram)
            route = self._routes.between(*ends)
            serving = self._routes.engines_for(*ends)
            if memory.index == dram or route is None or not serving:
                continue
            engines.update(serving)
            routes.append(frozenset(route.links))
            rates += [transfer_rate(self._machine.engines[e], route) for e in serving]
        if not routes:
            return _Crossing(Fraction(0), frozenset(), frozenset())
        return _Crossing(min(rates), frozenset.intersection(*routes), frozenset(engines))

    def _add_resources(self) -> None:
        for link, uses in sorted(self._links.items()):
            rate = self._machine.links[link].rate
            scale = lcm(rate.denominator, *(demand.denominator for _, demand in uses))
            self.model.add_cumulative(
                [interval for interval, _ in uses],
                [int(demand * scale) for _, demand in uses],
                int(rate * scale),
            )
        if self._channels.intervals:
            channels = sum(self._machine.engines[engine].channels for engine in self._engines)
            self.model.add_cumulative(self._channels.intervals, self._channels.demands, channels)
        memories = [self._machine.memories[m] for m in sorted(self._graph.distances.used)]
        capacity = sum(memory.usable or 0 for memory in memories)
        if self._memory_use.intervals and all(m.kind is not MemoryKind.DRAM for m in memories):
            self.model.add_cumulative(
                self._memory_use.intervals, self._memory_use.demands, capacity
            )
