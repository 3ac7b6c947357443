"""Transfers as late as they can be: memories hold the least while tasks keep their times."""

from dataclasses import replace

import numpy as np

from spmilp.solvers.kernels.records import NEVER
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.schedule import KEEPS_TIME, TimedSchedule


def with_transfers_late(context: ScheduleContext, before: TimedSchedule) -> TimedSchedule:
    """Return a schedule in which what comes to scratchpads comes as late as it can.

    All else keeps its times: tasks, and what is stored in a DRAM. A copy of what another scratchpad
    holds ends no later than that is held anyway. So nothing is in a scratchpad for longer than
    before, and offsets are found more often.
    """
    schedule = before.schedule
    moves, source = context.arrivals(schedule)
    fixed, tail = np.full(schedule.cycles.size, KEEPS_TIME), schedule.tail.copy()
    fixed[moves] = schedule.fixed[moves]
    held_until, is_dram = before.lifetimes()[1][source], context.is_dram[schedule.memory[source]]
    behind = np.where(is_dram, 0, before.makespan - held_until)
    tail[moves] = np.maximum(tail[moves], behind)
    bounded = replace(before, schedule=schedule._replace(fixed=fixed, tail=tail))
    # As nothing takes more bytes at any time, the capacity is no matter of times.
    late = backward_pass(bounded, context.with_capacity(np.full(context.usable.size, NEVER)))
    return replace(late, schedule=schedule)
