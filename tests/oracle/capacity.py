"""Capacity of a memory: where something can lie, and what it overwrites.

*Normal addresses.* Take a valid plan and lower its residencies one by one as long as one can go
down by the least step that keeps alignment and residue. It stays valid, and its peak does not
rise. At the end each residency (with those in place of each other, which move together) has below
it, at less than that step, the end of a reserved range, of a tensor or of another residency, or
address 0. So every residency can lie at an address that is reached from 0 or the end of a reserved
range by adding sizes and rounding up; only those are tried. What is pinned to an address
stays there, and others may lie above it.

*Eviction.* A residency may end after its last use, and letting it stay costs nothing but
bytes. So contents leave a memory only when something is put on their bytes.

*Unconstrained memories.* Where all that could ever lie in a memory fits side by side, each in bytes
of its own, nothing has to leave and addresses do not matter: no layouts are kept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lcm

from spmilp.units import Bytes, MemoryIdx, align_up
from tests.oracle.state import Layout, LiveResidency
from tests.oracle.tables import ProblemTables, free_ranges


@dataclass(frozen=True, slots=True)
class Item:
    """Something that is to lie in a memory.

    Parameters
    ----------
    in_place_of
        The residency in whose place it lies; ``None`` for an address of its own.
    is_placed
        Whether it lies at its place in a tensor.
    """

    residency: LiveResidency
    bytes: Bytes
    in_place_of: int | None = None
    is_placed: bool = False


@dataclass(frozen=True, slots=True)
class Insertion:
    """Items put into a memory: the residencies they evict, and all resulting layouts.

    Parameters
    ----------
    evicted
        Positions of the residencies; their columns are still in the layouts.
    """

    evicted: frozenset[int]
    layouts: frozenset[Layout] | None


class CapacityModel:
    """The bytes of one memory, and every layout of its contents."""

    def __init__(self, tables: ProblemTables, memory: MemoryIdx) -> None:
        self._tables = tables
        self._memory = memory
        problem = tables.problem
        self._tensors = [t.bytes for t in problem.tensors if t.memory == memory]
        self._packed = [
            part.bytes for part in problem.slices if tables.home(part.index, memory) is None
        ]
        self._scratch = [
            task.scratch for task in problem.tasks if task.scratch and memory in tables.worked_in
        ]
        self._alignment = tables.machine.memories[memory].alignment
        self._ranges = free_ranges(tables, memory)
        self.is_unconstrained = self._holds_everything()
        self.tensors = 0 if self.is_unconstrained else len(self._tensors)
        """Columns of a layout that stand before those of the residencies."""
        self._normal = () if self.is_unconstrained else self._normal_addresses()
        self._candidates: dict[tuple[Bytes, int], tuple[Bytes, ...]] = {}

    def addresses(self, size: Bytes, residue: int = -1) -> tuple[Bytes, ...]:
        """Return the normal addresses at which so many bytes lie inside the memory."""
        key = size, residue
        if key not in self._candidates:
            self._candidates[key] = tuple(
                address
                for address in self._normal
                if self._fits(address, size)
                and (residue < 0 or address % self._tables.modulus == residue)
            )
        return self._candidates[key]

    def first_layouts(self, tensor_residues: Sequence[int]) -> frozenset[Layout] | None:
        """Return the addresses that the tensors can have, with given residues."""
        if self.is_unconstrained:
            return None
        found: set[Layout] = {()}
        for size, residue in zip(self._tensors, tensor_residues, strict=True):
            found = {
                (*layout, address)
                for layout in found
                for address in self.addresses(size, residue)
                if not any(
                    address < other + bytes_ and other < address + size
                    for other, bytes_ in zip(layout, self._tensors, strict=False)
                )
            }
        return frozenset(found)

    def insertions(
        self,
        residencies: Sequence[LiveResidency],
        layouts: frozenset[Layout] | None,
        items: Sequence[Item],
    ) -> Iterable[Insertion]:
        """Return every way to put items into the memory, one for each set of evictions."""
        evicted = self._clashing(residencies, items)
        if evicted is None:
            return []
        if layouts is None:
            return [Insertion(evicted, None)]
        sizes = [*self._tensors, *(self._size(residency) for residency in residencies)]
        found: dict[frozenset[int], set[Layout]] = {evicted: set(layouts)}
        for item in items:
            found = self._with_item(residencies, sizes, found, item)
            sizes.append(item.bytes)
        return [Insertion(evicted, frozenset(some)) for evicted, some in found.items()]

    def _with_item(
        self,
        residencies: Sequence[LiveResidency],
        sizes: Sequence[Bytes],
        before: dict[frozenset[int], set[Layout]],
        item: Item,
    ) -> dict[frozenset[int], set[Layout]]:
        found: dict[frozenset[int], set[Layout]] = {}
        for evicted, layouts in before.items():
            for layout in layouts:
                for address in self._tried(layout, item):
                    after = self._evicted_by(residencies, sizes, evicted, layout, item, address)
                    if after is not None:
                        found.setdefault(after, set()).add((*layout, address))
        return found

    def _tried(self, layout: Layout, item: Item) -> tuple[Bytes, ...]:
        if item.is_placed:
            return (-1,)
        pinned = self._tables.address(item.residency.slice, self._memory)
        if item.in_place_of is None:
            able = self.addresses(item.bytes, item.residency.residue)
            return able if pinned is None else tuple(a for a in able if a == pinned)
        address = layout[self.tensors + item.in_place_of]
        is_able = self._fits(address, item.bytes) and pinned in (None, address)
        return (address,) if is_able else ()

    def _evicted_by(
        self,
        residencies: Sequence[LiveResidency],
        sizes: Sequence[Bytes],
        evicted: frozenset[int],
        layout: Layout,
        item: Item,
        address: Bytes,
    ) -> frozenset[int] | None:
        """Return the evictions for an item at an address; ``None`` if something must stay."""
        if item.is_placed:
            return evicted
        more = []
        first, last = self.tensors, self.tensors + len(residencies)
        for column, (other, size) in enumerate(zip(layout, sizes, strict=True)):
            if other < 0 or address >= other + size or other >= address + item.bytes:
                continue
            if not first <= column < last:
                return None
            position = column - first
            if position in evicted or position == item.in_place_of:
                continue
            if not may_go(residencies[position]):
                return None
            more.append(position)
        return evicted.union(more) if more else evicted

    def _clashing(
        self, residencies: Sequence[LiveResidency], items: Sequence[Item]
    ) -> frozenset[int] | None:
        """Return the residencies at the places of the items; ``None`` if one must stay."""
        found = set()
        for item in items:
            if not item.is_placed:
                continue
            clashes = self._tables.clashes[item.residency.slice]
            for position, residency in enumerate(residencies):
                if (
                    residency.slice in clashes
                    and self._tables.home(residency.slice, self._memory) is not None
                ):
                    if not may_go(residency):
                        return None
                    found.add(position)
        return frozenset(found)

    def _size(self, residency: LiveResidency) -> Bytes:
        problem = self._tables.problem
        if residency.slice < 0:
            return problem.tasks[-1 - residency.slice].scratch
        return problem.slices[residency.slice].bytes

    def _fits(self, address: Bytes, size: Bytes) -> bool:
        return any(
            start <= address and (stop is None or address + size <= stop)
            for start, stop in self._ranges
        )

    def _holds_everything(self) -> bool:
        """Say whether all fit into one free range, each on bytes of its own."""
        step = lcm(self._alignment, self._tables.modulus)
        slack = step if self._tables.modulus > 1 else 0
        wanted = sum(
            align_up(size, self._alignment) + slack
            for size in (*self._tensors, *self._packed, *self._scratch)
        )
        if self._tables.addresses(self._memory):
            return False
        return any(
            stop is None or align_up(start, step) + wanted <= stop for start, stop in self._ranges
        )

    def _normal_addresses(self) -> tuple[Bytes, ...]:
        step = lcm(self._alignment, self._tables.modulus)
        limit = max((stop for _, stop in self._ranges if stop is not None), default=0)
        sizes = {*self._tensors, *self._packed, *self._scratch}
        reached: set[Bytes] = set()
        ends = [start for start, _ in self._ranges] + self._tables.addresses(self._memory)
        while ends:
            lowest = align_up(ends.pop(), self._alignment)
            for address in range(lowest, min(lowest + step, limit), self._alignment):
                if address not in reached:
                    reached.add(address)
                    ends += [address + size for size in sizes if address + size < limit]
        return tuple(sorted(reached))


def may_go(residency: LiveResidency) -> bool:
    """Say whether a residency can end now: nothing uses it, and it has been of use."""
    return residency.busy_for == 0 and residency.used
