"""Sweeps for what overlaps: bytes of a memory over time, elements of a DRAM tensor over time."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from operator import add, attrgetter
from typing import NamedTuple

from spmilp.checker.rules.case import Case
from spmilp.plan.plan import Residency
from spmilp.units import Box, Bytes, Cycles, ResidencyIdx, SliceIdx


class _AtBox:
    """The residencies of one box of a tensor, by their start: written ones, and initial ones.

    Two residencies that nothing writes show the same bytes as at cycle 0, and may share them.
    """

    def __init__(self) -> None:
        self.written: list[Residency] = []
        self.initial: list[Residency] = []

    def add(self, residency: Residency) -> None:
        (self.written if _is_written(residency) else self.initial).append(residency)


def overlapping_boxes(case: Case) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield each two residencies at their places that share elements at some cycle.

    Two that are both there at cycle 0 show the same bytes, and nothing writes them: they may.

    Boxes that occur are few, and residencies at one box many. Which boxes share elements is found
    once; residencies at such boxes are then swept in time. That takes ``n log n`` steps for ``n``
    residencies at one box, besides the pairs that are found.
    """
    per_tensor: dict[int, dict[Box, _AtBox]] = {}
    written: set[int] = set()
    by_start = sorted(case.plan.residencies, key=lambda each: (each.start, each.index))
    for residency in by_start:
        home = case.home[residency.index]
        if home is not None and residency.slice is not None:
            box = _box_in_tensor(case, residency.slice)
            per_tensor.setdefault(home, {}).setdefault(box, _AtBox()).add(residency)
            if _is_written(residency):
                written.add(home)
    for tensor in sorted(written):
        at_box = per_tensor[tensor]
        for one, other in _boxes_that_share_elements(at_box):
            yield from _pairs_at(at_box[one], at_box[other])


def _boxes_that_share_elements(boxes: Iterable[Box]) -> Iterator[tuple[Box, Box]]:
    """Yield each box with itself and with those that it overlaps, by a sweep along one axis.

    Along the axis that separates the boxes best, most of them have ended when the next one begins.
    """
    distinct = sorted(boxes)
    axes = range(len(distinct[0]))
    axis = max(axes, key=lambda a: (len({box[a] for box in distinct}), -a), default=None)
    if axis is not None:
        distinct.sort(key=lambda box: box[axis])
    alive: list[Box] = []
    for box in distinct:
        if axis is not None:
            alive = [other for other in alive if other[axis][1] > box[axis][0]]
        yield box, box
        for other in alive:
            if _share_elements(other, box):
                yield other, box
        alive.append(box)


def _pairs_at(one: _AtBox, other: _AtBox) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the residencies at two boxes, or at one, that exist at the same cycle and conflict."""
    if one is other:
        yield from _within(one.written)
    else:
        yield from _between(one.written, other.written)
        yield from _between(one.initial, other.written)
    yield from _between(one.written, other.initial)


def _within(residencies: list[Residency]) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    alive: list[tuple[Cycles, ResidencyIdx]] = []
    for later in residencies:
        for earlier in _still_there(alive, later.start):
            yield earlier, later.index
        heappush(alive, (later.end, later.index))


def _between(
    ones: list[Residency], others: list[Residency]
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    if not ones or not others:
        return
    alive: tuple[list[tuple[Cycles, ResidencyIdx]], ...] = ([], [])
    merged = [(each, 0) for each in ones] + [(each, 1) for each in others]
    merged.sort(key=lambda item: (item[0].start, item[0].index))
    for later, side in merged:
        for earlier in _still_there(alive[1 - side], later.start):
            yield earlier, later.index
        heappush(alive[side], (later.end, later.index))


def _still_there(alive: list[tuple[Cycles, ResidencyIdx]], cycle: Cycles) -> list[ResidencyIdx]:
    """Drop what has ended by a cycle from a heap by ends, and return the rest by index."""
    while alive and alive[0][0] <= cycle:
        heappop(alive)
    return sorted(index for _, index in alive)


def _box_in_tensor(case: Case, slice_: SliceIdx) -> Box:
    """Return the elements of the tensor at which a slice of a placed buffer lies."""
    part = case.problem.slices[slice_]
    place = case.problem.buffers[part.buffer].place
    start = part.start if place is None else tuple(map(add, place.start, part.start))
    return tuple((first, first + count) for first, count in zip(start, part.extent, strict=True))


def _is_written(residency: Residency) -> bool:
    return residency.filled_by_task is not None or residency.filled_by_transfer is not None


def _share_elements(one: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


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
