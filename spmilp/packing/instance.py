"""A packing problem as scaled integers, read by the bounds, the heuristics and the search."""

from dataclasses import dataclass
from math import gcd

import numpy as np

from spmilp.packing.apart import with_instants_for_apart
from spmilp.packing.groups import Groups, group_items
from spmilp.packing.items import PackingProblem
from spmilp.packing.search.arrays import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Bytes that are taken: a reserved range, or the piece of an item with a fixed offset.

    Attributes
    ----------
    group
        Whose piece it is; -1 for a reserved range.
    """

    group: int
    section_from: int
    section_until: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Free items, numbered 0, 1, 2, ..., in units of ``unit`` bytes, and obstacles in bytes.

    Every offset that the search can need is a multiple of ``unit``: sizes are rounded up to the
    greatest common divisor of the alignments (offsets are multiples of it, so nothing can use the
    bytes between), and ``unit`` divides the rounded sizes and the offsets just above obstacles.

    Attributes
    ----------
    group
        The group in ``groups`` that each free item stands for.
    bytes, alignment_bytes
        Size and alignment of each free item in bytes, as given.
    run_start, run_from, run_until, run_units, run_bytes
        The runs of sections each free item lives in, with its units and its bytes there.
    units, alignment
        Most units an item ever needs, and its alignment in units.
    section_from, section_until
        The sections of every piece of ``groups``, fixed ones included.
    grain
        The greatest common divisor of the alignments in bytes.
    """

    problem: PackingProblem
    groups: Groups
    group: Ints
    bytes: Ints
    alignment_bytes: Ints
    run_start: Ints
    run_from: Ints
    run_until: Ints
    run_units: Ints
    run_bytes: Ints
    units: Ints
    alignment: Ints
    section_from: Ints
    section_until: Ints
    sections: int
    obstacles: tuple[Obstacle, ...]
    unit: int
    grain: int

    @property
    def count(self) -> int:
        """Number of free items."""
        return int(self.group.size)

    def latest(self, capacity: int) -> Ints:
        """Return the highest offset in units that each item may have; negative when none."""
        highest = (capacity - self.bytes) // self.alignment_bytes * self.alignment_bytes
        return highest // self.unit

    def capacity_units(self, capacity: int) -> int:
        """Return the capacity in units, rounded so that the topmost item's padding fits."""
        return -(-capacity // self.grain) * self.grain // self.unit


def instance_of(problem: PackingProblem) -> Instance:
    """Bring a problem into the form that the algorithms share.

    Raises
    ------
    ValueError
        If items are bound together in contradicting ways.
    """
    groups = group_items(problem)
    if problem.apart:
        groups = with_instants_for_apart(problem, groups)
    section_from, section_until, sections = sections_of(groups.start, groups.end)
    is_free = groups.offset < 0
    free = np.flatnonzero(is_free)
    number = np.full(groups.count, -1, dtype=np.int64)
    number[free] = np.arange(free.size)
    kept = np.flatnonzero(is_free[groups.owner])
    alignments = groups.alignment[free]
    grain = int(np.gcd.reduce(alignments)) if free.size else 1
    rounded = -(-groups.bytes[kept] // grain) * grain
    obstacles = _obstacles(problem, groups, section_from, section_until, sections)
    unit = _unit_of(rounded, alignments, obstacles)
    run_start = np.zeros(free.size + 1, dtype=np.int64)
    owners = number[groups.owner[kept]]
    np.cumsum(np.bincount(owners, minlength=free.size), out=run_start[1:])
    run_units = rounded // unit
    units = np.zeros(free.size, dtype=np.int64)
    np.maximum.at(units, owners, run_units)
    return Instance(
        problem=problem,
        groups=groups,
        group=free,
        bytes=groups.size[free],
        alignment_bytes=alignments,
        run_start=run_start,
        run_from=section_from[kept],
        run_until=section_until[kept],
        run_units=run_units,
        run_bytes=groups.bytes[kept],
        units=units,
        alignment=np.where(unit % np.maximum(alignments, 1) == 0, 1, alignments // unit),
        section_from=section_from,
        section_until=section_until,
        sections=sections,
        obstacles=obstacles,
        unit=unit,
        grain=grain,
    )


def _obstacles(
    problem: PackingProblem,
    groups: Groups,
    section_from: Ints,
    section_until: Ints,
    sections: int,
) -> tuple[Obstacle, ...]:
    reserved = [
        Obstacle(group=-1, section_from=0, section_until=sections, start=start, end=end)
        for start, end in problem.reserved
    ]
    fixed = [
        Obstacle(
            group=int(groups.owner[k]),
            section_from=int(section_from[k]),
            section_until=int(section_until[k]),
            start=int(groups.offset[groups.owner[k]]),
            end=int(groups.offset[groups.owner[k]] + groups.bytes[k]),
        )
        for k in np.flatnonzero(groups.offset[groups.owner] >= 0)
    ]
    return (*reserved, *fixed)


def _unit_of(rounded: Ints, alignments: Ints, obstacles: tuple[Obstacle, ...]) -> int:
    """Return a divisor of every size and of every offset that stacking items can lead to."""
    distinct = sorted(set(alignments.tolist()))
    unit = int(np.gcd.reduce(rounded)) if rounded.size else 1
    for obstacle in obstacles:
        for alignment in distinct:
            unit = gcd(unit, -(-obstacle.end // alignment) * alignment)
    while True:
        finer = unit
        for alignment in distinct:
            if finer % alignment:
                finer = gcd(finer, alignment)
        if finer == unit:
            return unit
        unit = finer


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
