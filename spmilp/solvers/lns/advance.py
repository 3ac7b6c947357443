"""Leaving a local optimum: some loads are advanced."""

import numpy as np

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.early_loads import advanced, loads_of
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import justified_by_capacity
from spmilp.solvers.partial_order.schedule import Memories, TimedSchedule

LOADS_ADVANCED = 3
"""On average, and one more."""


def with_loads_advanced(
    context: ScheduleContext,
    current: TimedSchedule,
    memories: Memories,
    clock: Clock,
    random: np.random.Generator,
) -> TimedSchedule:
    """Return a schedule with open addresses that ends no later, in which some loads go first.

    A backward pass ends a little later than the schedule does, so that the loads find capacity at
    the beginning; what that costs has to be won by what they let start earlier.
    """
    schedule = current.schedule
    loads = loads_of(context, schedule)
    if not loads.size:
        return current
    count = 1 + int(random.geometric(1 / LOADS_ADVANCED))
    chosen = random.choice(loads, min(count, loads.size), replace=False)
    last = current.makespan + int(schedule.cycles[chosen].sum())
    late = backward_pass(current, memories, last)
    early = forward_pass(advanced(late, memories, chosen), memories)
    found = justified_by_capacity(context, early, memories, clock, rounds=1)
    return found if found.makespan <= current.makespan else current
