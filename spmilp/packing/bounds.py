"""Proven lower bounds on the height, and conflicts among fixed items and reserved ranges."""

from itertools import combinations

import numpy as np

from spmilp.packing.instance import Instance
from spmilp.packing.obstacles import obstacles_by_section
from spmilp.packing.search.arrays import Ints


def live_units(instance: Instance) -> Ints:
    """Return the units of free items that live in each section."""
    steps = np.zeros(instance.sections + 1, dtype=np.int64)
    np.add.at(steps, instance.run_from, instance.run_units)
    np.subtract.at(steps, instance.run_until, instance.run_units)
    return np.cumsum(steps[:-1])


def section_bounds(instance: Instance) -> Ints:
    """Return for each section the least height in bytes at which its items fit.

    The free items of a section overlap neither each other nor its obstacles, so the free units
    below the top must be at least theirs. Only the topmost item may lack padding to the grain: the
    most padding that any item has is taken off.
    """
    needed = live_units(instance)
    top = needed.copy()
    if instance.obstacles:
        pointer, starts, ends = obstacles_by_section(instance)
        for section in np.flatnonzero(np.diff(pointer)):
            for k in range(pointer[section], pointer[section + 1]):
                if starts[k] >= top[section]:
                    break
                top[section] += ends[k] - starts[k]
    padding = 0
    if instance.count:
        padding = int((-instance.run_bytes % instance.grain).max())
    bounds = np.where(needed > 0, top * instance.unit - padding, 0)
    for obstacle in instance.obstacles:
        if obstacle.group >= 0:
            here = slice(obstacle.section_from, obstacle.section_until)
            bounds[here] = np.maximum(bounds[here], obstacle.end)
    return bounds


def height_bound(instance: Instance) -> int:
    """Return a proven lower bound on the height in bytes: the worst section, rounded up."""
    worst = int(section_bounds(instance).max(initial=0))
    largest = int(instance.bytes.max(initial=0))
    return next_height(instance, max(worst, largest))


def next_height(instance: Instance, height: int) -> int:
    """Return the least height in bytes, from ``height`` on, that some packing could have.

    The height is the top of a free item, a multiple of the unit plus its size, or of a fixed one.
    """
    fixed = max((o.end for o in instance.obstacles if o.group >= 0), default=0)
    if instance.count == 0:
        return max(fixed, height)
    unit = instance.unit
    residues = set((instance.bytes % unit).tolist())
    least = min(height + (residue - height) % unit for residue in residues)
    return fixed if height <= fixed < least else least


def clash_of_obstacles(instance: Instance, capacity: int | None) -> tuple[int, ...] | None:
    """Return the items of a fixed group that cannot be at its offset, and of one that blocks it."""
    fixed = [o for o in instance.obstacles if o.group >= 0]
    reserved = [o for o in instance.obstacles if o.group < 0]
    for obstacle in fixed:
        beyond = capacity is not None and obstacle.end > capacity
        if beyond or any(r.start < obstacle.end and obstacle.start < r.end for r in reserved):
            return _items_of(instance, obstacle.group)
    for a, b in combinations(fixed, 2):
        in_time = a.section_from < b.section_until and b.section_from < a.section_until
        if a.group != b.group and in_time and a.start < b.end and b.start < a.end:
            return tuple(sorted(_items_of(instance, a.group) + _items_of(instance, b.group)))
    return None


def _items_of(instance: Instance, group: int) -> tuple[int, ...]:
    return tuple(np.flatnonzero(instance.groups.of_item == group).tolist())
