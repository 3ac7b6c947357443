"""Reserved ranges and fixed items, as seen by each free item and by each section."""

import numpy as np

from spmilp.packing.instance import Instance, Obstacle
from spmilp.packing.search.arrays import Ints


def blocked_offsets(instance: Instance) -> tuple[Ints, Ints, Ints]:
    """Return the offsets in units that each free item cannot have: pointers, starts, ends.

    Intervals are half-open and sorted by start; they may overlap. Sizes count as given, without
    padding: an item may end right below an obstacle.
    """
    parts = [_blocked_by(instance, obstacle) for obstacle in instance.obstacles]
    parts += _blocked_by_pairs(instance)
    pointer = np.zeros(instance.count + 1, dtype=np.int64)
    if not parts:
        return pointer, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    item, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((start, item))
    np.cumsum(np.bincount(item, minlength=instance.count), out=pointer[1:])
    return pointer, start[order], end[order]


def _blocked_by(instance: Instance, obstacle: Obstacle) -> tuple[Ints, Ints, Ints]:
    meets = (instance.run_from < obstacle.section_until) & (
        instance.run_until > obstacle.section_from
    )
    runs = np.flatnonzero(meets)
    owner = np.repeat(np.arange(instance.count), np.diff(instance.run_start))[runs]
    return _offsets_that_touch(
        instance, owner, instance.run_bytes[runs], obstacle.start, obstacle.end
    )


def _blocked_by_pairs(instance: Instance) -> list[tuple[Ints, Ints, Ints]]:
    """Return what fixed items forbid to free ones that must lie apart from them."""
    items = instance.problem.items
    groups = instance.groups
    number = {int(group): i for i, group in enumerate(instance.group)}
    parts = []
    for pair in instance.problem.apart:
        for free, fixed in (pair, pair[::-1]):
            item = number.get(int(groups.of_item[free]), -1)
            start = int(groups.offset[groups.of_item[fixed]])
            if item >= 0 and start >= 0:
                owner = np.array([item], dtype=np.int64)
                size = np.array([items[free].size], dtype=np.int64)
                end = start + items[fixed].size
                parts.append(_offsets_that_touch(instance, owner, size, start, end))
    return parts


def _offsets_that_touch(
    instance: Instance, owner: Ints, size: Ints, start: int, end: int
) -> tuple[Ints, Ints, Ints]:
    alignment = instance.alignment_bytes[owner]
    first = np.maximum(0, ((start - size) // alignment + 1) * alignment)
    past = -(-end // alignment) * alignment
    return owner, -(-first // instance.unit), past // instance.unit


def obstacles_by_section(instance: Instance) -> tuple[Ints, Ints, Ints]:
    """Return the obstacles of each section in units, disjoint, from low to high.

    What an obstacle takes from items of rounded size begins at its start rounded up to the grain;
    fractions of a unit at its edges are not counted.
    """
    pointer = np.zeros(instance.sections + 1, dtype=np.int64)
    starts: list[int] = []
    ends: list[int] = []
    for section in range(instance.sections if instance.obstacles else 0):
        first = len(starts)
        for start, end in _units_taken(instance, section):
            if len(starts) > first and start <= ends[-1]:
                ends[-1] = max(ends[-1], end)
            elif start < end:
                starts.append(start)
                ends.append(end)
        pointer[section + 1] = len(starts)
    return pointer, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


def _units_taken(instance: Instance, section: int) -> list[tuple[int, int]]:
    grain, unit = instance.grain, instance.unit
    return sorted(
        (
            -(-(-(-obstacle.start // grain) * grain) // unit),
            -(-obstacle.end // grain) * grain // unit,
        )
        for obstacle in instance.obstacles
        if obstacle.section_from <= section < obstacle.section_until
    )
