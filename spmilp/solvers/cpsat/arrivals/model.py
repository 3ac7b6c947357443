"""The relaxation to arrivals as a model that can be run."""

from ortools.sat.python import cp_model

from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import paths_of
from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.solvers.cpsat.arrivals.arrivals import Arrivals
from spmilp.solvers.cpsat.arrivals.carried import Carried
from spmilp.solvers.cpsat.arrivals.kept import Kept
from spmilp.solvers.cpsat.arrivals.kinds import Kind
from spmilp.solvers.cpsat.arrivals.origins import Origins
from spmilp.solvers.cpsat.arrivals.reads import Reads
from spmilp.solvers.cpsat.hints import add_hints_of_tasks
from spmilp.solvers.cpsat.objective import weighted
from spmilp.solvers.cpsat.reading import Reading
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
from spmilp.units import Cycles


def can_relax(tables: ProblemTables, quantity: Quantity) -> bool:
    """Say whether this relaxation knows anything of a quantity and a machine."""
    memories = tables.machine.memories
    works = {memories[pool.memory].kind for pool in tables.pools}
    return quantity is not Quantity.PEAK_SPM and MemoryKind.DRAM not in works


class ArrivalsModel:
    """The model; ``cp`` and ``variables`` as those of a :class:`~spmilp.solvers.cpsat.model.Model`.

    Parameters
    ----------
    floor, best
        A lower bound on the quantity, and the value of the best plan.
    reading
        A plan, for the order of equal memories.
    keeping
        Whether what memories keep for readers is in the model, and each arrival that it needs;
        otherwise only the first arrivals are.
    """

    def __init__(
        self,
        tables: ProblemTables,
        *,
        quantity: Quantity,
        horizon: Cycles,
        floor: int,
        best: int | None,
        reading: Reading | None,
        keeping: bool,
    ) -> None:
        self.cp = cp_model.CpModel()
        self._tables = tables
        pools = tuple(tables.pools_of(task.index) for task in tables.problem.tasks)
        empty = Structure(
            scope=Scope(pools=pools, stays=(), lasting=frozenset()), shapes={}, servers={}
        )
        self.variables = Variables(self.cp, tables, empty, horizon)
        self._arrivals = Arrivals(self.cp, tables, self.variables, told_apart=keeping)
        self._add_all(reading)
        self.cp.minimize(self._objective(quantity))
        self.low, self.high = floor, best
        if reading is not None:
            add_hints_of_tasks(self.cp, tables, self.variables, reading)

    def _add_all(self, reading: Reading | None) -> None:
        shared = self.cp, self._tables, self.variables
        paths = paths_of(self._tables.problem, Movement(self._tables.problem))
        self._cores_run_one_task_at_a_time()
        self._tasks_follow_their_predecessors()
        origins = Origins(*shared, self._arrivals)
        origins.add()
        reads = Reads(*shared, self._arrivals, origins)
        reads.add()
        kept = Kept(*shared, self._arrivals, reads.local)
        kept.add()
        Carried(*shared, self._arrivals, paths).add()
        working_sets_and_others_share_a_memory(*shared, [*kept.demands, *self._arriving()])
        tasks_keep_to_their_heads_and_tails(self.cp, self.variables, paths)
        cores_have_time_for_their_work(*shared, paths)
        use_memories_in_order(*shared, reading)

    def _arriving(self) -> list[Demand]:
        """Return what arrives in memories, save what is kept for its reader anyway."""
        slices = self._tables.problem.slices
        return [
            Demand(
                key.memory,
                kind.interval,
                self._tables.blocks(slices[key.slice].bytes, key.memory),
            )
            for key, arrival in self._arrivals.into.items()
            if key.reader is None
            for kind in arrival.kinds.values()
        ]

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

    def _objective(self, quantity: Quantity) -> Number:
        if quantity is Quantity.MAKESPAN:
            return self.variables.makespan
        terms: list[tuple[Literal, int]] = []
        for stay, _, kind in self._arrivals.all_kinds():
            terms.append((kind.taken, self._least_cost(quantity, stay, kind)))
        if quantity is Quantity.ENERGY:
            for task, times in zip(self._tables.problem.tasks, self.variables.tasks, strict=True):
                for pool, here in times.pools.items():
                    own = task.energy[self._tables.pools[pool].kind] if task.energy else 0
                    terms.append((here, own or 0))
        return weighted(terms)

    def _least_cost(self, quantity: Quantity, stay: CandidateResidency, kind: Kind) -> int:
        """Return the traffic or energy of the way that has the least.

        What comes out of a DRAM for several memories at once is paid for there once.
        """
        size = self._tables.problem.slices[stay.slice].bytes
        energy = quantity is Quantity.ENERGY
        memories = self._tables.machine.memories
        if stay.slice in self._arrivals.shared and stay.memory < 0:
            source = memories[kind.ways[0].source]
            return size * (source.energy_per_byte or 0) if energy else size
        if kind.alone:
            return min(way.energy if energy else way.traffic for way in kind.ways)
        if energy:
            return size * (memories[stay.memory].energy_per_byte or 0)
        return size if self._arrivals.is_dram(stay.memory) else 0
