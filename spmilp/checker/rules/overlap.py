"""Find the pairs of rectangles that overlap, in the plane of cycles and bytes, by sweeping."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from spmilp.units import Bytes, Cycles


class Rectangle(NamedTuple):
    """The bytes ``[low, high)`` during the cycles ``[start, end)``; ``key`` says whose."""

    low: Bytes
    high: Bytes
    key: int
    start: Cycles
    end: Cycles


def overlapping_pairs(rectangles: Iterable[Rectangle]) -> Iterator[tuple[int, int]]:
    """Yield the keys of each two that overlap, the one that starts earlier first.

    The rectangles alive at a cycle are kept in two lists: one whose members are disjoint, so that
    those a new one meets are found by bisection, and one of those that met a member of it when they
    started. Where overlaps are rare the second is short, and the sweep takes ``n log n`` steps.
    """
    items = sorted(rectangles, key=attrgetter("start", "key"))
    ending = sorted(items, key=attrgetter("end", "key"))
    alive = _Alive()
    ended = 0
    for item in items:
        while ending[ended].end <= item.start:
            alive.remove(ending[ended])
            ended += 1
        met = alive.met_by(item)
        for earlier in met:
            yield earlier.key, item.key
        alive.add(item, met)


class _Alive:
    """The rectangles alive at one cycle."""

    def __init__(self) -> None:
        self._disjoint: list[Rectangle] = []
        self._others: dict[int, Rectangle] = {}

    def met_by(self, item: Rectangle) -> list[Rectangle]:
        """Return those that share bytes with a new one, in order of bytes, then of key."""
        met = self._disjoint_met_by(item)
        if self._others:
            met += [other for other in self._others.values() if _meet(other, item)]
            met.sort()
        return met

    def add(self, item: Rectangle, met: list[Rectangle]) -> None:
        """Add one that starts and meets these."""
        if all(other.key in self._others for other in met):
            insort(self._disjoint, item)
        else:
            self._others[item.key] = item

    def remove(self, item: Rectangle) -> None:
        """Remove one that ends; what only it kept out of the disjoint list moves there."""
        if self._others.pop(item.key, None) is not None:
            return
        del self._disjoint[bisect_left(self._disjoint, item)]
        freed = [other for other in self._others.values() if _meet(other, item)]
        for other in freed:
            del self._others[other.key]
            self.add(other, self._disjoint_met_by(other))

    def _disjoint_met_by(self, item: Rectangle) -> list[Rectangle]:
        last = position = bisect_left(self._disjoint, item)
        while last < len(self._disjoint) and self._disjoint[last].low < item.high:
            last += 1
        if position > 0 and self._disjoint[position - 1].high > item.low:
            position -= 1
        return self._disjoint[position:last]


def _meet(one: Rectangle, other: Rectangle) -> bool:
    return one.low < other.high and other.low < one.high
