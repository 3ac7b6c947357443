"""Transfers that come late, so that memories hold the least, and loads that come early."""

from typing import NamedTuple

import numpy as np

from spmilp.compiled import kernel
from spmilp.solvers.justify.context import ScheduleContext
from spmilp.solvers.justify.passes import (
    backward_pass,
    capacity_ready,
    forward_pass,
    precedence_ready,
)
from spmilp.solvers.justify.schedule import (
    Memories,
    PartialOrderSchedule,
    TimedSchedule,
    earliest_start,
    hold,
    profiles_of_memories,
    profiles_of_resources,
    taken,
)
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, ONE, Ints
from spmilp.solvers.schedule.kernels.timeline import Timeline, occupy


def with_transfers_late(context: ScheduleContext, before: TimedSchedule) -> TimedSchedule:
    """Return a schedule in which what comes to scratchpads comes as late as it can.

    All else keeps its times: tasks, and what is stored in a DRAM. A copy of what another scratchpad
    holds ends no later than that is held anyway. So nothing is in a scratchpad for longer than
    before, and offsets are found more often.
    """
    schedule = before.schedule
    moves, source = context.arrivals(schedule)
    is_load = context.is_dram[schedule.memory[source]]
    due = before.start + schedule.cycles
    due[moves] = np.where(is_load, before.makespan, before.lifetimes()[1][source])
    due = np.minimum(due, before.makespan)
    # As nothing takes more bytes at any time, the capacity is no matter of times.
    unlimited = context.with_capacity(np.full(context.usable.size, NEVER))
    return backward_pass(before, unlimited, due=due)


def with_loads_early(
    context: ScheduleContext, before: TimedSchedule, memories: Memories
) -> TimedSchedule:
    """Return a schedule that ends no later, with open addresses, whose loads come first to bytes.

    In a forward pass copies between scratchpads are early like all else, and hold bytes in which
    weights could wait that DRAM has the time to send. So tasks keep their times first, copies come
    as late as they can, and loads as early as there is capacity then. The forward pass behind that
    finds the loads at their early times, and leaves to copies what is left.
    """
    loads = loads_of(context, before.schedule)
    if not loads.size:
        return before
    late = with_transfers_late(context, before)
    soonest_first = loads[np.argsort(late.start[loads], kind="stable")]
    return forward_pass(advanced(late, memories, soonest_first), memories)


def loads_of(context: ScheduleContext, schedule: PartialOrderSchedule) -> Ints:
    """Return the transfers out of a DRAM to other memories."""
    moves, source = context.arrivals(schedule)
    found: Ints = moves[context.is_dram[schedule.memory[source]]]
    return found


def advanced(late: TimedSchedule, memories: Memories, chosen: Ints) -> TimedSchedule:
    """Return a schedule in which some activities start as early as they can next to all others.

    Those keep their times. Activities are moved in the order given.
    """
    schedule, start = late.schedule, late.start.copy()
    begins, ends = late.lifetimes()
    is_filled = schedule.filler != NONE
    state = _Advance(
        schedule=schedule,
        memories=memories,
        usage=profiles_of_resources(schedule, chosen.size),
        occupancy=profiles_of_memories(schedule, memories.limit.size, chosen.size),
        begins=begins,
        filled=np.where(is_filled, (start + schedule.cycles)[schedule.filler], 0),
        ends=ends,
        start=start,
    )
    _advance(state, chosen)
    return TimedSchedule(schedule, start, late.makespan)


class _Advance(NamedTuple):
    """All activities at their times; ``begins``, ``filled`` and ``ends`` are of residencies."""

    schedule: PartialOrderSchedule
    memories: Memories
    usage: Timeline
    occupancy: Timeline
    begins: Ints
    filled: Ints
    ends: Ints
    start: Ints


@kernel
def _advance(state: _Advance, chosen: Ints) -> None:
    schedule, usage, occupancy = state.schedule, state.usage, state.occupancy
    limit, start, begins, ends = state.memories.limit, state.start, state.begins, state.ends
    for act in range(start.size):
        if schedule.cycles[act] > 0:
            hold(schedule, usage, act, start[act], ONE)
    for residency in range(ends.size):
        memory = schedule.memory[residency]
        if limit[memory] != NEVER and ends[residency] > begins[residency]:
            size = taken(schedule, residency, memory)
            occupy(occupancy, memory, begins[residency], ends[residency], size)
    for act in chosen:
        old = start[act]
        hold(schedule, usage, act, old, -ONE)
        ready = precedence_ready(
            schedule, state.memories.reuse.earlier, act, start, state.filled, ends
        )
        ready = capacity_ready(schedule, limit, occupancy, act, ready, old)
        new = min(old, earliest_start(schedule, usage, act, ready))
        hold(schedule, usage, act, new, ONE)
        start[act] = new
        for i in range(schedule.fills.begin[act], schedule.fills.begin[act + 1]):
            residency = schedule.fills.items[i]
            memory = schedule.memory[residency]
            state.filled[residency] = new + schedule.cycles[act]
            if new < old and limit[memory] != NEVER:
                occupy(occupancy, memory, new, old, taken(schedule, residency, memory))
