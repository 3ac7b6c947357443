"""Addresses for the residencies of a finished plan, found by trying all orders.

Of all layouts of residencies with known lifetimes there is one in which nothing can be lower (see
:mod:`.capacity`). There, in the order of addresses, each lies as low as those before it that live
at the same time allow. So an order decides everything, and trying all orders finds a layout if
there is one. Residencies in place of each other count as one. Those that are pinned to addresses
stand in the way of others from the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from spmilp.units import Bytes, Cycles, MemoryIdx, align_up
from tests.oracle.tables import ProblemTables, free_ranges

MOST_TRIES = 1000
"""Tries before the search for a lower peak gives up; the search for plans finds what it misses."""


@dataclass(frozen=True, slots=True)
class Block:
    """Residencies at one address: ``(start, end, bytes)`` of each; an end of ``None`` is never.

    Parameters
    ----------
    names
        In the order of ``parts``.
    residue
        Of the address modulo the engines' congruences; -1 where it does not matter.
    fixed
        The address to which it is pinned; ``None`` for any.
    """

    names: tuple[str | int, ...]
    parts: tuple[tuple[Cycles, Cycles | None, Bytes], ...]
    residue: int
    fixed: Bytes | None = None


class AddressSearch:
    """Finds addresses for blocks in one memory."""

    def __init__(self, tables: ProblemTables, memory: MemoryIdx, blocks: Sequence[Block]) -> None:
        self._modulus = tables.modulus
        self._alignment = tables.machine.memories[memory].alignment
        self._ranges = free_ranges(tables, memory)
        self._blocks = tuple(sorted(blocks, key=lambda block: block.parts[0][0]))
        self._pinned = {
            index: block.fixed
            for index, block in enumerate(self._blocks)
            if block.fixed is not None
        }
        self._limit: Bytes | None = None
        self._tries: int | None = None

    def lowest(self) -> dict[str | int, Bytes] | None:
        """Return addresses of a peak as low as a limited search finds; ``None`` without any."""
        best = self._solve(None, None)
        while best:
            better = self._solve(self._peak(best) - 1, MOST_TRIES)
            if better is None:
                break
            best = better
        return best if best is None else self._by_name(best)

    def any(self) -> dict[str | int, Bytes] | None:
        """Return addresses; ``None`` if there are none."""
        found = self._solve(None, None)
        return found if found is None else self._by_name(found)

    def _solve(self, limit: Bytes | None, tries: int | None) -> dict[int, Bytes] | None:
        self._limit, self._tries = limit, tries
        if limit is not None and self._peak(self._pinned) > limit:
            return None
        return self._extended(dict(self._pinned), 0)

    def _extended(self, placed: dict[int, Bytes], lowest: Bytes) -> dict[int, Bytes] | None:
        if len(placed) == len(self._blocks):
            return placed
        if self._tries is not None:
            self._tries -= 1
            if self._tries < 0:
                return None
        for index, block in enumerate(self._blocks):
            if index in placed:
                continue
            address = self._lowest_address(block, placed, lowest)
            if address is not None:
                found = self._extended(placed | {index: address}, address)
                if found is not None:
                    return found
        return None

    def _lowest_address(
        self, block: Block, placed: dict[int, Bytes], lowest: Bytes
    ) -> Bytes | None:
        above, pinned = lowest, list[tuple[Bytes, Bytes]]()
        for other, address in placed.items():
            for start, end, size in self._blocks[other].parts:
                if not any(_at_once((start, end), (a, b)) for a, b, _ in block.parts):
                    continue
                if other in self._pinned:
                    pinned.append((address, address + size))
                else:
                    above = max(above, address + size)
        size = max(size for _, _, size in block.parts)
        for start, stop in self._ranges:
            address = self._rounded_up(max(start, above), block.residue)
            for low, high in sorted(pinned):
                if low < address + size and address < high:
                    address = self._rounded_up(high, block.residue)
            ends = [limit for limit in (stop, self._limit) if limit is not None]
            if all(address + size <= end for end in ends):
                return address
        return None

    def _rounded_up(self, address: Bytes, residue: int) -> Bytes:
        """Return the next aligned address with a residue; there is one in each common multiple."""
        first = align_up(address, self._alignment)
        for candidate in range(first, first + lcm(self._alignment, self._modulus), self._alignment):
            if residue < 0 or candidate % self._modulus == residue:
                return candidate
        return first

    def _peak(self, placed: dict[int, Bytes]) -> Bytes:
        return max(
            (
                address + size
                for index, address in placed.items()
                for _, _, size in self._blocks[index].parts
            ),
            default=0,
        )

    def _by_name(self, placed: dict[int, Bytes]) -> dict[str | int, Bytes]:
        return {
            name: address for index, address in placed.items() for name in self._blocks[index].names
        }


def _at_once(one: tuple[Cycles, Cycles | None], other: tuple[Cycles, Cycles | None]) -> bool:
    return (one[1] is None or other[0] < one[1]) and (other[1] is None or one[0] < other[1])
