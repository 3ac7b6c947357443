"""Where something can lie in a memory, and what it lies upon.

*Normal addresses.* Take a valid plan and lower its residencies one by one as long as one can go
down by the least step that keeps alignment and residue. It stays valid, and its peak does not rise.
At the end each residency (with those in place of each other, which move together) has below it, at
less than that step, the end of a reserved range, of a tensor or of another residency, or address 0.
So an address that is reached from 0 or the end of a reserved range by adding sizes and rounding up
is enough for every residency; those are the ones tried.

*Eviction.* A residency may end after its last use, and nothing but the room it takes is lost by
letting it stay. So contents leave a memory only when something is put on their bytes.

*Spacious memories.* Where all that could ever lie in a memory fits side by side, each in bytes of
its own, nothing has to leave and addresses need no thought; what is said above is left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lcm

from spmilp.solvers.bruteforce.given import Given, free_ranges
from spmilp.solvers.bruteforce.state import Layout, Stay
from spmilp.units import Bytes, MemoryIdx, align_up


@dataclass(frozen=True, slots=True)
class Item:
    """Something that is to lie in a memory.

    Parameters
    ----------
    over
        The stay in whose place it lies; ``None`` for an address of its own.
    is_placed
        Whether it lies at its place in a tensor.
    """

    stay: Stay
    bytes: Bytes
    over: int | None = None
    is_placed: bool = False


@dataclass(frozen=True, slots=True)
class Placing:
    """Items put into a memory: the stays they push out, and all resulting layouts.

    Parameters
    ----------
    evicted
        Positions of the stays; their columns are still in the layouts.
    """

    evicted: frozenset[int]
    layouts: frozenset[Layout] | None


class Room:
    """The bytes of one memory."""

    def __init__(self, given: Given, memory: MemoryIdx) -> None:
        self._given = given
        self._memory = memory
        problem = given.problem
        self._tensors = [t.bytes for t in problem.tensors if t.memory == memory]
        self._packed = [
            part.bytes for part in problem.slices if given.home(part.index, memory) is None
        ]
        self._scratch = [
            task.scratch for task in problem.tasks if task.scratch and memory in given.worked_in
        ]
        self._alignment = given.machine.memories[memory].alignment
        self._ranges = free_ranges(given, memory)
        self.is_spacious = self._holds_everything()
        self.tensors = 0 if self.is_spacious else len(self._tensors)
        """Columns of a layout that stand before those of the stays."""
        self._normal = () if self.is_spacious else self._normal_addresses()
        self._candidates: dict[tuple[Bytes, int], tuple[Bytes, ...]] = {}

    def addresses(self, size: Bytes, residue: int = -1) -> tuple[Bytes, ...]:
        """Return the normal addresses at which so many bytes lie inside the memory."""
        key = size, residue
        if key not in self._candidates:
            self._candidates[key] = tuple(
                address
                for address in self._normal
                if self._fits(address, size)
                and (residue < 0 or address % self._given.modulus == residue)
            )
        return self._candidates[key]

    def first_layouts(self, anchors: Sequence[int]) -> frozenset[Layout] | None:
        """Return the addresses that the tensors can have, for given residues."""
        if self.is_spacious:
            return None
        found: set[Layout] = {()}
        for size, residue in zip(self._tensors, anchors, strict=True):
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

    def placings(
        self, stays: Sequence[Stay], layouts: frozenset[Layout] | None, items: Sequence[Item]
    ) -> Iterable[Placing]:
        """Return every way to put items into the memory, one for each set of stays pushed out."""
        pushed = self._clashing(stays, items)
        if pushed is None:
            return []
        if layouts is None:
            return [Placing(pushed, None)]
        sizes = [*self._tensors, *(self._size(stay) for stay in stays)]
        found: dict[frozenset[int], set[Layout]] = {pushed: set(layouts)}
        for item in items:
            found = self._with_item(stays, sizes, found, item)
            sizes.append(item.bytes)
        return [Placing(evicted, frozenset(ways)) for evicted, ways in found.items()]

    def _with_item(
        self,
        stays: Sequence[Stay],
        sizes: Sequence[Bytes],
        before: dict[frozenset[int], set[Layout]],
        item: Item,
    ) -> dict[frozenset[int], set[Layout]]:
        found: dict[frozenset[int], set[Layout]] = {}
        for evicted, layouts in before.items():
            for layout in layouts:
                for address in self._tried(layout, item):
                    pushed = self._pushed(stays, sizes, evicted, layout, item, address)
                    if pushed is not None:
                        found.setdefault(pushed, set()).add((*layout, address))
        return found

    def _tried(self, layout: Layout, item: Item) -> tuple[Bytes, ...]:
        if item.is_placed:
            return (-1,)
        if item.over is None:
            return self.addresses(item.bytes, item.stay.residue)
        address = layout[self.tensors + item.over]
        return (address,) if self._fits(address, item.bytes) else ()

    def _pushed(
        self,
        stays: Sequence[Stay],
        sizes: Sequence[Bytes],
        evicted: frozenset[int],
        layout: Layout,
        item: Item,
        address: Bytes,
    ) -> frozenset[int] | None:
        """Return what has to go for an item at an address; ``None`` if that cannot."""
        if item.is_placed:
            return evicted
        more = []
        first, last = self.tensors, self.tensors + len(stays)
        for column, (other, size) in enumerate(zip(layout, sizes, strict=True)):
            if other < 0 or address >= other + size or other >= address + item.bytes:
                continue
            if not first <= column < last:
                return None
            position = column - first
            if position in evicted or position == item.over:
                continue
            if not may_go(stays[position]):
                return None
            more.append(position)
        return evicted.union(more) if more else evicted

    def _clashing(self, stays: Sequence[Stay], items: Sequence[Item]) -> frozenset[int] | None:
        """Return the stays that lie where items have their places; ``None`` if one must stay."""
        found = set()
        for item in items:
            if not item.is_placed:
                continue
            clashes = self._given.clashes[item.stay.slice]
            for position, stay in enumerate(stays):
                if stay.slice in clashes and self._given.home(stay.slice, self._memory) is not None:
                    if not may_go(stay):
                        return None
                    found.add(position)
        return frozenset(found)

    def _size(self, stay: Stay) -> Bytes:
        problem = self._given.problem
        if stay.slice < 0:
            return problem.tasks[-1 - stay.slice].scratch
        return problem.slices[stay.slice].bytes

    def _fits(self, address: Bytes, size: Bytes) -> bool:
        return any(
            start <= address and (stop is None or address + size <= stop)
            for start, stop in self._ranges
        )

    def _holds_everything(self) -> bool:
        """Say whether one free range has room for all, each on bytes of its own."""
        step = lcm(self._alignment, self._given.modulus)
        slack = step if self._given.modulus > 1 else 0
        wanted = sum(
            align_up(size, self._alignment) + slack
            for size in (*self._tensors, *self._packed, *self._scratch)
        )
        return any(
            stop is None or align_up(start, step) + wanted <= stop for start, stop in self._ranges
        )

    def _normal_addresses(self) -> tuple[Bytes, ...]:
        step = lcm(self._alignment, self._given.modulus)
        limit = max((stop for _, stop in self._ranges if stop is not None), default=0)
        sizes = {*self._tensors, *self._packed, *self._scratch}
        reached: set[Bytes] = set()
        ends = [start for start, _ in self._ranges]
        while ends:
            lowest = align_up(ends.pop(), self._alignment)
            for address in range(lowest, min(lowest + step, limit), self._alignment):
                if address not in reached:
                    reached.add(address)
                    ends += [address + size for size in sizes if address + size < limit]
        return tuple(sorted(reached))


def may_go(stay: Stay) -> bool:
    """Say whether a stay can end now: nothing uses it, and it has been of use."""
    return stay.busy_for == 0 and stay.used
