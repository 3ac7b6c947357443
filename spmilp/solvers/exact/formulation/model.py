"""CP-SAT models of a problem: the structures that they are made from, and one within a scope."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from spmilp.problem.objective import Quantity
from spmilp.solvers.exact.formulation.candidates import (
    CandidateMemories,
    CandidateResidency,
    Reading,
    Scope,
    Structure,
    structure_of,
    whole_scope,
)
from spmilp.solvers.exact.formulation.capacity import Addressed, CapacityModel
from spmilp.solvers.exact.formulation.constraints import Constraints, rates_differ
from spmilp.solvers.exact.formulation.objective import Objectives
from spmilp.solvers.exact.formulation.strengthen import (
    ModelOptions,
    strengthen,
)
from spmilp.solvers.exact.formulation.tables import ProblemTables, SliceInMemory
from spmilp.solvers.exact.formulation.translation import add_hints
from spmilp.solvers.exact.formulation.variables import Variables
from spmilp.units import Cycles, MemoryIdx

SMALL = 12
"""Tasks up to which slices begin with several residencies in memories without cores, too."""


class StructureBuilder:
    """Makes the structures of one problem; the numbers of candidates only ever grow.

    Attributes
    ----------
    ample
        Whether slices may last in memories with space for everything at once. Given up where a
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
        """Return the structure of the whole problem; ``addressed`` as in ``structure_of``."""
        key = relaxed, self.ample, addressed
        if key not in self._made:
            self._made[key] = structure_of(self._tables, self.scope(relaxed=relaxed), addressed)
        return self._made[key]

    def is_exact(self) -> bool:
        """Say whether the model of plans is as good as the relaxation: nothing limits it."""
        plans, relaxed = self.scope(relaxed=False), self.structure(relaxed=True)
        same = set(plans.candidates) == set(relaxed.lifecycles)
        return (
            same
            and not any(lifecycle.open for lifecycle in relaxed.lifecycles.values())
            and not plans.conflicts
            and not rates_differ(self._tables)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a model makes small, and what is known of it.

    Parameters
    ----------
    horizon
        A cycle by which the plans that are looked for have ended.
    floor, best
        A lower bound on the quantity, and its value in the best plan.
    ceilings
        Largest values allowed of other quantities.
    reading
        The best plan, to start from.
    """

    quantity: Quantity
    horizon: Cycles
    floor: int
    best: int | None = None
    ceilings: Mapping[Quantity, int] = field(default_factory=dict)
    reading: Reading | None = None


class Model:
    """A model with its variables and an objective."""

    def __init__(
        self,
        tables: ProblemTables,
        structure: Structure,
        aim: Aim,
        addressed: Addressed,
        settings: ModelOptions,
    ) -> None:
        self.cp = cp_model.CpModel()
        self.variables = Variables(self.cp, tables, structure, aim.horizon)
        Constraints(self.variables, CapacityModel(self.variables, addressed)).add_all()
        has_addresses = addressed.anything() or bool(tables.fixed_memories)
        strengthen(self.variables, settings, addressed=has_addresses)
        objectives = Objectives(self.variables)
        for other, limit in aim.ceilings.items():
            self.cp.add(objectives.of(other) <= limit)
        self.cp.minimize(objectives.of(aim.quantity))
        self.low, self.high = aim.floor, aim.best
        if aim.reading is not None:
            add_hints(self.variables, aim.reading)
