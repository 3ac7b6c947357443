"""CP-SAT models of a problem: their quantities, and the structures that they are made of."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ortools.sat.python import cp_model

from spmilp.machine.machine import MemoryKind
from spmilp.problem.objective import Quantity
from spmilp.solvers.exact.formulation.candidates import (
    CandidateMemories,
    CandidateResidency,
    Reading,
    Scope,
    Structure,
    StructureFinder,
    whole_scope,
)
from spmilp.solvers.exact.formulation.capacity import Addressed, CapacityModel
from spmilp.solvers.exact.formulation.circular import CircularModel
from spmilp.solvers.exact.formulation.constraints import Constraints
from spmilp.solvers.exact.formulation.tables import ProblemTables, SliceInMemory
from spmilp.solvers.exact.formulation.translation import Hints
from spmilp.solvers.exact.formulation.variables import Literal, Number, ResidencyVars, Variables
from spmilp.units import Cycles, MemoryIdx


class Objectives:
    """Builds the expression of each quantity; the peak needs addresses in the model."""

    def __init__(self, variables: Variables) -> None:
        self._model = variables.model
        self._tables = variables.tables
        self._vars = variables

    def of(self, quantity: Quantity) -> Number:
        """Return an expression of a quantity; of the peak, one that is at least as large."""
        return {
            Quantity.MAKESPAN: lambda: self._vars.makespan,
            Quantity.DRAM_TRAFFIC: self._traffic,
            Quantity.ENERGY: self._energy,
            Quantity.PEAK_SPM: self._peak,
        }[quantity]()

    def _traffic(self) -> Number:
        """Bytes of transfers, once at the source and once at each destination, if a DRAM."""
        terms: list[tuple[Literal, int]] = []
        for residency in self._vars.residencies.values():
            terms += [(taken, option.traffic) for option, taken in residency.options.items()]
            kind = self._tables.machine.memories[residency.key.memory].kind
            if kind is MemoryKind.DRAM:
                size = self._tables.problem.slices[residency.key.slice].bytes
                terms += [(joins, size) for joins in residency.roots.values()]
        return weighted(terms)

    def _energy(self) -> Number:
        """Of each task in its pool, and of the transfers' memories and links."""
        tables = self._tables
        terms = [
            (here, task.energy[tables.pools[pool].kind] or 0)
            for task, times in zip(tables.problem.tasks, self._vars.tasks, strict=True)
            for pool, here in times.pools.items()
            if task.energy
        ]
        for residency in self._vars.residencies.values():
            terms += [(taken, option.energy) for option, taken in residency.options.items()]
            terms += self._energy_of_multicasts(residency)
        return weighted(terms)

    def _energy_of_multicasts(self, residency: ResidencyVars) -> list[tuple[Literal, int]]:
        machine, key = self._tables.machine, residency.key
        size = self._tables.problem.slices[key.slice].bytes
        own = machine.memories[key.memory].energy_per_byte or 0
        terms = [(joins, size * own) for joins in residency.roots.values()]
        for option in residency.options:
            for link, held in self._vars.extra_links.get((key, option), {}).items():
                terms.append((held, size * (machine.links[link].energy_per_byte or 0)))
        return terms

    def _peak(self) -> Number:
        sizes = [
            memory.size
            for memory in self._tables.machine.memories
            if memory.kind is MemoryKind.SPM and memory.size is not None
        ]
        peak = self._model.new_int_var(0, max(sizes, default=0), "peak")
        for (memory_index, item), offset in self._vars.offsets.items():
            memory = self._tables.machine.memories[memory_index]
            if memory.kind is not MemoryKind.SPM:
                continue
            if isinstance(item, CandidateResidency):
                size = self._tables.problem.slices[item.slice].bytes
                here = self._vars.residencies[item].present
            else:
                size = self._tables.problem.tasks[item].scratch
                here = self._vars.tasks[item].memories[memory_index]
            self._model.add(peak >= offset * memory.alignment + size).only_enforce_if(here)
        return peak


def weighted(terms: list[tuple[Literal, int]]) -> Number:
    """Return the sum of literals times weights."""
    kept = [(literal, weight) for literal, weight in terms if weight]
    return cp_model.LinearExpr.weighted_sum(
        [literal for literal, _ in kept], [weight for _, weight in kept]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What a model has: addresses, and how many residencies.

    With ``addresses_in_model`` the model knows every address (``no_overlap_2d``) rather than only
    what a packing has shown to be needed; the peak is always made small with addresses. ``None``:
    where traffic or energy is to be small and all tasks work in one memory, for there much of a
    plan is its packing. A slice has so many ``residencies`` in a memory whose space is short, to
    begin with; that is raised up to ``most_residencies`` where the proof needs it.
    """

    addresses_in_model: bool | None = None
    residencies: int = 2
    most_residencies: int = 4


SMALL = 12
"""Tasks up to which slices begin with several residencies in memories without cores, too."""


class StructureBuilder:
    """Makes the structures of one problem; the numbers of candidates only ever grow.

    ``ample``: slices may last in memories with space for everything at once. It is given up where a
    packing shows that reserved ranges or the peak stand against it.
    """

    def __init__(self, tables: ProblemTables, settings: ModelOptions) -> None:
        self._tables = tables
        self._settings = settings
        self._memories = CandidateMemories(tables)
        self._raised: Counter[SliceInMemory] = Counter()
        self._least: dict[SliceInMemory, int] = {}
        self._made: dict[tuple[bool, bool, frozenset[MemoryIdx]], Structure] = {}
        self.ample = True

    def represent(self, reading: Reading) -> None:
        """Have as many candidates as a plan has residencies."""
        for pair, count in reading.counts.items():
            if count > self._least.get(pair, 0):
                self._least[pair] = count
                self._made.clear()

    def add_candidates(self, used_late: Iterable[CandidateResidency]) -> bool:
        """Allow one more residency of some slices; say whether the settings let that be."""
        pairs = {key[:2] for key in used_late}
        able = [pair for pair in pairs if self._count(pair) < self._settings.most_residencies]
        for pair in able:
            self._raised[pair] += 1
            self._made.clear()
        return bool(able)

    def scope(self, *, relaxed: bool) -> Scope:
        """Return the scope of the whole problem."""
        counts = {
            (slice_, memory): self._count((slice_, memory))
            for slice_ in self._memories.slices()
            for memory in self._memories.of(slice_)
        }
        return whole_scope(self._tables, self._memories, counts, relaxed=relaxed, ample=self.ample)

    def structure(
        self, *, relaxed: bool, addressed: frozenset[MemoryIdx] = frozenset()
    ) -> Structure:
        """Return the structure of the whole problem; see :class:`.StructureFinder`."""
        key = relaxed, self.ample, addressed
        if key not in self._made:
            finder = StructureFinder(self._tables, self.scope(relaxed=relaxed), addressed)
            self._made[key] = finder.structure()
        return self._made[key]

    def is_exact(self) -> bool:
        """Say whether the model of plans is as good as the relaxation: nothing limits it."""
        plans, relaxed = self.scope(relaxed=False), self.structure(relaxed=True)
        same = set(plans.candidates) == set(relaxed.lifecycles)
        return (
            same
            and not any(lifecycle.open for lifecycle in relaxed.lifecycles.values())
            and not plans.conflicts
            and not any(engine.multicast for engine in self._tables.machine.engines)
        )

    def _count(self, pair: SliceInMemory) -> int:
        if self._tables.is_resident(*pair):
            return 1
        wanted = self._usual(pair) + self._raised[pair]
        return max(wanted, self._least.get(pair, 0))

    def _usual(self, pair: SliceInMemory) -> int:
        """Return the residencies at first: one if the slice is read once there at most."""
        slice_, memory = pair
        tables, usual = self._tables, self._settings.residencies
        working = any(pool.memory == memory for pool in tables.pools)
        if not working or tables.is_dram(memory):
            return usual if len(tables.problem.tasks) <= SMALL else 1
        whole = slice_ < len(tables.problem.buffers)
        slices = (slice_, *(tables.parts[slice_] if whole else ()))
        reads = sum(
            memory in tables.memories_of(task) for s in slices for task, _ in tables.readers[s]
        )
        writer = tables.writers[slice_] if whole else None
        born = writer is not None and memory in tables.memories_of(writer)
        initial = whole and tables.problem.buffers[slice_].starts_in == memory
        return min(usual, max(1, reads + born + initial))


class Model:
    """A model with its variables and an objective.

    The ``quantity`` is made small. Plans that are looked for have ended by the cycle ``horizon``.
    ``low`` is a lower bound on the quantity, ``high`` its value in the best plan, which ``reading``
    is, to start from; ``ceilings`` are the largest values allowed of other quantities.
    """

    def __init__(
        self,
        tables: ProblemTables,
        structure: Structure,
        addressed: Addressed,
        quantity: Quantity,
        *,
        horizon: Cycles,
        low: int,
        high: int | None,
        ceilings: Mapping[Quantity, int],
        reading: Reading | None,
    ) -> None:
        self.low, self.high = low, high
        period = structure.scope.period
        self.cp = cp_model.CpModel() if period is None else CircularModel(period)
        self.variables = Variables(self.cp, tables, structure, horizon)
        Constraints(self.variables, CapacityModel(self.variables, addressed)).add_all()
        objectives = Objectives(self.variables)
        for other, limit in ceilings.items():
            self.cp.add(objectives.of(other) <= limit)
        self.cp.minimize(objectives.of(quantity))
        if reading is not None:
            Hints(self.variables, reading).add()
