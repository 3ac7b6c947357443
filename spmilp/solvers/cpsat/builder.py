"""Structures of a problem: how many residencies a slice may have in a memory, and what is exact."""

from collections import Counter
from collections.abc import Iterable

from spmilp.solvers.cpsat.multicast import rates_differ
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.scope import Scope, whole_scope
from spmilp.solvers.cpsat.structure import Structure, structure_of
from spmilp.solvers.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.formulation.places import SliceInMemory
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx

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

    def __init__(self, tables: ProblemTables, settings: CpSatOptions) -> None:
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
