"""Bytes that an item may not have: reserved ranges, fixed items, and items that live with it."""

import numpy as np

from spmilp.compiled import part, standalone
from spmilp.packing.instance import Instance, Obstacle
from spmilp.packing.search.arrays import Ints, Shorts


def blocked_offsets(instance: Instance) -> tuple[Ints, Ints, Ints]:
    """Return the offsets in units that each free item cannot have: pointers, starts, ends.

    Intervals are half-open and sorted by start; they may overlap. Sizes count as given, without
    padding: an item may end right below an obstacle.
    """
    parts = [_blocked_by(instance, obstacle) for obstacle in instance.obstacles]
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


@part
def extent_over(
    lower: int, upper: int, run_start: Ints, run_from: Ints, run_until: Ints, run_units: Ints
) -> int:
    """Return how far ``upper`` must lie above ``lower``: its most units while both live, or 0."""
    needed = 0
    other, last = run_start[upper], run_start[upper + 1]
    for k in range(run_start[lower], run_start[lower + 1]):
        while other < last and run_until[other] <= run_from[k]:
            other += 1
        if other < last and run_from[other] < run_until[k]:
            needed = max(needed, run_units[k])
    return needed


@standalone
def count_conflicts(
    run_start: Ints, run_from: Ints, run_until: Ints, run_units: Ints, degree: Ints, limit: int
) -> None:
    """Add each item's number of conflicts; stop soon after the total passes ``limit``."""
    items = run_start.size - 1
    total = 0
    for i in range(items):
        first, last = run_from[run_start[i]], run_until[run_start[i + 1] - 1]
        for j in range(i + 1, items):
            if run_from[run_start[j]] >= last or run_until[run_start[j + 1] - 1] <= first:
                continue
            if extent_over(i, j, run_start, run_from, run_until, run_units) > 0:
                degree[i] += 1
                degree[j] += 1
                total += 2
        if total > limit:
            break


@standalone
def list_conflicts(
    run_start: Ints,
    run_from: Ints,
    run_until: Ints,
    run_units: Ints,
    filled: Ints,
    other: Shorts,
    extent: Ints,
) -> None:
    """Fill in the conflicting items of each item, and how far above it each has to lie.

    ``filled`` is where the next one of each item goes; extents are left out where their array is
    empty.
    """
    items = run_start.size - 1
    for i in range(items):
        first, last = run_from[run_start[i]], run_until[run_start[i + 1] - 1]
        for j in range(i + 1, items):
            if run_from[run_start[j]] >= last or run_until[run_start[j + 1] - 1] <= first:
                continue
            above_i = extent_over(i, j, run_start, run_from, run_until, run_units)
            if above_i == 0:
                continue
            if extent.size > 0:
                extent[filled[i]] = above_i
                extent[filled[j]] = extent_over(j, i, run_start, run_from, run_until, run_units)
            other[filled[i]] = j
            other[filled[j]] = i
            filled[i] += 1
            filled[j] += 1
