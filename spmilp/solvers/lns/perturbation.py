"""Leaving a local optimum: some activities wait a while, and all passes begin again."""

import numpy as np

from spmilp.compiled import kernel
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import NEVER, NONE, Ints, Rows
from spmilp.solvers.kernels.timeline import Timeline, occupy
from spmilp.solvers.partial_order.capacity_passes import (
    capacity_backward_pass,
    capacity_forward_pass,
    room_before,
)
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.justification import earliest
from spmilp.solvers.partial_order.profiles import (
    first_room,
    hold,
    line_of_memories,
    line_of_resources,
    release,
)
from spmilp.solvers.partial_order.redundant_transfers import without_redundant_transfers
from spmilp.solvers.partial_order.repacking import justified_by_capacity
from spmilp.solvers.partial_order.schedule import (
    PartialOrderSchedule,
    TimedSchedule,
    lifetimes,
    makespan_of,
)

FEW = 3
"""Loads that go first, on average."""

SHARE_THAT_WAITS = 0.1
LEAST_WAIT, MOST_WAIT = -3.5, -1.5
"""Powers of ten: the longest wait of a kick as a share of the makespan."""


def perturbed(
    context: ScheduleContext,
    current: TimedSchedule,
    limit: Ints,
    clock: Clock,
    random: np.random.Generator,
) -> TimedSchedule:
    """Return a incumbent with open addresses that ends no later, from another order of activities.

    In a pass to the left, a random few wait though they could start, and others go before them.
    None starts later than in the pass to the right before it, so the makespan does not grow.
    """
    schedule, makespan = current.schedule, current.makespan
    later = capacity_backward_pass(schedule, context.kept_reuse, limit, current.start, makespan)
    schedule = without_redundant_transfers(context, schedule, later, makespan, limit)
    longest = makespan * 10.0 ** random.uniform(LEAST_WAIT, MOST_WAIT)
    waits = random.random(later.size) < SHARE_THAT_WAITS
    pause = np.where(waits, random.random(later.size) * longest, 0.0).astype(np.int64)
    early = capacity_forward_pass(schedule, context.kept_reuse, limit, later, makespan, pause)
    return justified_by_capacity(
        context,
        TimedSchedule(schedule, early, makespan_of(schedule, early)),
        limit,
        clock,
        rounds=1,
    )


def with_loads_advanced(
    context: ScheduleContext,
    current: TimedSchedule,
    limit: Ints,
    clock: Clock,
    random: np.random.Generator,
) -> TimedSchedule:
    """Return a incumbent with open addresses that ends no later, in which some loads go first.

    All is taken to the right until a little later than it ends now, so that the loads find room at
    the beginning; what that costs has to be won by what they let start earlier.
    """
    schedule, makespan = current.schedule, current.makespan
    loads = loads_of(context, schedule)
    if not loads.size:
        return current
    count = 1 + int(random.geometric(1 / FEW))
    chosen = random.choice(loads, min(count, loads.size), replace=False)
    last = makespan + int(schedule.cycles[chosen].sum())
    later = capacity_backward_pass(schedule, context.kept_reuse, limit, current.start, last)
    first = advance(context, schedule, later, last, limit, chosen)
    early = capacity_forward_pass(schedule, context.kept_reuse, limit, first, last)
    found = TimedSchedule(schedule, early, makespan_of(schedule, early))
    found = justified_by_capacity(context, found, limit, clock, rounds=1)
    return found if found.makespan <= makespan else current


def loads_of(context: ScheduleContext, schedule: PartialOrderSchedule) -> Ints:
    """Return the transfers that bring something from a DRAM to another memory."""
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    comes = context.is_dram[schedule.memory[schedule.reads.items[schedule.reads.begin[moves]]]]
    goes = context.is_dram[schedule.memory[schedule.fills.items[schedule.fills.begin[moves]]]]
    return moves[comes & ~goes]


def advance(
    context: ScheduleContext,
    schedule: PartialOrderSchedule,
    start: Ints,
    last: int,
    limit: Ints,
    chosen: Ints,
) -> Ints:
    """Return start cycles in which some activities start as early as they can next to all others.

    Those keep theirs. Activities are moved in the order given.
    """
    found = start.copy()
    begins, ends = lifetimes(schedule, start, last)
    filled = schedule.filler != NONE
    valid = np.where(filled, start[schedule.filler] + schedule.cycles[schedule.filler], 0)
    line = line_of_resources(schedule, chosen.size)
    room = line_of_memories(schedule, limit.size, chosen.size)
    _advance(
        schedule, context.kept_reuse.earlier, limit, line, room, begins, valid, ends, chosen, found
    )
    return found


@kernel
def _advance(
    schedule: PartialOrderSchedule,
    earlier: Rows,
    limit: Ints,
    line: Timeline,
    room: Timeline,
    begins: Ints,
    valid: Ints,
    ends: Ints,
    chosen: Ints,
    found: Ints,
) -> None:
    for act in range(found.size):
        if schedule.cycles[act] > 0:
            hold(schedule, line, act, found[act])
    for residency in range(ends.size):
        if limit[schedule.memory[residency]] != NEVER and ends[residency] > begins[residency]:
            occupy(
                room,
                schedule.memory[residency],
                begins[residency],
                ends[residency],
                schedule.bytes[residency],
            )
    for act in chosen:
        old = found[act]
        release(schedule, line, act, old)
        ready = earliest(schedule, earlier, act, found, valid, ends)
        ready = room_before(schedule, limit, room, act, ready, old)
        begin = min(old, first_room(schedule, line, act, ready))
        hold(schedule, line, act, begin)
        found[act] = begin
        for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[i]
            valid[residency] = begin + schedule.cycles[act]
            if begin < old and limit[schedule.memory[residency]] != NEVER:
                occupy(room, schedule.memory[residency], begin, old, schedule.bytes[residency])
