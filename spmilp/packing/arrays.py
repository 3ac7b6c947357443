"""The arrays of the search: the instance's tables, the changing state, the stack frames.

Kernels in C know each of these tuples as a struct of arrays.pxd with the same fields in the same
order, which is ``CTables`` for `Tables`, and so on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Hashes = NDArray[np.uint64]


class Outline(NamedTuple):
    """The free items of an instance in units, without a list of conflicts.

    ``run_*``: the runs of sections an item lives in, with its units there. ``blocked_*``: offsets
    an item cannot have because of obstacles, by start.
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


class Tables(NamedTuple):
    """One instance in scaled units, free items only. Lists of lists are flat with pointers.

    ``pair_*``: the items each item conflicts with, and how far above the item each has to lie when
    the item is the lower one; where ``is_uniform``, that is the item's units, and ``pair_extent``
    is empty. An *incidence* is an item in one of its sections: ``incidence_start`` is the number of
    a run's first one, ``member_*`` are the items of each section and their incidences,
    ``incidence_position`` is the place of each in that list. ``hull_*``: an item's first section
    and last, between which it ties all together. ``lift``: the least by which an item raises what
    lies on it. ``lowest``: an item's lowest offset in an empty memory. ``obstacle_*``: the
    obstacles of each section, disjoint, from low to high. ``exchange_class``: equal for two items
    that live in the same sections and may be exchanged, else -1. ``twin_class``: equal for two
    items that are identical, else -1.
    """

    outline: Outline
    is_uniform: bool
    pair_start: Ints
    pair_item: Shorts
    pair_extent: Ints
    incidence_start: Ints
    member_start: Ints
    member: Shorts
    member_incidence: Shorts
    incidence_position: Shorts
    hull_from: Ints
    hull_until: Ints
    lift: Ints
    lowest: Ints
    obstacle_start: Ints
    obstacle_from: Ints
    obstacle_until: Ints
    exchange_class: Ints
    twin_class: Ints


class State(NamedTuple):
    """The arrays of one run, most of which change when an item is placed.

    ``rank``: the order of preference; ``weight``: how often an item was in a section that did not
    fit, kept from run to run. ``latest``: the highest offset the capacity allows. ``low``: the
    lowest offset that the placed items allow; ``barred``: 1 if that offset is forbidden.
    ``offset``: -1 while unplaced. ``order`` and ``position``: the items, those of a sub-problem
    side by side. ``remaining``, ``alive``, ``witness``: of each section the units and the number
    of its unplaced items, and one that could lie low enough when last looked at. ``member``,
    ``member_incidence``, ``incidence_position``: as in :class:`Tables`, but with each section's
    unplaced items in front. ``spanning``: unplaced items across each cut between sections.
    ``trail_*``: changes of ``low`` and ``barred``.
    """

    rank: Ints
    weight: Ints
    latest: Ints
    low: Ints
    barred: Ints
    offset: Ints
    order: Ints
    position: Ints
    remaining: Ints
    alive: Ints
    witness: Ints
    member: Shorts
    member_incidence: Shorts
    incidence_position: Shorts
    spanning: Ints
    trail_item: Ints
    trail_low: Ints
    counters: Ints


class Frames(NamedTuple):
    """One row per item placed: the sub-problem ``order[first:last]`` it was chosen from.

    ``bound``, ``highest``: the least and the highest offset allowed. ``step``: least ``lift`` of an
    unplaced item. ``placed``: the choice that is being searched. ``mark``: length of the trail
    before it. ``back_to``: the frame whose choice has failed when this sub-problem fails.
    ``agenda``, ``pool``: state of the agenda when the frame was opened. ``key``, ``check``: hash of
    the state.
    """

    first: Ints
    last: Ints
    section_from: Ints
    section_until: Ints
    bound: Ints
    highest: Ints
    step: Ints
    placed: Ints
    mark: Ints
    back_to: Ints
    agenda: Ints
    pool: Ints
    key: Hashes
    check: Hashes


class Agenda(NamedTuple):
    """Independent sub-problems that still wait, as linked lists (``rest`` is the next, or -1)."""

    first: Ints
    last: Ints
    section_from: Ints
    section_until: Ints
    bound: Ints
    back_to: Ints
    rest: Ints


class Memo(NamedTuple):
    """Failed states by 128-bit hash, each with its least bound; room for ``size``, a power of 2."""

    size: int
    key: Hashes
    check: Hashes
    bound: Ints


class Arrays(NamedTuple):
    """All that one run of the search works on, and the capacity in units."""

    tables: Tables
    state: State
    frames: Frames
    agenda: Agenda
    memo: Memo
    capacity: int


# Positions in State.counters; the .pxd has the numbers of these, and of those below, for C.
DEPTH, AGENDA_HEAD, POOL, TRAIL, NODES, STARTED = range(6)
COUNTERS = 6

# Return values of the search.
PACKED, EXHAUSTED, PAUSED = range(3)


def _as_given(value: Any) -> Any:
    """Return an array or a tuple of arrays, of which kernels in C have the address."""
    return value


shorts_at = outline_at = arrays_at = memo_at = _as_given
outline_in = tables_in = state_in = frames_in = agenda_in = memo_in = _as_given
