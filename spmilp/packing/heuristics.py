"""Constructive heuristics: the first answers of the portfolio, and published ones by name.

Lowest first (for very many items: always the one that can lie lowest, on top of all below it), and
first or best fit into the gaps between placed items. They read the outline of an instance, without
a list of conflicts, so that they stay small.

``hill_climb`` is that of TVM's memory planner (USMP, RFC 0009; apache/tvm, src/tir/usmp/algo). It
knows conflicts: it places items in the lowest gap, looks at what lies topmost, exchanges two items
that hold it up in the order, and places all anew, 500 times; what is worse is kept with a chance
that falls. There, pools are several and names break ties; here there is one memory, and items come
as they were given. Gaps in lives and reserved bytes, which USMP does not have, are treated by the
same rules. It returns the lowest packing that it has seen, USMP the last that it has kept.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.packing.arrays import Ints
from spmilp.packing.instance import Instance, conflicts_of, live_units
from spmilp.packing.outlines import place_in_order, place_lowest_first
from spmilp.packing.result import LIMITS, Clock

ATTEMPTS = 500
WORSE = 0.5
"""Chance with which a packing twice as high is kept at the first attempt of the climb."""
SECOND = 0.75
"""Chance with which the other item of an exchange is a neighbour's neighbour."""

Keys: TypeAlias = dict[str, NDArray[np.float64]]
Heuristic: TypeAlias = Callable[[Instance, Clock, int], Ints]
"""From an instance, a clock and a seed to offsets in units."""


def keys_of(instance: Instance) -> Keys:
    """Return for each free item its ``length`` of life, ``area``, ``size`` and ``occupancy``.

    ``occupancy`` is the most units that live in one of its sections.
    """
    length, occupancy = np.zeros(instance.count), np.zeros(instance.count)
    time = instance.groups.end - instance.groups.start
    free = instance.groups.offset[instance.groups.owner] < 0
    np.add.at(length, instance.owner, time[free].astype(float))
    outline = instance.outline
    if instance.owner.size:
        # reduceat takes the ranges between successive indices: every second one is asked for.
        bounds = np.stack((outline.run_from, outline.run_until), axis=1).reshape(-1)
        most = np.maximum.reduceat(np.append(live_units(instance), 0), bounds)[::2]
        np.maximum.at(occupancy, instance.owner, most.astype(float))
    size = outline.units.astype(float)
    return {"length": length, "size": size, "area": length * size, "occupancy": occupancy}


def order_by(
    keys: Keys, names: Sequence[str], noise: float = 0.0, random: np.random.Generator | None = None
) -> Ints:
    """Return the items by decreasing keys, the first named counting most.

    Each key is multiplied by a factor ``exp(noise * x)``, ``x`` normal.
    """
    columns = []
    for name in reversed(names):
        key = keys[name]
        if noise > 0 and random is not None:
            key = key * np.exp(noise * random.standard_normal(key.size))
        columns.append(-key)
    return np.lexsort(columns).astype(np.int64)


def first_answers(instance: Instance) -> Iterator[tuple[str, Ints]]:
    """Yield quick packings, none of which looks at a capacity: the most promising first."""
    keys, outline = keys_of(instance), instance.outline
    for name, names in (
        ("lowest_first_length", ("length", "area")),
        ("lowest_first_area", ("area", "length")),
    ):
        yield name, place_lowest_first(outline, order_by(keys, names), instance.sections)
    if instance.count <= LIMITS.items_for_gaps:
        order = order_by(keys, ("area", "length"))
        yield "first_fit_area", place_in_order(outline, order, tightest=False)
        order = order_by(keys, ("size", "length"))
        yield "best_fit_size", place_in_order(outline, order, tightest=True)


def _best_fit(*names: str) -> Heuristic:
    """Return the heuristic that puts items, by decreasing keys, into the tightest gap."""
    return lambda instance, clock, seed: place_in_order(
        instance.outline, order_by(keys_of(instance), names), tightest=True
    )


def hill_climb(instance: Instance, clock: Clock, seed: int) -> Ints:
    """Return offsets in units; the same for the same seed unless the clock ends the search."""
    conflicts = conflicts_of(instance, np.iinfo(np.int64).max)
    if conflicts is None:
        raise ValueError(f"{instance.count} items have too many conflicts")
    neighbours = np.split(conflicts.item.astype(np.int64), conflicts.start[1:-1])
    outline, random = instance.outline, np.random.default_rng(seed)
    order = np.lexsort((-np.diff(conflicts.start), -outline.units))
    best = kept = place_in_order(outline, order, tightest=False)
    lowest = height = instance.height(kept)
    for attempt in range(1, ATTEMPTS):
        if clock.is_up:
            break
        exchange = _exchange(neighbours, order, kept + outline.units, random)
        if exchange is None:
            continue
        tried = order.copy()
        tried[list(exchange)] = order[list(exchange[::-1])]
        offsets = place_in_order(outline, tried, tightest=False)
        reached = instance.height(offsets)
        chance = WORSE * (reached - height) / max(1, reached) / attempt
        if reached < height or random.random() < chance:
            order, kept, height = tried, offsets, reached
        if reached < lowest:
            best, lowest = offsets, reached
    return best


def _exchange(
    neighbours: Sequence[Ints], order: Ints, ends: Ints, random: np.random.Generator
) -> tuple[int, int] | None:
    """Return two places of the order to be exchanged; ``None`` if nothing holds the top up.

    Let t be a random one of the topmost items. The first place is of an item that conflicts with t
    and comes before t in the order. The second is of another such item, or (with chance ``SECOND``)
    of an item that conflicts with some neighbour of t and comes before that one.
    """
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    top = int(random.choice(np.flatnonzero(ends == ends.max())))
    near = neighbours[top]
    first = near[place[near] < place[top]]
    if not first.size:
        return None
    lists = [(one, neighbours[one]) for one in near]
    second = np.concatenate([seen[place[seen] < place[one]] for one, seen in lists])
    others = second if second.size and random.random() < SECOND else first
    one, other = int(random.choice(first)), int(random.choice(others))
    return None if one == other else (int(place[one]), int(place[other]))


HEURISTICS: dict[str, Heuristic] = {
    "xla": _best_fit("size", "length"),
    "tflite": _best_fit("size"),
    "usmp:hill_climb": hill_climb,
}
"""Heuristics that other projects use alone, by name: XLA's heap (openxla/xla, the global best fit
by decreasing size), TensorFlow Lite's greedy by size, and the hill climb of TVM."""
