"""What overlaps: intervals in a row, rectangles of bytes by cycles."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from spmilp.units import Bytes, Cycles

Span: TypeAlias = tuple[int, int, int]
"""The interval ``[start, end)`` of something with a number."""


def clashes(spans: Iterable[Span]) -> Iterator[tuple[Span, Span]]:
    """Yield each span that begins before the end of another one, behind the last of these to end.

    The other one begins earlier, or ends earlier, or has the smaller number.
    """
    busy: Span | None = None
    for span in sorted(spans):
        if busy is not None and span[0] < busy[1]:
            yield busy, span
        if busy is None or span[1] > busy[1]:
            busy = span


class Circle(NamedTuple):
    """Cycles ``[first, first + length)``, of which the first one follows the last one."""

    first: Cycles
    length: Cycles

    def turns(self, start: Cycles, end: Cycles) -> Iterator[tuple[Cycles, Cycles]]:
        """Yield the intervals that ``[start, end)`` covers; twice all of it if it is too long."""
        left = min(end - start, 2 * self.length)
        start = self.first + (start - self.first) % self.length
        while left > 0:
            until = min(start + left, self.first + self.length)
            yield start, until
            left, start = left - (until - start), self.first


class Rectangle(NamedTuple):
    """The bytes ``[low, high)`` during the cycles ``[start, end)``; ``key`` says whose."""

    low: Bytes
    high: Bytes
    key: int
    start: Cycles
    end: Cycles


def overlapping_pairs(rectangles: Iterable[Rectangle]) -> Iterator[tuple[int, int]]:
    """Yield the keys of each two that overlap, the one that starts earlier first.

    The rectangles alive at a cycle are kept by size, in classes of powers of two, and in each class
    by address: those that a new one may meet lie side by side there. Where overlaps are rare, each
    class has at most two that it does not meet, and the sweep takes ``n log n`` steps.
    """
    items = sorted(rectangles, key=attrgetter("start", "key"))
    ending = sorted(items, key=attrgetter("end", "key"))
    alive: defaultdict[int, list[Rectangle]] = defaultdict(list)
    ended = 0
    for item in items:
        while ending[ended].end <= item.start:
            gone = ending[ended]
            alike = alive[(gone.high - gone.low).bit_length()]
            del alike[bisect_left(alike, gone)]
            ended += 1
        met: list[Rectangle] = []
        for bits, alike in alive.items():
            first = bisect_left(alike, (item.low - (1 << bits),))
            near = alike[first : bisect_left(alike, (item.high,))]
            met += [other for other in near if other.high > item.low]
        for earlier in sorted(met):
            yield earlier.key, item.key
        insort(alive[(item.high - item.low).bit_length()], item)
