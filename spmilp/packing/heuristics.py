"""The heuristics by name: first answers of the portfolio, and baselines to compare with."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from spmilp.packing.conflicts import count_conflicts
from spmilp.packing.greedy import place_in_order
from spmilp.packing.instance import Instance
from spmilp.packing.orders import Keys, keys_of, order_by
from spmilp.packing.outline import Outline, outline_of
from spmilp.packing.search.arrays import Ints
from spmilp.packing.skyline import place_lowest_first

MOST_FOR_GAPS = 20_000
"""Items up to which gaps are looked for; the time is quadratic."""

Answer: TypeAlias = tuple[str, Ints]
"""A heuristic's name and its offsets in units."""

FIRST_FIT = ("size", "area", "length", "crowd")
"""Keys for first fit in decreasing order."""


def height_of(instance: Instance, offsets: Ints) -> int:
    """Return the highest byte in use plus one, fixed items included."""
    fixed = max((o.end for o in instance.obstacles if o.group >= 0), default=0)
    return max(fixed, int((offsets * instance.unit + instance.bytes).max(initial=0)))


def first_answers(instance: Instance) -> Iterator[Answer]:
    """Yield quick packings, none of which looks at a capacity: the most promising first."""
    keys = keys_of(instance)
    outline = outline_of(instance)
    if outline.apart_item.size == 0:
        yield "lowest_first_length", lowest_first(instance, outline, keys, ("length", "area"))
        yield "lowest_first_area", lowest_first(instance, outline, keys, ("area", "length"))
    if instance.count <= MOST_FOR_GAPS or outline.apart_item.size > 0:
        yield "first_fit_area", first_fit(outline, keys, "area")
        yield "best_fit_size", best_fit_by_size(outline, keys)


def baselines(instance: Instance, seed: int = 0) -> Iterator[Answer]:
    """Yield every heuristic's packing; quadratic time, for comparison.

    ``best_fit_size`` is what TFLite and XLA do, ``first_fit_conflicts`` and ``first_fit_size`` are
    TVM's greedy planners, ``hill_climb`` is like TVM's.
    """
    yield from first_answers(instance)
    keys = keys_of(instance)
    outline = outline_of(instance)
    for key in FIRST_FIT:
        if key != "area":
            yield f"first_fit_{key}", first_fit(outline, keys, key)
    yield "first_fit_conflicts", place_in_order(outline, _by_conflicts(instance), tightest=False)
    yield "first_fit_start", place_in_order(outline, _by_start(instance), tightest=False)
    yield "hill_climb", hill_climb(instance, outline, keys, rounds=300, seed=seed)


def lowest_first(instance: Instance, outline: Outline, keys: Keys, names: tuple[str, ...]) -> Ints:
    """Return offsets: always the item that can lie lowest, never below one that is placed."""
    rank = np.zeros(instance.count, dtype=np.int64)
    rank[order_by(keys, names, 0.0, np.random.default_rng(0))] = np.arange(instance.count)
    return place_lowest_first(outline, rank, instance.sections)


def first_fit(outline: Outline, keys: Keys, key: str) -> Ints:
    """Return offsets: items by decreasing key, each in its lowest gap."""
    order = order_by(keys, (key, "length"), 0.0, np.random.default_rng(0))
    return place_in_order(outline, order, tightest=False)


def best_fit_by_size(outline: Outline, keys: Keys) -> Ints:
    """Return offsets: items by decreasing size, each in its tightest gap."""
    order = order_by(keys, ("size", "length"), 0.0, np.random.default_rng(0))
    return place_in_order(outline, order, tightest=True)


def hill_climb(instance: Instance, outline: Outline, keys: Keys, *, rounds: int, seed: int) -> Ints:
    """Return offsets: first fit, with an item that reaches the top exchanged for an earlier one."""
    random = np.random.default_rng(seed)
    order = order_by(keys, ("size", "length"), 0.0, random)
    best = place_in_order(outline, order, tightest=False)
    for _ in range(rounds if instance.count > 1 else 0):
        top = int((best + instance.units).max())
        highest = np.flatnonzero(best + instance.units == top)
        here = int(np.flatnonzero(order == random.choice(highest))[0])
        there = int(random.integers(0, here)) if here else int(random.integers(1, order.size))
        changed = order.copy()
        changed[[here, there]] = order[[there, here]]
        offsets = place_in_order(outline, changed, tightest=False)
        if int((offsets + instance.units).max()) <= top:
            order, best = changed, offsets
    return best


def _by_conflicts(instance: Instance) -> Ints:
    runs = (instance.run_start, instance.run_from, instance.run_until, instance.run_units)
    degree = count_conflicts(*runs, np.iinfo(np.int64).max)
    return np.lexsort((-instance.units, -degree)).astype(np.int64)


def _by_start(instance: Instance) -> Ints:
    return np.argsort(instance.run_from[instance.run_start[:-1]], kind="stable").astype(np.int64)
