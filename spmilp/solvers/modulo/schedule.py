"""Times of all activities of an inference for a period: modulo scheduling without addresses."""

from dataclasses import dataclass

import numpy as np

from spmilp.solvers.modulo.decisions import Activity, Decisions, Permanence
from spmilp.solvers.modulo.reservations import Reservations, delay, place, reservations_for
from spmilp.solvers.schedule.kernels.records import NONE, rows_of
from spmilp.units import Cycles


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


def least_period(decisions: Decisions, loop: list[Activity]) -> Cycles:
    """Return for how long the fullest resource is busy, an engine's channels taken as one."""
    load, ways = [0] * len(decisions.capacity), [1] * len(decisions.capacity)
    longest = 1
    for each in loop:
        for one in each.busy[0]:
            load[one.resource] += (one.end - one.start) * one.amount
            longest = max(longest, one.end - one.start)
        first = each.busy[0][0].resource
        ways[first] = len(each.busy)
    rates = zip(load, ways, decisions.capacity, strict=True)
    return max(longest, *(-(-held // (many * room)) for held, many, room in rates))


def reservations_of(decisions: Decisions, permanence: Permanence) -> Reservations:
    """Return what the activities in the loop ask for, in the order of the plan."""
    loop = loop_of(decisions, permanence)
    number = {each.number: place for place, each in enumerate(loop)}
    filler = {one: place for place, each in enumerate(loop) for one in each.fills}
    reads = ([permanence.stands_for.get(one, one) for one in each.reads] for each in loop)
    before = rows_of(
        sorted({filler[r] for r in some if r in filler} | {number[one] for one in each.after})
        for each, some in zip(loop, reads, strict=True)
    )
    ways, cycles = [each.busy for each in loop], [each.cycles for each in loop]
    return reservations_for(ways, decisions.capacity, cycles, before)


def modulo_schedule(
    decisions: Decisions, permanence: Permanence, asked: Reservations, period: Cycles
) -> ModuloSchedule | None:
    """Place each activity as soon as its data is there and its resources are free in the period.

    In the order of the plan, without going back (Rau, MICRO 1994, evicts what is in the way): where
    one finds no place, its core or channels are without gaps in the next attempt, which a core that
    is busy all the time has to be. Then transfers come as late as who needs them allows, so that
    bytes wait for less time. ``None`` where one finds no place at all.
    """
    loop, gapless = loop_of(decisions, permanence), set[int]()
    held = asked.emptied(period)
    while (failed := place(held)) != NONE:
        full = {way[0].resource for way in loop[failed].busy} - gapless
        if not full:
            return None
        gapless |= full
        held = asked.emptied(period, gapless)
    is_transfer = [each.number >= decisions.tasks for each in loop]
    delay(held, np.flatnonzero(is_transfer))
    ways = (held.way - held.ways[:-1]).tolist()
    starts = held.start.tolist()
    return ModuloSchedule(
        period=period,
        start={each.number: start for each, start in zip(loop, starts, strict=True)},
        way={each.number: way for each, way in zip(loop, ways, strict=True)},
    )
