"""Times of all activities of an inference for a period: modulo scheduling without addresses."""

from collections.abc import Callable
from dataclasses import dataclass

from spmilp.solvers.modulo.decisions import Activity, Decisions, Permanence
from spmilp.solvers.modulo.reservations import Busy, Reservations
from spmilp.units import Cycles, ResidencyIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloSchedule:
    """For a period, the start of each activity in the loop, and what it is busy with."""

    period: Cycles
    start: dict[int, Cycles]
    busy: dict[int, tuple[Busy, ...]]


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


def modulo_schedule(
    decisions: Decisions,
    permanence: Permanence,
    period: Cycles,
    go_on: Callable[[], None] = lambda: None,
) -> ModuloSchedule | None:
    """Place each activity as soon as its data is there and its resources are free in the period.

    In the order of the plan, without going back (Rau, MICRO 1994, evicts what is in the way); then
    transfers come as late as who needs them allows, so that bytes wait for less time. ``None``
    where one finds no place. Whether to ``go_on`` is asked for each activity.
    """
    table, loop = Reservations(decisions.capacity, period), loop_of(decisions, permanence)
    start, busy = dict[int, Cycles](), dict[int, tuple[Busy, ...]]()
    there: dict[ResidencyIdx, Cycles] = {}
    users: dict[ResidencyIdx, Cycles] = {}
    for each in loop:
        go_on()
        reads = [permanence.stands_for.get(one, one) for one in each.reads]
        earliest = max((there.get(one, 0) for one in reads), default=0)
        ends = (start[one] + decisions.activities[one].cycles for one in each.after)
        earliest = max([earliest, *ends])
        at, way = None, each.busy[0]
        for other in each.busy:
            sooner = table.first_from(earliest, other)
            if sooner is not None and (at is None or sooner < at):
                at, way = sooner, other
            if at == earliest:
                break
        if at is None:
            return None
        table.hold(at, list(way))
        start[each.number], busy[each.number] = at, way
        there.update(dict.fromkeys(each.fills, at + each.cycles))
    for each in reversed(loop):
        go_on()
        at, way = start[each.number], busy[each.number]
        needed = [users[one] for one in each.fills if one in users]
        if each.number >= decisions.tasks and needed and min(needed) - each.cycles > at:
            table.release(at, way)
            at = table.last_until(min(needed) - each.cycles, at, way)
            table.hold(at, way)
            start[each.number] = at
        for one in each.reads:
            users[one] = min(at, users.get(one, at))
    return ModuloSchedule(period=period, start=start, busy=busy)
