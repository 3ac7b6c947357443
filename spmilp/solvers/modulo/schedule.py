"""Times of all activities of an inference for a period: modulo scheduling without addresses."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spmilp.solvers.modulo.decisions import Activity, Decisions, Permanence
from spmilp.solvers.modulo.reservations import Reservations, delay, place, reservations_for
from spmilp.solvers.schedule.kernels.records import NONE, rows_of
from spmilp.units import Cycles

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
    ended; behind the activities each pair has one that stands for how late the first starts.
    ``loads`` is for how long each resource is busy in a period, an engine's channels taken as one;
    no period is shorter than the ``least``. Numbers of ``tasks`` come before those of transfers.
    """

    activities: list[Activity]
    turns: list[tuple[int, int]]
    tasks: int
    loads: list[Cycles]
    least: Cycles
    asked: Reservations


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
    reads = ([permanence.stands_for.get(one, one) for one in each.reads] for each in loop)
    before = [
        sorted({filler[r] for r in some if r in filler} | {place_of[one] for one in each.after})
        for each, some in zip(loop, reads, strict=True)
    ]
    left = {one: filler[other] for one, other in decisions.left.items() if other in filler}
    turns = [(n, left[r]) for n, each in enumerate(loop) for r in each.reads if r in left]
    longest = max([longest, *_cycles_of_turns(loop, before, turns)])
    for waits, (reader, _) in enumerate(turns, start=len(loop)):
        before[reader].append(waits)
    busy = [*(each.busy for each in loop), *([()] for _ in turns)]
    cycles = [*(each.cycles for each in loop), *(0 for _ in turns)]
    asked = reservations_for(busy, capacity, cycles, rows_of([*before, *([] for _ in turns)]))
    return Loop(loop, turns, decisions.tasks, loads, max(longest, *loads), asked)


def _cycles_of_turns(
    loop: list[Activity], before: list[list[int]], turns: list[tuple[int, int]]
) -> Iterator[Cycles]:
    """Yield the cycles on the longest way from what reads a state to what leaves it there."""
    for reader, last in turns:
        ends = {reader: loop[reader].cycles}
        for later in range(reader + 1, last + 1):
            since = max((ends[one] for one in before[later] if one in ends), default=None)
            if since is not None:
                ends[later] = since + loop[later].cycles
        yield ends.get(last, 1)


def modulo_schedule(loop: Loop, period: Cycles) -> ModuloSchedule | None:
    """Place each activity as soon as its data is there and its resources are free in the period.

    In the order of the plan, without going back (Rau, MICRO 1994, evicts what is in the way): where
    one finds no place, the fullest resource that it needs has no gaps in the next attempt, as it
    must not have if it is busy all the time. Then transfers come as late as who needs them allows,
    so that bytes wait for less time. What reads a state before the inference before has left it
    starts that much later in another attempt. ``None`` where one finds no place at all.
    """
    acts, gapless, asked = loop.activities, set[int](), loop.asked
    asked = asked._replace(cycles=asked.cycles.copy())
    for _ in range(ATTEMPTS):
        held = _placed(loop, asked, period, gapless)
        if held is None:
            return None
        waits = 0
        for number, (reader, last) in enumerate(loop.turns, start=len(acts)):
            due = int(held.start[last] + held.cycles[last]) - period
            if due > held.start[reader]:
                waits = asked.cycles[number] = due
        if not waits:
            break
    else:
        return None
    delay(held, np.flatnonzero([each.number >= loop.tasks for each in acts]))
    starts, ways = held.start.tolist(), (held.way - held.ways[:-1]).tolist()
    return ModuloSchedule(
        period=period,
        start={each.number: start for each, start in zip(acts, starts, strict=False)},
        way={each.number: way for each, way in zip(acts, ways, strict=False)},
    )


def _placed(
    loop: Loop, asked: Reservations, period: Cycles, gapless: set[int]
) -> Reservations | None:
    """Place all activities; resources that must be full become gapless, too."""
    acts, held = loop.activities, asked.emptied(period, gapless)
    while (failed := place(held)) != NONE:
        full = {one.resource for way in acts[failed].busy for one in way} - gapless
        if not full:
            return None
        gapless.add(max(full, key=lambda one: (loop.loads[one], -one)))
        held = asked.emptied(period, gapless)
    return held
