"""A packing problem: items with lifetimes, one memory, and pairs that have one offset."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from spmilp.units import Bytes, Cycles

LARGEST = 2**60
"""Bytes and times stay below this, so that sums over an instance stay inside 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A run of bytes that keeps one offset over one or several lifetimes.

    Parameters
    ----------
    size
        Bytes. Positive.
    lifetimes
        Half-open ``(start, end)`` in any unit of time, sorted and disjoint. Between two of them the
        bytes are free for others, and the item returns to the same offset.
    alignment
        The offset is a multiple of this number of bytes.
    offset
        Where the item has to lie; ``None`` when the packing decides.

    Raises a ``ValueError`` if a number is out of its range, or a lifetime empty or out of order.
    """

    size: Bytes
    lifetimes: tuple[tuple[Cycles, Cycles], ...]
    alignment: Bytes = 1
    offset: Bytes | None = None

    def __post_init__(self) -> None:
        if not 0 < self.size < LARGEST:
            raise ValueError(f"size is {self.size} B, expected 1 to {LARGEST - 1}")
        if not 0 < self.alignment < LARGEST:
            raise ValueError(f"alignment is {self.alignment} B, expected 1 to {LARGEST - 1}")
        if not self.lifetimes:
            raise ValueError("there is no lifetime, expected at least one")
        for start, end in self.lifetimes:
            if not -LARGEST < start < end < LARGEST:
                raise ValueError(f"lifetime [{start}, {end}) is empty or beyond ±{LARGEST}")
        for (_, end), (start, _) in pairwise(self.lifetimes):
            if start < end:
                raise ValueError(f"a lifetime starts at {start}, before the one before ends, {end}")
        if self.offset is not None and not 0 <= self.offset < LARGEST:
            raise ValueError(f"offset is {self.offset} B, expected 0 to {LARGEST - 1}")
        if self.offset is not None and self.offset % self.alignment:
            raise ValueError(f"offset {self.offset} B is no multiple of {self.alignment} B")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingProblem:
    """Items that share one memory.

    Parameters
    ----------
    items
        Referred to by position.
    capacity
        Bytes of the memory; ``None`` when only the least height is asked for.
    reserved
        Half-open byte ranges that no item may touch.
    together
        Pairs of items, by position, that must have the same offset and may share bytes while both
        live (an update in place).

    Raises a ``ValueError`` if a pair or a range is malformed.
    """

    items: tuple[Item, ...]
    capacity: Bytes | None
    reserved: tuple[tuple[Bytes, Bytes], ...] = ()
    together: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.capacity is not None and not 0 <= self.capacity < LARGEST:
            raise ValueError(f"capacity is {self.capacity} B, expected 0 to {LARGEST - 1}")
        for start, end in self.reserved:
            if not 0 <= start < end < LARGEST:
                raise ValueError(f"reserved range [{start}, {end}) is empty or negative")
        count = len(self.items)
        for first, second in self.together:
            if first == second or not (0 <= first < count and 0 <= second < count):
                raise ValueError(f"pair ({first}, {second}) does not name two of {count} items")
        if sum(item.size for item in self.items) >= LARGEST:
            raise ValueError(f"the sizes add up to {LARGEST} B or more")

    def part(self, items: Sequence[int]) -> "PackingProblem":
        """Return the problem of some of its items; pairs that lose one are dropped."""
        place = {item: i for i, item in enumerate(items)}
        both = tuple((place[a], place[b]) for a, b in self.together if a in place and b in place)
        return replace(self, items=tuple(self.items[item] for item in items), together=both)


def busiest(items: Iterable[Item]) -> tuple[Cycles, Cycles, Bytes]:
    """Return the first time span with the most live bytes, and how many; all 0 without items."""
    steps = Counter[int]()
    for item in items:
        for start, end in item.lifetimes:
            steps[start] += item.size
            steps[end] -= item.size
    peak, live = (0, 0, 0), 0
    for start, end in pairwise(sorted(steps)):
        live += steps[start]
        if live > peak[2]:
            peak = (start, end, live)
    return peak
