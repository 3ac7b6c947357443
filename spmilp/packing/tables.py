"""From an instance to the arrays of the search."""

import numpy as np
from numpy.typing import NDArray

from spmilp.packing.instance import Instance
from spmilp.packing.obstacles import (
    blocked_offsets,
    count_conflicts,
    list_conflicts,
    obstacles_by_section,
)
from spmilp.packing.search.arrays import Ints, Shorts, Tables
from spmilp.packing.search.place import fill_lowest

MOST_CONFLICTS = 40_000_000
"""Directed pairs up to which the search is tried; it keeps them all in memory."""


def tables_of(instance: Instance) -> Tables | None:
    """Return the search's arrays, or ``None`` when the instance has too many conflicts for it."""
    pairs = _conflicts(instance)
    if pairs is None:
        return None
    lengths = instance.run_until - instance.run_from
    incidence_start = np.cumsum(lengths) - lengths
    member_start, member, member_incidence, incidence_position = _members(instance)
    blocked_start, blocked_from, blocked_until = blocked_offsets(instance)
    obstacle_start, obstacle_from, obstacle_until = obstacles_by_section(instance)
    free = (np.diff(blocked_start) == 0) & (np.diff(instance.run_start) == 1)
    tables = Tables(
        pair_start=pairs[0],
        pair_item=pairs[1],
        pair_extent=pairs[2],
        run_start=instance.run_start,
        run_from=instance.run_from,
        run_until=instance.run_until,
        run_units=instance.run_units,
        member_start=member_start,
        member=member,
        member_incidence=member_incidence,
        incidence_position=incidence_position,
        incidence_start=incidence_start,
        hull_from=instance.run_from[instance.run_start[:-1]],
        hull_until=instance.run_until[instance.run_start[1:] - 1],
        units=instance.units,
        lift=_lifts(instance, *pairs),
        alignment=instance.alignment,
        lowest=np.zeros(instance.count, dtype=np.int64),
        blocked_start=blocked_start,
        blocked_from=blocked_from,
        blocked_until=blocked_until,
        obstacle_start=obstacle_start,
        obstacle_from=obstacle_from,
        obstacle_until=obstacle_until,
        exchange_class=_classes(instance, free & (instance.alignment == 1), ()),
        twin_class=_classes(instance, free, (instance.bytes, instance.alignment_bytes)),
    )
    fill_lowest.in_about(instance.count + tables.blocked_from.size)(tables)
    return tables


def _conflicts(instance: Instance) -> tuple[Ints, Shorts, Ints] | None:
    """Return pointers, the conflicting items of each item, and how far above it each has to lie.

    The last is empty where that is always the item's units. ``None`` when there are too many.
    """
    runs = (instance.run_start, instance.run_from, instance.run_until, instance.run_units)
    degree = np.zeros(instance.count, dtype=np.int64)
    steps = instance.count**2
    count_conflicts.in_about(steps)(*runs, degree, MOST_CONFLICTS)
    if int(degree.sum()) > MOST_CONFLICTS:
        return None
    varying = (instance.run_units != np.repeat(instance.units, np.diff(instance.run_start))).any()
    pointer = np.concatenate(([0], np.cumsum(degree)))
    other = np.empty(pointer[-1], dtype=np.int32)
    extent = np.empty(pointer[-1] if varying else 0, dtype=np.int64)
    list_conflicts.in_about(steps)(*runs, pointer[:-1].copy(), other, extent)
    return pointer, other, extent


def _lifts(instance: Instance, pointer: Ints, other: Shorts, extent: Ints) -> Ints:
    """Return the least by which each item raises one that lies on it."""
    if extent.size == 0:
        return instance.units
    lift = instance.units.copy()
    np.minimum.at(lift, np.repeat(np.arange(instance.count), np.diff(pointer)), extent)
    return lift


def _members(instance: Instance) -> tuple[Ints, Shorts, Shorts, Shorts]:
    """Return all (item, section) incidences by section: pointers, items, incidences, and back."""
    lengths = instance.run_until - instance.run_from
    owner = np.repeat(np.arange(instance.count), np.diff(instance.run_start))
    item = np.repeat(owner, lengths)
    starts = np.cumsum(lengths) - lengths
    section = np.arange(item.size) - np.repeat(starts - instance.run_from, lengths)
    order = np.argsort(section, kind="stable")
    position = np.empty(order.size, dtype=np.int32)
    position[order] = np.arange(order.size)
    pointer = np.zeros(instance.sections + 1, dtype=np.int64)
    np.cumsum(np.bincount(section, minlength=instance.sections), out=pointer[1:])
    return pointer, item[order].astype(np.int32), order.astype(np.int32), position


def _classes(instance: Instance, eligible: NDArray[np.bool_], also: tuple[Ints, ...]) -> Ints:
    """Number the classes of eligible items alike in their sections and in ``also``; else -1."""
    first = instance.run_start[:-1]
    columns = (instance.run_from[first], instance.run_until[first], *also)
    numbers: dict[tuple[int, ...], int] = {}
    rows = zip(*(column.tolist() for column in columns), strict=True)
    number = np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int64)
    return np.where(eligible, number, -1)
