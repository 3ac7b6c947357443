"""The model: tasks on cores, loads and stores with what they hold, what memories keep."""

from collections import defaultdict
from fractions import Fraction

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import transfer_rate
from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.hints import add_hints_of_tasks
from spmilp.solvers.cpsat.load_relaxation.constraints import Precedence, Retention
from spmilp.solvers.cpsat.load_relaxation.loads import LoadFrom, LoadKey, Loads
from spmilp.solvers.cpsat.model import Aim
from spmilp.solvers.cpsat.objective import weighted
from spmilp.solvers.cpsat.resources import Held, add_links, cores_run_one_task_at_a_time
from spmilp.solvers.cpsat.scope import Scope
from spmilp.solvers.cpsat.strengthen import (
    Demand,
    Share,
    cores_have_time_for_their_work,
    head_and_tail,
    shares_fit,
    tasks_keep_to_their_heads_and_tails,
    working_sets_and_others_share_a_memory,
)
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.symmetry import use_memories_in_order
from spmilp.solvers.cpsat.variables import Interval, Literal, Number, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.formulation.transfer_options import TransferOption
from spmilp.units import Cycles, EngineIdx, LinkIdx, MemoryIdx, SliceIdx


class Resources:
    """Constraints on what loads hold for certain, whatever transfer each is."""

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._model = loads.variables.model
        self._tables = loads.tables
        self._machine = loads.tables.machine
        self._destinations = self._destinations_of_links()

    def add(self) -> None:
        """Never more at a time than channels and rates allow, nor more in all than time does."""
        on_engine: dict[EngineIdx, list[Interval]] = defaultdict(list)
        on_link: dict[LinkIdx, list[Held]] = defaultdict(list)
        shares: dict[tuple[str, int], list[Share]] = defaultdict(list)
        for key, load, one in self._loads.transfers():
            head, tail = self._head_and_tail(key.slice, load)
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

    def _head_and_tail(self, slice_: SliceIdx, key: LoadKey | None) -> tuple[Cycles, Cycles]:
        """Return cycles before and after a load: it has ended when its reader starts."""
        head, tail = head_and_tail(self._tables, slice_)
        if key is not None and key.reader is not None:
            tail = max(tail, self._tables.paths.tail[key.reader])
        return head, tail

    def _common_links(self, memory: MemoryIdx, one: LoadFrom) -> list[LinkIdx]:
        """Return the links that every option holds; only its own where others may be part of it."""
        options = one.options
        common = set(options[0].links).intersection(*(option.links for option in options))
        if not one.alone:
            common = {link for link in common if self._destinations[link] == {memory}}
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

    def _least_rate(self, option: TransferOption) -> Fraction:
        """Return the rate of a transfer, or the least of a multicast that it may belong to."""
        engine = self._machine.engines[option.engine]
        if not engine.multicast:
            return option.rate
        routes = (
            self._tables.routes.between(option.source, memory.index)
            for memory in self._machine.memories
            if engine.serves(option.source, memory.index)
        )
        return min(transfer_rate(engine, route) for route in routes if route is not None)


def can_relax(tables: ProblemTables, quantity: Quantity) -> bool:
    """Say whether this relaxation knows anything of a quantity and a machine."""
    works = {tables.machine.memories[pool.memory].kind for pool in tables.pools}
    return quantity is not Quantity.PEAK_SPM and MemoryKind.DRAM not in works


class LoadRelaxation:
    """The model; ``cp`` and ``variables`` as those of a :class:`~spmilp.solvers.cpsat.model.Model`.

    Parameters
    ----------
    retention
        Whether what memories keep for readers is in the model, and each load that it needs;
        otherwise only the first loads are.
    """

    def __init__(self, tables: ProblemTables, aim: Aim, *, retention: bool) -> None:
        self.cp = cp_model.CpModel()
        self._tables = tables
        pools = tuple(tables.pools_of(task.index) for task in tables.problem.tasks)
        scope = Scope(pools=pools, candidates=(), lasting=frozenset())
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
        self._tasks_follow_their_predecessors()
        precedence = Precedence(self._loads)
        precedence.add()
        retention = Retention(self._loads, precedence.local)
        retention.add()
        Resources(self._loads).add()
        demands = [*retention.demands, *self._loads_without_reader()]
        working_sets_and_others_share_a_memory(self.variables, demands)
        tasks_keep_to_their_heads_and_tails(self.variables)
        cores_have_time_for_their_work(self.variables)

    def _tasks_follow_their_predecessors(self) -> None:
        for task, before in zip(self.variables.tasks, self._tables.predecessors, strict=True):
            self.cp.add(self.variables.makespan >= task.end)
            for earlier in before:
                self.cp.add(task.start >= self.variables.tasks[earlier].end)

    def _loads_without_reader(self) -> list[Demand]:
        """Return what is loaded into memories, save what is kept for its reader anyway."""
        return [
            Demand(key.memory, one.interval, self._tables.blocks_of(key.slice, key.memory))
            for key, load in self._loads.into.items()
            if key.reader is None
            for one in load.origins.values()
        ]

    def _objective(self, quantity: Quantity) -> Number:
        if quantity is Quantity.MAKESPAN:
            return self.variables.makespan
        terms: list[tuple[Literal, int]] = [
            (one.taken, self._least_cost(quantity, key, one))
            for key, _, one in self._loads.transfers()
        ]
        if quantity is Quantity.ENERGY:
            for task, times in zip(self._tables.problem.tasks, self.variables.tasks, strict=True):
                for pool, here in times.pools.items():
                    own = task.energy[self._tables.pools[pool].kind] if task.energy else 0
                    terms.append((here, own or 0))
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
