"""The three algorithms of TVM's memory planner (USMP, RFC 0009; apache/tvm, src/tir/usmp/algo).

``greedy_by_size`` and ``greedy_by_conflicts`` place items in a fixed order, each above all items
that live with it and are placed, whatever gaps there are below. ``hill_climb`` places items in the
lowest gap, looks at what lies topmost, exchanges two items that hold it up in the order, and places
all anew, 500 times; what is worse is kept with a chance that falls.

There, pools are several and names break ties; here there is one memory, and items come as they were
given. Gaps in lives and reserved bytes, which USMP does not have, are treated by the same rules.
``hill_climb`` returns the lowest packing that it has seen, USMP the last that it has kept.
"""

from collections.abc import Callable

import numpy as np

from spmilp.packing.heuristics import Outline, height_of, outline_of, place_in_order
from spmilp.packing.instance import Instance
from spmilp.packing.obstacles import count_conflicts, list_conflicts
from spmilp.packing.result import Clock
from spmilp.packing.search.arrays import Ints
from spmilp.packing.search.place import next_free

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
