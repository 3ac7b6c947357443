"""The model: tasks on cores, loads, stores, and what memories keep, with one objective."""

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.hints import add_hints_of_tasks
from spmilp.solvers.cpsat.load_relaxation.loads import LoadFrom, Loads
from spmilp.solvers.cpsat.load_relaxation.precedence import Precedence
from spmilp.solvers.cpsat.load_relaxation.resources import Resources
from spmilp.solvers.cpsat.load_relaxation.retention import Retention
from spmilp.solvers.cpsat.model import Aim
from spmilp.solvers.cpsat.objective import weighted
from spmilp.solvers.cpsat.resources import cores_run_one_task_at_a_time
from spmilp.solvers.cpsat.scope import Scope
from spmilp.solvers.cpsat.strengthen import (
    Demand,
    cores_have_time_for_their_work,
    tasks_keep_to_their_heads_and_tails,
    working_sets_and_others_share_a_memory,
)
from spmilp.solvers.cpsat.structure import Structure
from spmilp.solvers.cpsat.symmetry import use_memories_in_order
from spmilp.solvers.cpsat.variables import Literal, Number, Variables
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables


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
