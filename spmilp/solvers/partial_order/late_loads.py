"""Loads as late as they can be: memories hold the least while the rest keeps its times."""

from dataclasses import replace

import numpy as np

from spmilp.solvers.kernels.records import NEVER, NONE
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.schedule import (
    KEEPS_TIME,
    Flags,
    PartialOrderSchedule,
    TimedSchedule,
)


def is_load(context: ScheduleContext, schedule: PartialOrderSchedule) -> Flags:
    """Say which activities are transfers that bring something from a DRAM to other memories."""
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    source = schedule.reads.items[schedule.reads.begin[moves]]
    target = schedule.fills.items[schedule.fills.begin[moves]]
    is_dram = context.is_dram[schedule.memory]
    found = np.zeros(schedule.cycles.size, np.bool_)
    found[moves] = is_dram[source] & ~is_dram[target]
    return found


def with_loads_late(context: ScheduleContext, before: TimedSchedule) -> TimedSchedule:
    """Return a schedule in which loads end as late as they can, and all else keeps its times.

    Nothing is in a scratchpad for longer than before, so offsets are found more often. What a load
    brings comes from a DRAM, where the capacity is no matter of times.
    """
    schedule = before.schedule
    fixed = np.where(is_load(context, schedule), schedule.fixed, KEEPS_TIME)
    memories = context.with_capacity(np.full(context.usable.size, NEVER))
    late = backward_pass(replace(before, schedule=schedule._replace(fixed=fixed)), memories)
    return replace(late, schedule=schedule)
