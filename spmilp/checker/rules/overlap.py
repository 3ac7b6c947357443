"""Find the pairs of rectangles that overlap, in the plane of cycles and bytes, by sweeping."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
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
    items = sorted(rectangles, key=lambda item: (item.start, item.key))
    ending = sorted(items, key=lambda item: (item.end, item.key))
    alive = _Alive()
    ended = 0
    for item in items:
        while ending[ended].end <= item.start:
            alive.remove(ending[ended])
            ended += 1
        for earlier in alive.met_by(item):
            yield earlier.key, item.key
        alive.add(item)


class _Alive:
    """The rectangles alive at one cycle."""

    def __init__(self) -> None:
        self._disjoint: list[Rectangle] = []
        self._others: dict[int, Rectangle] = {}

    def met_by(self, item: Rectangle) -> list[Rectangle]:
        """Return those that share bytes with a new one, in order of bytes, then of key."""
        others = [other for other in self._others.values() if _meet(other, item)]
        return sorted([*self._disjoint_met_by(item), *others])

    def add(self, item: Rectangle) -> None:
        """Add one that starts."""
        if next(self._disjoint_met_by(item), None) is None:
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
            self.add(other)

    def _disjoint_met_by(self, item: Rectangle) -> Iterator[Rectangle]:
        position = bisect_left(self._disjoint, item)
        if position > 0 and _meet(self._disjoint[position - 1], item):
            yield self._disjoint[position - 1]
        while position < len(self._disjoint) and _meet(self._disjoint[position], item):
            yield self._disjoint[position]
            position += 1


def _meet(one: Rectangle, other: Rectangle) -> bool:
    return one.low < other.high and other.low < one.high
