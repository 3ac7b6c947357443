"""Constructive heuristics: the first answers of the portfolio.

Lowest first (:mod:`.skyline`), and first or best fit into the gaps between placed items.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.packing.instance import Instance
from spmilp.packing.orders import Keys, keys_of, order_by
from spmilp.packing.outline import Outline, needed_above, outline_of
from spmilp.packing.search.arrays import Ints
from spmilp.packing.search.fit import next_free
from spmilp.packing.skyline import place_lowest_first

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
    if outline.apart_item.size == 0:
        yield "lowest_first_length", lowest_first(instance, outline, keys, ("length", "area"))
        yield "lowest_first_area", lowest_first(instance, outline, keys, ("area", "length"))
    if instance.count <= MOST_FOR_GAPS or outline.apart_item.size > 0:
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


def best_fit_by_size(outline: Outline, keys: Keys) -> Ints:
    """Return offsets: items by decreasing size, each in its tightest gap, as TFLite and XLA do."""
    order = order_by(keys, ("size", "length"), 0.0, np.random.default_rng(0))
    return place_in_order(outline, order, tightest=True)


def place_in_order(outline: Outline, order: Ints, *, tightest: bool) -> Ints:
    """Return offsets in units: each item in turn at the lowest gap that holds it.

    With ``tightest`` it goes to the smallest gap instead, the lowest of equal ones; the space
    above all others counts as a gap only when no other holds it.
    """
    offset = np.full(outline.units.size, -1, dtype=np.int64)
    by_offset = np.zeros(outline.units.size, dtype=np.int64)
    _place_all(outline, order, offset, by_offset, tightest)
    return offset


@kernel
def _place_all(
    outline: Outline, order: Ints, offset: Ints, by_offset: Ints, tightest: bool
) -> None:
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
    outline: Outline, item: int, offset: Ints, by_offset: Ints, count: int, tightest: bool
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
