"""Scopes and structures of a problem: how often a slice may stay where, and what is exact."""

from collections import Counter
from collections.abc import Iterable

from spmilp.machine.machine import MemoryKind
from spmilp.solvers.cpsat.multicast import rates_differ
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.scope import Scope, whole_scope
from spmilp.solvers.cpsat.structure import Structure, structure_of
from spmilp.solvers.formulation.candidates import CandidateMemories, CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, SliceIdx

SMALL = 12
"""Tasks up to which memories that no core works in get several stays from the beginning too."""


class Builder:
    """Makes the structures of one problem; the numbers of stays only ever grow.

    Attributes
    ----------
    ample
        Whether slices may last in memories with room for everything at once. Given up where a
        packing shows that reserved ranges or the peak stand against it.
    """

    def __init__(self, tables: ProblemTables, settings: CpSatOptions) -> None:
        self._tables = tables
        self._settings = settings
        self._candidates = CandidateMemories(tables)
        self._raised: Counter[tuple[SliceIdx, MemoryIdx]] = Counter()
        self._least: dict[tuple[SliceIdx, MemoryIdx], int] = {}
        self._made: dict[tuple[bool, bool, frozenset[MemoryIdx]], Structure] = {}
        self.ample = True

    def represent(self, reading: Reading) -> None:
        """Have as many stays as a plan has."""
        for pair, count in reading.counts.items():
            if count > self._least.get(pair, 0):
                self._least[pair] = count
                self._made.clear()

    def raise_stays(self, stays: Iterable[CandidateResidency]) -> bool:
        """Allow one more stay of some slices; say whether the settings let that be."""
        pairs = {stay[:2] for stay in stays}
        able = [pair for pair in pairs if self._count(pair) < self._settings.most_stays]
        for pair in able:
            self._raised[pair] += 1
            self._made.clear()
        return bool(able)

    def scope(self, *, relaxed: bool) -> Scope:
        """Return the scope of the whole problem."""
        counts = {
            (slice_, memory): self._count((slice_, memory))
            for slice_ in self._candidates.slices()
            for memory in self._candidates.of(slice_)
        }
        return whole_scope(
            self._tables, self._candidates, counts, relaxed=relaxed, ample=self.ample
        )

    def structure(self, *, relaxed: bool, moving: frozenset[MemoryIdx] = frozenset()) -> Structure:
        """Return the structure of the whole problem; ``moving`` as in ``structure_of``."""
        key = relaxed, self.ample, moving
        if key not in self._made:
            self._made[key] = structure_of(self._tables, self.scope(relaxed=relaxed), moving)
        return self._made[key]

    def is_exact(self) -> bool:
        """Say whether the model of plans is as good as the relaxation: nothing limits it."""
        plans, relaxed = self.scope(relaxed=False), self.structure(relaxed=True)
        same = set(plans.stays) == set(relaxed.shapes)
        return (
            same
            and not any(shape.open for shape in relaxed.shapes.values())
            and not plans.conflicts
            and not rates_differ(self._tables)
        )

    def _count(self, pair: tuple[SliceIdx, MemoryIdx]) -> int:
        wanted = self._usual(pair) + self._raised[pair]
        return max(wanted, self._least.get(pair, 0))

    def _usual(self, pair: tuple[SliceIdx, MemoryIdx]) -> int:
        """Return the stays that a slice has at first: one if it is read once there at most."""
        slice_, memory = pair
        tables = self._tables
        working = any(pool.memory == memory for pool in tables.pools)
        kind = tables.machine.memories[memory].kind
        if not working or kind is MemoryKind.DRAM:
            return self._settings.stays if len(tables.problem.tasks) <= SMALL else 1
        whole = slice_ < len(tables.problem.buffers)
        slices = (slice_, *(tables.parts[slice_] if whole else ()))
        reads = sum(
            memory in tables.memories_of(task) for s in slices for task, _ in tables.readers[s]
        )
        writer = tables.writers[slice_] if whole else None
        born = writer is not None and memory in tables.memories_of(writer)
        initial = whole and tables.problem.buffers[slice_].starts_in == memory
        return min(self._settings.stays, max(1, reads + born + initial))
