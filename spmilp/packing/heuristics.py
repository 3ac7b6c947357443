"""Constructive heuristics: the first answers of the portfolio, and published ones by name.

Lowest first (for very many items: always the one that can lie lowest, on top of all below it), and
first or best fit into the gaps between placed items. They read the outline of an instance, without
a list of conflicts, so that they stay small.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.packing.arrays import Ints
from spmilp.packing.instance import Instance, live_units
from spmilp.packing.outlines import place_in_order, place_lowest_first
from spmilp.packing.result import LIMITS

Keys: TypeAlias = dict[str, NDArray[np.float64]]


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


def best_fit(instance: Instance, names: Sequence[str]) -> Ints:
    """Put items, by decreasing keys, into the tightest gap; return offsets in units."""
    order = order_by(keys_of(instance), names)
    return place_in_order(instance.outline, order, tightest=True)


HEURISTICS: dict[str, tuple[str, ...]] = {"xla": ("size", "length"), "tflite": ("size",)}
"""The keys of best fits that other projects use alone, by name: XLA's heap (openxla/xla, the global
best fit by decreasing size) and TensorFlow Lite's greedy by size."""
