"""Transfers as late as they can be: memories hold the least while tasks keep their times."""

from dataclasses import replace

import numpy as np

from spmilp.solvers.kernels.records import NEVER, NONE
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
    is_dram = context.is_dram[schedule.memory]
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    moves = moves[~is_dram[schedule.fills.items[schedule.fills.begin[moves]]]]
    source = schedule.reads.items[schedule.reads.begin[moves]]
    fixed, tail = np.full(schedule.cycles.size, KEEPS_TIME), schedule.tail.copy()
    fixed[moves] = schedule.fixed[moves]
    held_until = before.lifetimes()[1][source]
    behind = np.where(is_dram[source], 0, before.makespan - held_until)
    tail[moves] = np.maximum(tail[moves], behind)
    bounded = replace(before, schedule=schedule._replace(fixed=fixed, tail=tail))
    # As nothing takes more bytes at any time, the capacity is no matter of times.
    late = backward_pass(bounded, context.with_capacity(np.full(context.usable.size, NEVER)))
    return replace(late, schedule=schedule)
