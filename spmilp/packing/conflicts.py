"""Which items may not share bytes, as flat lists."""

import numpy as np

from spmilp.compiled import compiled, part
from spmilp.packing.search.arrays import Ints, Shorts


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


@compiled
def count_conflicts(
    run_start: Ints, run_from: Ints, run_until: Ints, run_units: Ints, limit: int
) -> Ints:
    """Return each item's number of conflicts; stop soon after the total passes ``limit``."""
    items = run_start.size - 1
    degree = np.zeros(items, np.int64)
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
    return degree


@compiled
def list_conflicts(
    run_start: Ints,
    run_from: Ints,
    run_until: Ints,
    run_units: Ints,
    degree: Ints,
    with_extents: bool,
) -> tuple[Ints, Shorts, Ints]:
    """Return pointers, the conflicting items of each item, and what each has to lie above it."""
    items = run_start.size - 1
    pointer = np.zeros(items + 1, np.int64)
    for i in range(items):
        pointer[i + 1] = pointer[i] + degree[i]
    filled = pointer[:-1].copy()
    other = np.empty(pointer[items], np.int32)
    extent = np.empty(pointer[items] if with_extents else 0, np.int64)
    for i in range(items):
        first, last = run_from[run_start[i]], run_until[run_start[i + 1] - 1]
        for j in range(i + 1, items):
            if run_from[run_start[j]] >= last or run_until[run_start[j + 1] - 1] <= first:
                continue
            above_i = extent_over(i, j, run_start, run_from, run_until, run_units)
            if above_i == 0:
                continue
            if with_extents:
                extent[filled[i]] = above_i
                extent[filled[j]] = extent_over(j, i, run_start, run_from, run_until, run_units)
            other[filled[i]] = j
            other[filled[j]] = i
            filled[i] += 1
            filled[j] += 1
    return pointer, other, extent
