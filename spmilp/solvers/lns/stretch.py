"""Stretches of a schedule: cut at some cycles, improved apart from each other, joined again.

At a *border* some activities run. They belong to the stretch in which they start, and stand still
in the next one. All others of a stretch start after its first border and end before its last one,
and what runs over that border ends no later behind it than it did. So whatever a stretch saves, the
next one moves left as a whole, with its borders, and the savings of all stretches add up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints, Rows, inverted, owners_of, rows_from_pairs
from spmilp.solvers.partial_order.schedule import (
    FREE,
    KEEPS_PLACE,
    KEEPS_TIME,
    Flags,
    PartialOrderSchedule,
    TimedSchedule,
    is_alive,
    timed,
)
from spmilp.units import Cycles

SHIFT = 0.8
"""Of a stretch: how far apart a border is from one time to another, at most."""

GOLDEN_SECTION = 0.618
"""Multiples of it, without their whole part, lie apart from each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """The part of a schedule between two borders, as a schedule of its own.

    Activities and residencies have the numbers that they have in the whole. Of those outside,
    transfers and tasks take no time, and residencies are never there.

    Parameters
    ----------
    own
        Activities that may change in some way, with free slots.
    end
        The makespan that the schedule has as long as nothing is saved.
    timed
        The schedule, at the times that it has in the whole.
    """

    own: Flags
    end: Cycles
    timed: TimedSchedule


def borders_of(whole: TimedSchedule, count: int, turn: int) -> tuple[Cycles, ...]:
    """Return the borders of up to ``count`` stretches with about as many activities each.

    Nothing that runs at one border runs at the next one, too.

    Parameters
    ----------
    turn
        Which time this is: each time the borders are elsewhere.
    """
    schedule, start = whole.schedule, whole.start
    runs = np.flatnonzero(schedule.cycles > 0)
    begins, end = np.sort(start[runs]), start + schedule.cycles
    shift = SHIFT * (turn * GOLDEN_SECTION % 1.0 - 0.5)
    found: list[Cycles] = []
    over = 0
    for number in range(1, count):
        border = int(begins[int((number + shift) * runs.size / count)])
        if border > over:
            found.append(border)
            over = int(end[runs][start[runs] < border].max())
    return tuple(found)


def stretches_of(
    whole: TimedSchedule, borders: Sequence[Cycles], first_free_slot: int
) -> Iterator[Stretch]:
    """Yield the stretches between borders, and those before the first and behind the last.

    Parameters
    ----------
    whole
        A schedule of which no activity runs at two borders.
    first_free_slot
        The first of the transfers that are free slots; the stretches share those that are left.
    """
    schedule = whole.schedule
    slots = first_free_slot + np.flatnonzero(schedule.cycles[first_free_slot:] == 0)
    edges = (0, *borders, whole.makespan)
    for number, (first, until) in enumerate(pairwise(edges)):
        yield _stretch(whole, first, until, slots[number :: len(edges) - 1])


def _stretch(whole: TimedSchedule, first: Cycles, until: Cycles, slots: Ints) -> Stretch:
    schedule, start = whole.schedule, whole.start
    end = start + schedule.cycles
    runs = schedule.cycles > 0
    is_inside = runs & (start >= first) & (start < until)
    runs_already = runs & (start < first) & (end > first)
    own = is_inside.copy()
    own[slots] = True
    late = np.where(is_inside, np.maximum(0, end - until), 0)
    fixed = np.full(start.size, KEEPS_PLACE)
    fixed[own & (late == 0)] = FREE
    fixed[runs_already] = KEEPS_TIME
    is_there = is_inside | runs_already
    is_over = runs & (end <= first)
    part = _without_others(schedule, is_there, is_over)._replace(
        head=np.where(runs_already, start, first),
        tail=np.where(is_there | own, late.max(initial=0) - late, 0),
        fixed=fixed,
    )
    return Stretch(own, until + int(late.max(initial=0)), timed(part, np.where(is_there, start, 0)))


def _without_others(
    schedule: PartialOrderSchedule, is_there: Flags, is_over: Flags
) -> PartialOrderSchedule:
    """Return a schedule with some activities only; what was filled before them is there at once.

    What is read later, too, stays until all ends.
    """
    activities, residencies = schedule.cycles.size, schedule.filler.size
    readers, read = owners_of(schedule.reads), schedule.reads.items
    comes_later = (schedule.cycles > 0) & ~is_there & ~is_over
    is_read, stays = np.zeros(residencies, np.bool_), schedule.lasting.astype(np.bool_)
    is_read[read[is_there[readers]]] = True
    stays[read[comes_later[readers]]] = True
    has_filler = schedule.filler != NONE
    is_filled_here = has_filler & is_there[schedule.filler]
    was_filled = ~has_filler | is_over[schedule.filler]
    is_initial = was_filled & (is_read | stays)
    filler = np.where(is_initial, NONE, schedule.filler)
    # What is gone before is filled by an activity that takes no time.
    if not is_there.all():
        filler[was_filled & ~is_initial] = int(np.argmin(is_there))
    kept = is_there[readers]
    reads = rows_from_pairs(readers[kept], read[kept], activities)
    return schedule._replace(
        cycles=np.where(is_there, schedule.cycles, 0),
        reads=reads,
        readers=inverted(reads, residencies),
        filler=filler,
        lasting=np.where(is_initial | is_filled_here, stays, 0).astype(np.int64),
        overwrites=np.where(is_initial, NONE, schedule.overwrites),
    )


def joined(whole: TimedSchedule, parts: Sequence[tuple[Stretch, TimedSchedule]]) -> TimedSchedule:
    """Return a schedule with its stretches as they have become, each behind the one before it.

    Parameters
    ----------
    parts
        All stretches of the schedule, in their order, and what each has become.
    """
    schedule, start = whole.schedule, whole.start.copy()
    owner = np.zeros(start.size, np.int64)
    saved = 0
    for number, (stretch, found) in enumerate(parts):
        owner[stretch.own] = number
        start[stretch.own] = found.start[stretch.own] - saved
        saved += stretch.end - found.makespan
    schedules = [found.schedule for _, found in parts]
    filled_by = np.where(schedule.filler == NONE, NONE, owner[schedule.filler])

    def of_activities(column: str) -> Ints:
        return np.choose(owner, [getattr(one, column) for one in schedules])

    def of_residencies(column: str) -> Ints:
        columns = [getattr(schedule, column), *(getattr(one, column) for one in schedules)]
        return np.choose(filled_by + 1, columns)

    demands, amounts = _rows_of_owners(owner, [(one.demands, one.amounts) for one in schedules])
    reads, _ = _rows_of_owners(owner, [(one.reads, one.reads.items) for one in schedules])
    fills, _ = _rows_of_owners(owner, [(one.fills, one.fills.items) for one in schedules])
    new = schedule._replace(
        cycles=of_activities("cycles"),
        moved_slice=of_activities("moved_slice"),
        demands=demands,
        amounts=amounts,
        reads=reads,
        fills=fills,
        readers=inverted(reads, filled_by.size),
        filler=of_residencies("filler"),
        memory=of_residencies("memory"),
        bytes=of_residencies("bytes"),
        slice=of_residencies("slice"),
        overwrites=of_residencies("overwrites"),
    )
    follows = np.flatnonzero((new.overwrites != NONE) & is_alive(new))
    overwritten_by = np.full(filled_by.size, NONE)
    overwritten_by[new.overwrites[follows]] = follows
    return timed(new._replace(overwritten_by=overwritten_by), start)


def _rows_of_owners(owner: Ints, parts: Sequence[tuple[Rows, Ints]]) -> tuple[Rows, Ints]:
    """Return the rows of each activity from the stretch that owns it, and what goes with them."""
    owners, items, others = [], [], []
    for number, (rows, other) in enumerate(parts):
        of = owners_of(rows)
        kept = owner[of] == number
        owners.append(of[kept])
        items.append(rows.items[kept])
        others.append(other[kept])
    together = np.concatenate(owners)
    order = np.argsort(together, kind="stable")
    return rows_from_pairs(together, np.concatenate(items), owner.size), np.concatenate(others)[
        order
    ]
