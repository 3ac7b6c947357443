"""A packing problem as scaled integers, read by the bounds, the heuristics and the search."""

from dataclasses import dataclass
from itertools import combinations
from math import gcd

import numpy as np

from spmilp.compiled import part, standalone
from spmilp.packing.arrays import Ints, Shorts
from spmilp.packing.groups import Groups, group_items, with_instants_for_apart
from spmilp.packing.items import PackingProblem


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
