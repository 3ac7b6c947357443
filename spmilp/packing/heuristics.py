"""Orders of preference: by lifetime, size, area and occupancy."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.compiled import part, standalone
from spmilp.packing.arrays import Ints
from spmilp.packing.instance import (
    Instance,
    blocked_offsets,
    count_conflicts,
    extent_over,
    list_conflicts,
    live_units,
)
from spmilp.packing.kernel import next_free
from spmilp.packing.result import Clock

Keys: TypeAlias = dict[str, NDArray[np.float64]]


def keys_of(instance: Instance) -> Keys:
    """Return for each free item its ``length`` of life, ``area``, ``size`` and ``occupancy``.

    ``occupancy`` is the most units that live in one of its sections.
    """
    owner = np.repeat(np.arange(instance.count), np.diff(instance.run_start))
    length = np.zeros(instance.count)
    occupancy = np.zeros(instance.count)
    time = instance.groups.end - instance.groups.start
    free = instance.groups.offset[instance.groups.owner] < 0
    np.add.at(length, owner, time[free].astype(float))
    live = live_units(instance)
    if owner.size:
        np.maximum.at(occupancy, owner, most_within(live, instance.run_from, instance.run_until))
    size = instance.units.astype(float)
    return {"length": length, "size": size, "area": length * size, "occupancy": occupancy}


def most_within(values: Ints, first: Ints, until: Ints) -> NDArray[np.float64]:
    """Return the greatest value in each of the ranges ``[first, until)``, none empty."""
    # reduceat takes the ranges between successive indices: every second one is asked for.
    bounds = np.stack((first, until), axis=1).reshape(-1)
    padded = np.append(values, 0)
    return np.maximum.reduceat(padded, bounds)[::2].astype(float)


def order_by(keys: Keys, names: tuple[str, ...], noise: float, random: np.random.Generator) -> Ints:
    """Return the items by decreasing keys, the first named counting most.

    Each key is multiplied by a factor ``exp(noise * x)``, ``x`` normal.
    """
    columns = []
    for name in reversed(names):
        key = keys[name]
        if noise > 0:
            key = key * np.exp(noise * random.standard_normal(key.size))
        columns.append(-key)
    return np.lexsort(columns).astype(np.int64)


class Outline(NamedTuple):
    """Free items in units; fields as in :class:`spmilp.packing.arrays.Tables`."""

    run_start: Ints
    run_from: Ints
    run_until: Ints
    run_units: Ints
    units: Ints
    alignment: Ints
    blocked_start: Ints
    blocked_from: Ints
    blocked_until: Ints


def outline_of(instance: Instance) -> Outline:
    """Return the arrays that the heuristics share."""
    blocked_start, blocked_from, blocked_until = blocked_offsets(instance)
    return Outline(
        run_start=instance.run_start,
        run_from=instance.run_from,
        run_until=instance.run_until,
        run_units=instance.run_units,
        units=instance.units,
        alignment=instance.alignment,
        blocked_start=blocked_start,
        blocked_from=blocked_from,
        blocked_until=blocked_until,
    )


@part
def needed_above(outline: Outline, lower: int, upper: int) -> int:
    """Return how far one item must lie above another where they conflict, or 0."""
    extent = 0
    a, b = outline.run_start[lower], outline.run_start[upper]
    a_last, b_last = outline.run_start[lower + 1] - 1, outline.run_start[upper + 1] - 1
    if (
        outline.run_from[a] < outline.run_until[b_last]
        and outline.run_from[b] < outline.run_until[a_last]
    ):
        if a == a_last and b == b_last:
            extent = outline.run_units[a]
        else:
            extent = extent_over(
                lower,
                upper,
                outline.run_start,
                outline.run_from,
                outline.run_until,
                outline.run_units,
            )
    return extent


def place_lowest_first(outline: Outline, rank: Ints, sections: int) -> Ints:
    """Return offsets in units; of items that can lie equally low the lower rank goes first.

    No item goes below one that is already there, so one height per section describes what is
    placed: a segment tree answers and updates it in logarithmic time.
    """
    leaves = 1 << max(0, (sections - 1).bit_length())
    items = rank.size
    offset = np.zeros(items, dtype=np.int64)
    most, whole = np.zeros(2 * leaves, dtype=np.int64), np.full(2 * leaves, -1, dtype=np.int64)
    stack_all = _stack_all.in_about(4 * items * (items + leaves).bit_length() + 2 * leaves)
    stack_all(outline, rank, np.arange(items), offset, most, whole)
    return offset


@standalone
def _stack_all(
    outline: Outline, rank: Ints, heap: Ints, offset: Ints, most: Ints, whole: Ints
) -> None:
    """Set ``offset``, from the items in ``heap`` and arrays for a tree of sections."""
    leaves = most.size // 2
    waiting = heap.size
    for item in range(waiting):
        offset[item] = next_free(outline, item, 0)
    for slot in range(waiting // 2 - 1, -1, -1):
        _sift(heap, waiting, slot, offset, rank)
    while waiting > 0:
        item = heap[0]
        top = 0
        for k in range(outline.run_start[item], outline.run_start[item + 1]):
            top = max(top, _highest(most, whole, leaves, outline.run_from[k], outline.run_until[k]))
        low = next_free(outline, item, top)
        if low > offset[item]:
            offset[item] = low
            _sift(heap, waiting, 0, offset, rank)
            continue
        waiting -= 1
        heap[0] = heap[waiting]
        _sift(heap, waiting, 0, offset, rank)
        for k in range(outline.run_start[item], outline.run_start[item + 1]):
            _raise_to(
                most,
                whole,
                leaves,
                outline.run_from[k],
                outline.run_until[k],
                low + outline.run_units[k],
            )


@part
def _sift(heap: Ints, size: int, slot: int, offset: Ints, rank: Ints) -> None:
    """Move what is at a slot of a heap down until none below it has less ``(offset, rank)``."""
    item = heap[slot]
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        if child + 1 < size and _goes_first(heap[child + 1], heap[child], offset, rank):
            child += 1
        if not _goes_first(heap[child], item, offset, rank):
            break
        heap[slot] = heap[child]
        slot = child
    heap[slot] = item


@part
def _goes_first(one: int, other: int, offset: Ints, rank: Ints) -> bool:
    """Return whether an item goes before another."""
    if offset[one] != offset[other]:
        return bool(offset[one] < offset[other])
    return bool(rank[one] < rank[other])


@part
def _highest(most: Ints, whole: Ints, leaves: int, first: int, until: int) -> int:
    """Return the greatest height in ``[first, until)``.

    ``most[node]`` is the greatest height below a node; ``whole[node]`` the height that was last
    given to its whole range, or -1. Heights only grow, so the greatest of both is true without
    pushing down.
    """
    top = 0
    left, right = first + leaves, until + leaves
    while left < right:
        if left & 1:
            top = max(top, most[left])
            left += 1
        if right & 1:
            right -= 1
            top = max(top, most[right])
        left >>= 1
        right >>= 1
    for edge in (first + leaves, until - 1 + leaves):
        node = edge >> 1
        while node > 0:
            top = max(top, whole[node])
            node >>= 1
    return top


@part
def _raise_to(most: Ints, whole: Ints, leaves: int, first: int, until: int, height: int) -> None:
    """Set the height of ``[first, until)``, nowhere lower than it was."""
    left, right = first + leaves, until + leaves
    while left < right:
        if left & 1:
            most[left] = whole[left] = height
            left += 1
        if right & 1:
            right -= 1
            most[right] = whole[right] = height
        left >>= 1
        right >>= 1
    for edge in (first + leaves, until - 1 + leaves):
        node = edge >> 1
        while node > 0:
            most[node] = max(most[node], height)
            node >>= 1


MOST_FOR_GAPS = 20_000
"""Items up to which gaps are looked for; the time is quadratic."""

Answer: TypeAlias = tuple[str, Ints]
"""A heuristic's name and its offsets in units."""


def height_of(instance: Instance, offsets: Ints) -> int:
    """Return the highest byte in use plus one, fixed items included."""
    fixed = max((o.end for o in instance.obstacles if o.group >= 0), default=0)
    return max(fixed, int((offsets * instance.unit + instance.bytes).max(initial=0)))


def first_answers(instance: Instance) -> Iterator[Answer]:
    """Yield quick packings, none of which looks at a capacity: the most promising first."""
    keys = keys_of(instance)
    outline = outline_of(instance)
    yield "lowest_first_length", lowest_first(instance, outline, keys, ("length", "area"))
    yield "lowest_first_area", lowest_first(instance, outline, keys, ("area", "length"))
    if instance.count <= MOST_FOR_GAPS:
        yield "first_fit_area", first_fit_by_area(outline, keys)
        yield "best_fit_size", best_fit_by_size(outline, keys)


def lowest_first(instance: Instance, outline: Outline, keys: Keys, names: tuple[str, ...]) -> Ints:
    """Return offsets: always the item that can lie lowest, never below one that is placed."""
    rank = np.zeros(instance.count, dtype=np.int64)
    rank[order_by(keys, names, 0.0, np.random.default_rng(0))] = np.arange(instance.count)
    return place_lowest_first(outline, rank, instance.sections)


def first_fit_by_area(outline: Outline, keys: Keys) -> Ints:
    """Return offsets: items by decreasing area, each in its lowest gap."""
    order = order_by(keys, ("area", "length"), 0.0, np.random.default_rng(0))
    return place_in_order(outline, order, tightest=False)


PUBLISHED = {"xla": ("size", "length"), "tflite": ("size",)}
"""What orders the items of heuristics that others use alone: XLA's heap (openxla/xla, the global
best fit by decreasing size), TensorFlow Lite's greedy by size."""


def best_fit_by_size(outline: Outline, keys: Keys, name: str = "xla") -> Ints:
    """Return offsets: items by decreasing size, each in its tightest gap, as TFLite and XLA do."""
    order = order_by(keys, PUBLISHED[name], 0.0, np.random.default_rng(0))
    return place_in_order(outline, order, tightest=True)


def place_in_order(outline: Outline, order: Ints, *, tightest: bool) -> Ints:
    """Return offsets in units: each item in turn at the lowest gap that holds it.

    With ``tightest`` it goes to the smallest gap instead, the lowest of equal ones; the space
    above all others counts as a gap only when no other holds it.
    """
    offset = np.full(outline.units.size, -1, dtype=np.int64)
    by_offset = np.zeros(outline.units.size, dtype=np.int64)
    place_all = _place_all.in_about(5 * order.size**2)
    place_all(outline, order, offset, by_offset, int(tightest))
    return offset


@standalone
def _place_all(outline: Outline, order: Ints, offset: Ints, by_offset: Ints, tightest: int) -> None:
    for count in range(order.size):
        item = order[count]
        offset[item] = _gap_for(outline, item, offset, by_offset, count, tightest)
        slot = count
        while slot > 0 and offset[by_offset[slot - 1]] > offset[item]:
            by_offset[slot] = by_offset[slot - 1]
            slot -= 1
        by_offset[slot] = item


@part
def _gap_for(
    outline: Outline, item: int, offset: Ints, by_offset: Ints, count: int, tightest: int
) -> int:
    floor = next_free(outline, item, 0)
    best = -1
    best_gap = 0
    for k in range(count):
        other = by_offset[k]
        above = needed_above(outline, other, item)
        if above == 0:
            continue
        gap = offset[other] - floor
        if gap >= needed_above(outline, item, other):
            if not tightest:
                return floor
            if best < 0 or gap < best_gap:
                best, best_gap = floor, gap
        if offset[other] + above > floor:
            floor = next_free(outline, item, offset[other] + above)
    return floor if best < 0 else best


ATTEMPTS = 500
WORSE = 0.5
"""Chance with which a packing twice as high is kept at the first attempt."""

SECOND = 0.75
"""Chance with which the other item of an exchange is a neighbour's neighbour."""


def greedy_by_size(instance: Instance) -> Ints:
    """Return offsets in units: by decreasing size, then by conflicts."""
    conflicts = _Conflicts(instance)
    return conflicts.stacked(conflicts.order(instance.units, conflicts.degree))


def greedy_by_conflicts(instance: Instance) -> Ints:
    """Return offsets in units: by the number of conflicts, then by size."""
    conflicts = _Conflicts(instance)
    return conflicts.stacked(conflicts.order(conflicts.degree, instance.units))


def hill_climb(instance: Instance, clock: Clock, seed: int) -> Ints:
    """Return offsets in units; the same for the same seed unless the clock ends the search."""
    conflicts, outline = _Conflicts(instance), outline_of(instance)
    random = np.random.default_rng(seed)
    order = conflicts.order(instance.units, conflicts.degree)
    best = kept = place_in_order(outline, order, tightest=False)
    lowest = height = height_of(instance, kept)
    for attempt in range(1, ATTEMPTS):
        if clock.is_up:
            break
        exchange = _exchange(instance, conflicts, order, kept, random)
        if exchange is None:
            continue
        tried = order.copy()
        tried[list(exchange)] = order[list(exchange[::-1])]
        offsets = place_in_order(outline, tried, tightest=False)
        reached = height_of(instance, offsets)
        chance = WORSE * (reached - height) / max(1, reached) / attempt
        if reached < height or random.random() < chance:
            order, kept, height = tried, offsets, reached
        if reached < lowest:
            best, lowest = offsets, reached
    return best


GREEDY: dict[str, Callable[[Instance], Ints]] = {
    "usmp:greedy_by_size": greedy_by_size,
    "usmp:greedy_by_conflicts": greedy_by_conflicts,
}
HILL_CLIMB = "usmp:hill_climb"


class _Conflicts:
    """The items with which each item must not share bytes.

    Attributes
    ----------
    degree
        How many they are.
    """

    def __init__(self, instance: Instance) -> None:
        self._outline: Outline = outline_of(instance)
        runs = instance.run_start, instance.run_from, instance.run_until, instance.run_units
        items = instance.count
        self.degree = np.zeros(items, dtype=np.int64)
        steps = items**2
        count_conflicts.in_about(steps)(*runs, self.degree, np.iinfo(np.int64).max)
        self._start = np.concatenate(([0], np.cumsum(self.degree)))
        self._other = np.zeros(self._start[-1], dtype=np.int32)
        self._extent = np.zeros(self._start[-1], dtype=np.int64)
        list_conflicts.in_about(steps)(*runs, self._start[:-1].copy(), self._other, self._extent)

    def order(self, first: Ints, then: Ints) -> Ints:
        """Return the items by decreasing keys."""
        return np.lexsort((-then, -first)).astype(np.int64)

    def of(self, item: int) -> Ints:
        """Return the items that conflict with one."""
        return self._other[self._start[item] : self._start[item + 1]].astype(np.int64)

    def stacked(self, order: Ints) -> Ints:
        """Return offsets in units: each item above all placed ones that it conflicts with."""
        offset = np.full(order.size, -1, dtype=np.int64)
        for item in order.tolist():
            others = self.of(item)
            placed = others[offset[others] >= 0]
            above = [offset[other] + self._extent_above(other, item) for other in placed.tolist()]
            offset[item] = next_free(self._outline, item, max(above, default=0))
        return offset

    def _extent_above(self, lower: int, upper: int) -> int:
        """Return how far one item lies above another at least."""
        here = self._start[lower] + int(np.flatnonzero(self.of(lower) == upper)[0])
        return int(self._extent[here])


def _exchange(
    instance: Instance,
    conflicts: _Conflicts,
    order: Ints,
    offsets: Ints,
    random: np.random.Generator,
) -> tuple[int, int] | None:
    """Return two places of the order to be exchanged; ``None`` where nothing holds the top up.

    One is of an item before one of the topmost, in conflict with it; the other too, or of an item
    before some item in conflict with that, in conflict with it.
    """
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    ends = offsets + instance.units
    topmost = np.flatnonzero(ends == ends.max())
    top = int(topmost[random.integers(topmost.size)])
    near = conflicts.of(top)
    first = near[place[near] < place[top]]
    if not first.size:
        return None
    lists = [conflicts.of(int(one)) for one in near]
    second = np.concatenate(
        [seen[place[seen] < place[one]] for one, seen in zip(near, lists, strict=True)]
    )
    one = int(first[random.integers(first.size)])
    others = second if second.size and random.random() < SECOND else first
    other = int(others[random.integers(others.size)])
    return None if one == other else (int(place[one]), int(place[other]))
