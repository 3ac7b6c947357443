"""A packing problem as scaled integers, read by the bounds, the heuristics and the search."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from spmilp.packing.arrays import Ints, Outline, Shorts
from spmilp.packing.items import LARGEST, Item, PackingProblem
from spmilp.packing.outlines import list_conflicts


class Groups(NamedTuple):
    """Sets of items with one offset each, and their pieces: bytes needed during a lifetime.

    ``of_item``: the group of each item. ``size``, ``alignment``, ``offset``: of each group the most
    bytes that it ever needs, the least common alignment, and the fixed offset or -1. ``owner``,
    ``start``, ``end``, ``bytes``: of each piece; those of one group are disjoint, in order of time.
    """

    of_item: Ints
    size: Ints
    alignment: Ints
    offset: Ints
    owner: Ints
    start: Ints
    end: Ints
    bytes: Ints


def _groups_of(problem: PackingProblem) -> Groups:
    """Merge items that must lie together; every other item is a group of its own."""
    items = problem.items
    # Groups are numbered by their first item.
    first = np.array(first_of_each_set(len(items), problem.together), dtype=np.int64)
    of_item = np.unique(first, return_inverse=True)[1]
    members: list[list[Item]] = [[] for _ in range(int(of_item.max(initial=-1)) + 1)]
    for item, group in zip(items, of_item.tolist(), strict=True):
        members[group].append(item)
    rows = [
        (
            max(item.size for item in some),
            lcm(*(item.alignment for item in some)),
            max(-1 if item.offset is None else item.offset for item in some),
        )
        for some in members
    ]
    for (_, alignment, _), some in zip(rows, members, strict=True):
        if alignment >= LARGEST:
            raise ValueError(
                f"{len(some)} items that must lie together need a multiple of {alignment} B, "
                "2^60 B or more"
            )
    pieces = [(group, *piece) for group, some in enumerate(members) for piece in _pieces_of(some)]
    of_groups = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    of_pieces = np.array(pieces, dtype=np.int64).reshape(-1, 4).T.copy()
    return Groups(of_item, *of_groups, *of_pieces)


def first_of_each_set(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each of a number of things the first of those that pairs tie it to."""
    first = list(range(count))

    def find(one: int) -> int:
        while first[one] != one:
            first[one] = first[first[one]]
            one = first[one]
        return one

    for a, b in pairs:
        low, high = sorted((find(a), find(b)))
        first[high] = low
    return [find(one) for one in range(count)]


def _pieces_of(items: Sequence[Item]) -> list[tuple[int, int, int]]:
    """Return (start, end, bytes) over time: the most that any living item needs."""
    lives = [(*life, item.size) for item in items for life in item.lifetimes]
    if len(items) == 1:
        return lives
    pieces: list[tuple[int, int, int]] = []
    for start, end in pairwise(sorted({time for life in lives for time in life[:2]})):
        needed = max((size for a, b, size in lives if a <= start and end <= b), default=0)
        if pieces and pieces[-1][1:] == (start, needed):
            pieces[-1] = (pieces[-1][0], end, needed)
        elif needed:
            pieces.append((start, end, needed))
    return pieces


class Obstacle(NamedTuple):
    """Bytes that are taken: a reserved range, or a piece of a fixed group (-1 for the former)."""

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
    outline
        In units: the runs of sections each free item lives in, its size and alignment, and the
        offsets that obstacles block.
    owner, run_bytes
        Of each run, the item and its bytes.
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
    outline: Outline
    owner: Ints
    run_bytes: Ints
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
        return (capacity - self.bytes) // self.alignment_bytes * self.alignment_bytes // self.unit

    def height(self, offsets: Ints) -> int:
        """Return the highest byte in use plus one, fixed items included, of offsets in units."""
        fixed = max((o.end for o in self.obstacles if o.group >= 0), default=0)
        return max(fixed, int((offsets * self.unit + self.bytes).max(initial=0)))

    def offsets_of_items(self, offsets: Ints) -> tuple[int, ...]:
        """Return the offset in bytes of each item, from those of free groups in units."""
        of_group = self.groups.offset.copy()
        of_group[self.group] = offsets * self.unit
        return tuple(of_group[self.groups.of_item].tolist())

    def items_of(self, groups: Ints) -> tuple[int, ...]:
        """Return the items of some groups, by their position in the problem."""
        return tuple(np.flatnonzero(np.isin(self.groups.of_item, groups)).tolist())


def instance_of(problem: PackingProblem) -> Instance:
    """Bring a problem into the form that the algorithms share.

    Raises a ``ValueError`` if no offset below 2^60 but 0 is aligned for items that lie together.
    """
    groups = _groups_of(problem)
    section_from, section_until, sections = sections_of(groups.start, groups.end)
    is_free = groups.offset < 0
    free = np.flatnonzero(is_free)
    kept = np.flatnonzero(is_free[groups.owner])
    owner = np.searchsorted(free, groups.owner[kept])
    alignments = groups.alignment[free]
    grain = int(np.gcd.reduce(alignments)) if free.size else 1
    rounded = -(-groups.bytes[kept] // grain) * grain
    obstacles = _obstacles(problem, groups, section_from, section_until, sections)
    unit = _unit_of(rounded, alignments, obstacles)
    units = np.zeros(free.size, dtype=np.int64)
    np.maximum.at(units, owner, rounded // unit)
    run_from, run_until = section_from[kept], section_until[kept]
    blocked = [np.zeros((0, 3), dtype=np.int64)]
    for obstacle in obstacles:
        runs = (run_from < obstacle.section_until) & (run_until > obstacle.section_from)
        item = owner[runs]
        # Sizes count as given, without padding: an item may end right below an obstacle.
        size, alignment = groups.bytes[kept][runs], alignments[item]
        first = np.maximum(0, ((obstacle.start - size) // alignment + 1) * alignment)
        past = -(-obstacle.end // alignment) * alignment
        blocked.append(np.stack((item, -(-first // unit), past // unit), axis=1))
    table = np.concatenate(blocked)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    outline = Outline(
        run_start=_pointers(owner, free.size),
        run_from=run_from,
        run_until=run_until,
        run_units=rounded // unit,
        units=units,
        alignment=np.where(unit % np.maximum(alignments, 1) == 0, 1, alignments // unit),
        blocked_start=_pointers(table[:, 0], free.size),
        blocked_from=table[:, 1].copy(),
        blocked_until=table[:, 2].copy(),
    )
    return Instance(
        problem=problem,
        groups=groups,
        group=free,
        bytes=groups.size[free],
        alignment_bytes=alignments,
        outline=outline,
        owner=owner,
        run_bytes=groups.bytes[kept],
        section_from=section_from,
        section_until=section_until,
        sections=sections,
        obstacles=obstacles,
        unit=unit,
        grain=grain,
    )


def _pointers(sorted_numbers: Ints, count: int) -> Ints:
    """Return where the entries of each number begin, and the end of the last one's."""
    return np.searchsorted(sorted_numbers, np.arange(count + 1)).astype(np.int64)


def _obstacles(
    problem: PackingProblem, groups: Groups, section_from: Ints, section_until: Ints, sections: int
) -> tuple[Obstacle, ...]:
    found = [Obstacle(-1, 0, sections, start, end) for start, end in problem.reserved]
    for k in np.flatnonzero(groups.offset[groups.owner] >= 0):
        group, start = int(groups.owner[k]), int(groups.offset[groups.owner[k]])
        end = start + int(groups.bytes[k])
        found.append(Obstacle(group, int(section_from[k]), int(section_until[k]), start, end))
    return tuple(found)


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
    # At equal times ends come first: lifetimes are half-open.
    order = np.argsort(np.concatenate((end, start)), kind="stable")
    is_end = order < count
    closed = np.cumsum(is_end & ~np.concatenate(([True], is_end[:-1])))
    number = np.empty(2 * count, dtype=np.int64)
    number[order] = closed
    return number[count:], number[:count], int(closed[-1]) if count else 0


def obstacles_by_section(instance: Instance) -> tuple[Ints, Ints, Ints]:
    """Return the obstacles of each section in units, disjoint, from low to high.

    What an obstacle takes from items of rounded size begins at its start rounded up to the grain;
    fractions of a unit at its edges are not counted.
    """
    grain, unit = instance.grain, instance.unit
    pointer = np.zeros(instance.sections + 1, dtype=np.int64)
    starts: list[int] = []
    ends: list[int] = []
    for section in range(instance.sections if instance.obstacles else 0):
        first = len(starts)
        taken = sorted(
            (-(-o.start // grain) * grain, -(-o.end // grain) * grain // unit)
            for o in instance.obstacles
            if o.section_from <= section < o.section_until
        )
        for start, end in ((-(-start // unit), end) for start, end in taken):
            if len(starts) > first and start <= ends[-1]:
                ends[-1] = max(ends[-1], end)
            elif start < end:
                starts.append(start)
                ends.append(end)
        pointer[section + 1] = len(starts)
    return pointer, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


class Conflicts(NamedTuple):
    """The items with which each must not share bytes, and how far above it each has to lie.

    The latter is empty where that is always the item's units.
    """

    start: Ints
    item: Shorts
    extent: Ints


def conflicts_of(instance: Instance, limit: int) -> Conflicts | None:
    """Return the conflicts, or ``None`` where there are more than ``limit``, each counted twice."""
    none = np.empty(0, dtype=np.int64)
    degree = np.zeros(instance.count, dtype=np.int64)
    list_conflicts(instance.outline, degree, none.astype(np.int32), none, limit)
    if int(degree.sum()) > limit:
        return None
    start = np.concatenate(([0], np.cumsum(degree)))
    item = np.empty(start[-1], dtype=np.int32)
    varying = bool((instance.outline.run_units != instance.outline.units[instance.owner]).any())
    extent = np.empty(start[-1] if varying else 0, dtype=np.int64)
    list_conflicts(instance.outline, start[:-1].copy(), item, extent, limit)
    return Conflicts(start, item, extent)


def live_units(instance: Instance) -> Ints:
    """Return the units of free items that live in each section."""
    steps = np.zeros(instance.sections + 1, dtype=np.int64)
    np.add.at(steps, instance.outline.run_from, instance.outline.run_units)
    np.subtract.at(steps, instance.outline.run_until, instance.outline.run_units)
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
    return next_height(instance, max(worst, int(instance.bytes.max(initial=0))))


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
