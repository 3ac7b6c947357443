"""Times of all activities of an inference for a period: modulo scheduling without addresses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmilp.plan.plan import MOST_INSTANCES
from spmilp.solvers.modulo.decisions import Activity, Decisions, Permanence
from spmilp.solvers.modulo.reservations import Reservations, delay, place, reservations_for
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, Ints, numbers, rows_of
from spmilp.units import Cycles, ResidencyIdx

ATTEMPTS = 12
"""Times that all is placed anew, as long as states are read too early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloSchedule:
    """For a period, the start of each activity in the loop, and its way to be busy."""

    period: Cycles
    start: dict[int, Cycles]
    way: dict[int, int]


def loop_of(decisions: Decisions, permanence: Permanence) -> list[Activity]:
    """Return the activities that every inference does, in the order of the plan."""
    out = {decisions.tasks + move for move in permanence.once | permanence.gone}
    return [decisions.activities[number] for number in decisions.order if number not in out]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """The activities that every inference does, and what they ask for.

    ``turns`` are pairs of places: the first may start, of the next inference, when the second has
    ended. ``loads`` is for how long each resource is busy in a period, an engine's channels taken
    as one; no period is shorter than the ``least``. Numbers of ``tasks`` come before those of
    transfers.
    """

    activities: list[Activity]
    turns: list[tuple[int, int]]
    tasks: int
    loads: list[Cycles]
    least: Cycles
    asked: Reservations
    waits: "Waits"


def loop_for(decisions: Decisions, permanence: Permanence) -> Loop:
    """Return the loop that is left without what happens once."""
    loop, capacity = loop_of(decisions, permanence), decisions.capacity
    held, ways, longest = [0] * len(capacity), [1] * len(capacity), 1
    for each in loop:
        for one in {one for way in each.busy for one in way}:
            held[one.resource] += (one.end - one.start) * one.amount
            longest = max(longest, one.end - one.start)
        for way in each.busy:
            ways[way[0].resource] = len(each.busy)
    loads = [-(-load // (m * room)) for load, m, room in zip(held, ways, capacity, strict=True)]
    place_of = {each.number: place for place, each in enumerate(loop)}
    filler = {one: place for place, each in enumerate(loop) for one in each.fills}
    reads = [[permanence.stands_for.get(one, one) for one in each.reads] for each in loop]
    before = [
        sorted({filler[r] for r in some if r in filler} | {place_of[one] for one in each.after})
        for each, some in zip(loop, reads, strict=True)
    ]
    busy, cycles = [each.busy for each in loop], [each.cycles for each in loop]
    release = _released(cycles, before)
    asked = reservations_for(busy, capacity, cycles, rows_of(before), release)
    waits = _waits(decisions, loop, filler)
    others = {**decisions.left, **permanence.states}
    left = {one: filler[other] for one, other in others.items() if other in filler}
    turns = [(place, left[r]) for place, some in enumerate(reads) for r in some if r in left]
    least = max([longest, *loads, *_cycles_of_turns(loop, before, turns)])
    return Loop(loop, turns, decisions.tasks, loads, least, asked, waits)


def _cycles_of_turns(
    loop: list[Activity], before: list[list[int]], turns: list[tuple[int, int]]
) -> Iterator[Cycles]:
    """Yield the cycles on the longest way from what reads a state to what leaves it there."""
    for reader, last in turns:
        ends = {reader: loop[reader].cycles}
        for each in range(reader + 1, last + 1):
            since = max((ends[one] for one in before[each] if one in ends), default=None)
            if since is not None:
                ends[each] = since + loop[each].cycles
        yield ends.get(last, 1)


def _released(cycles: list[Cycles], before: list[list[int]]) -> Ints:
    """Return the cycles from which on activities may start.

    What needs nothing of the loop starts no sooner than who needs it first could need it, if all
    had the resources that they want.
    """
    earliest, due = list[Cycles](), [NEVER] * len(cycles)
    for some in before:
        earliest.append(max((earliest[one] + cycles[one] for one in some), default=0))
        for one in some:
            due[one] = min(due[one], earliest[-1])
    return numbers(
        max(0, last - own) if last < NEVER and not some else 0
        for last, own, some in zip(due, cycles, before, strict=True)
    )


class Waits(NamedTuple):
    """What says how long transfers may wait, of each activity by its place in the loop.

    ``source`` is what fills that from which it reads, -1 where nothing in the loop does;
    ``reads_for`` so many cycles. ``is_load`` and ``is_store`` say whether it reads, or writes, a
    tensor that each inference has anew.
    """

    source: Ints
    reads_for: Ints
    is_load: NDArray[np.bool_]
    is_store: NDArray[np.bool_]

    def latest(self, held: Reservations) -> Ints:
        """Return the last start of each transfer.

        It has read by then before its source would need too many instances. Stores wait only where
        the tensor that they write would have too many.
        """
        most, whole = MOST_INSTANCES * held.period, (held.start + held.cycles).max(initial=0)
        filled = np.where(self.source == NONE, NEVER, held.start[self.source] + most)
        filled[self.is_load] = most - held.period
        too_soon = self.is_store & (held.start < whole + held.period - most)
        due = np.where(np.diff(held.after.begin) > 0, NEVER, 0)
        due[too_soon] = whole - held.cycles[too_soon]
        return np.minimum(filled - self.reads_for, due)


def _waits(decisions: Decisions, loop: list[Activity], filler: Mapping[ResidencyIdx, int]) -> Waits:
    home, problem = decisions.home, decisions.problem
    constants = {b.place.tensor for b in problem.buffers if b.place and b.is_constant}
    new = {row for row, at in enumerate(home) if at is not None and at not in constants}
    source = [
        filler.get(each.reads[0], NONE) if each.number >= decisions.tasks else NONE for each in loop
    ]
    return Waits(
        source=numbers(source),
        reads_for=numbers(each.reads_for for each in loop),
        is_load=np.array(
            [
                one == NONE and not new.isdisjoint(a.reads)
                for one, a in zip(source, loop, strict=True)
            ]
        ),
        is_store=np.array([not new.isdisjoint(each.fills) for each in loop]),
    )


def modulo_schedule(loop: Loop, period: Cycles) -> ModuloSchedule | None:
    """Place each activity as soon as its data is there and its resources are free in the period.

    In the order of the plan, without going back (Rau, MICRO 1994, evicts what is in the way). What
    reads a state before the inference before has left it starts that much later in another attempt.
    Then transfers come as late as who needs them allows, so that bytes wait for less time. ``None``
    where one finds no place at all.
    """
    acts, asked = loop.activities, loop.asked
    for _ in range(ATTEMPTS):
        held = _placed(loop, asked, period)
        if held is None:
            return None
        release = held.release.copy()
        for reader, last in loop.turns:
            left_at = held.start[last] + held.cycles[last] - period
            release[reader] = max(release[reader], left_at)
        if (release <= held.start).all():
            break
        asked = asked._replace(release=release)
    else:
        return None
    transfers = np.flatnonzero([each.number >= loop.tasks for each in acts])
    latest = loop.waits.latest(held)
    for reader, last in loop.turns:
        latest[last] = min(latest[last], held.start[reader] + period - held.cycles[last])
    delay(held, transfers, latest)
    starts, ways = held.start.tolist(), (held.way - held.ways[:-1]).tolist()
    return ModuloSchedule(
        period=period,
        start={each.number: start for each, start in zip(acts, starts, strict=True)},
        way={each.number: way for each, way in zip(acts, ways, strict=True)},
    )


def _placed(loop: Loop, asked: Reservations, period: Cycles) -> Reservations | None:
    """Place all activities once.

    Where one finds no place, the fullest resource that it needs keeps a gap for all that is left in
    the next attempt.
    """
    acts, loads = loop.activities, numbers(loop.loads)
    full = np.zeros(loads.size, bool)
    held = asked.emptied(period, loads * full)
    while (failed := place(held)) != NONE:
        more = {one.resource for way in acts[failed].busy for one in way if not full[one.resource]}
        if not more:
            return None
        full[max(more, key=lambda one: (loop.loads[one], -one))] = True
        held = asked.emptied(period, loads * full)
    return held
