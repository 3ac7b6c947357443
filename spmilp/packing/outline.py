"""The tables that the heuristics read: no list of conflicts, so that they stay small."""

from typing import NamedTuple

import numpy as np

from spmilp.compiled import part
from spmilp.packing.conflicts import extent_over
from spmilp.packing.instance import Instance, apart_extents
from spmilp.packing.obstacles import blocked_offsets
from spmilp.packing.search.arrays import Ints


class Outline(NamedTuple):
    """Free items in units; fields as in :class:`spmilp.packing.search.arrays.Tables`.

    ``apart_*``: the items each item must not share bytes with though they do not live together, and
    how far above it they have to lie when it is the lower one.
    """

    run_start: Ints
    run_from: Ints
    run_until: Ints
    run_units: Ints
    units: Ints
    alignment: Ints
    blocked_start: Ints
    blocked_from: Ints
    blocked_until: Ints
    apart_start: Ints
    apart_item: Ints
    apart_extent: Ints


def outline_of(instance: Instance) -> Outline:
    """Return the arrays that the heuristics share."""
    blocked_start, blocked_from, blocked_until = blocked_offsets(instance)
    apart = sorted(apart_extents(instance).items())
    lower = np.array([a for (a, _), _ in apart], dtype=np.int64)
    apart_start = np.zeros(instance.count + 1, dtype=np.int64)
    np.cumsum(np.bincount(lower, minlength=instance.count), out=apart_start[1:])
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
        apart_start=apart_start,
        apart_item=np.array([b for (_, b), _ in apart], dtype=np.int64),
        apart_extent=np.array([extent for _, extent in apart], dtype=np.int64),
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
    for k in range(outline.apart_start[lower], outline.apart_start[lower + 1]):
        if outline.apart_item[k] == upper:
            extent = max(extent, outline.apart_extent[k])
    return extent
