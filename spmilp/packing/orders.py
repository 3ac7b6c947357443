"""Orders of preference: by lifetime, size, area and occupancy."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.packing.bounds import live_units
from spmilp.packing.instance import Instance
from spmilp.packing.search.arrays import Ints

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
