"""Sections: the largest sets of pieces that live at one time, in order of time."""

import numpy as np

from spmilp.packing.search.arrays import Ints


def sections_of(start: Ints, end: Ints) -> tuple[Ints, Ints, int]:
    """Return the first section of each piece, the one after its last, and the number of sections.

    Time runs from start to start; a section ends where, after at least one start, something ends.
    The sets of pieces between are the maximal cliques of the interval graph (Fulkerson and Gross,
    1965, doi 10.2140/pjm.1965.15.835): packings that keep each section's pieces disjoint are
    exactly the packings.
    """
    count = start.size
    times = np.concatenate((end, start))
    # At equal times ends come first: lifetimes are half-open.
    order = np.argsort(times, kind="stable")
    is_end = order < count
    closes = is_end & ~np.concatenate(([True], is_end[:-1]))
    closed = np.cumsum(closes)
    number = np.empty(2 * count, dtype=np.int64)
    number[order] = closed
    return number[count:], number[:count], int(closed[-1]) if count else 0
