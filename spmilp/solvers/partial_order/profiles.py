"""Empty step functions with room for all that may ever hold a resource."""

import numpy as np

from spmilp.compiled import part
from spmilp.solvers.kernels.records import Ints, table
from spmilp.solvers.kernels.timeline import Timeline, earliest_gap, occupy
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule


def line_of_resources(schedule: PartialOrderSchedule, changes: int = 0) -> Timeline:
    """Return the step functions of cores, engines and links, with room for some changes."""
    return _line(
        2 * np.bincount(schedule.demands.items, minlength=schedule.capacity.size) + 2 * changes
    )


def line_of_memories(schedule: PartialOrderSchedule, memories: int, changes: int = 0) -> Timeline:
    """Return the step functions of the bytes in use, with room for some changes."""
    most = 6 * np.bincount(schedule.memory, minlength=memories) + 2 * schedule.readers.items.size
    return _line(most + 2 * changes)


def _line(breakpoints: Ints) -> Timeline:
    most = breakpoints + 4
    rows = table(most.size, "begin", "length", "slots")
    rows["begin"] = np.cumsum(most) - most
    rows["length"] = 1
    rows["slots"] = most
    steps = table(int(most.sum()), "time", "load")
    return Timeline(steps=steps, resources=rows, used=np.array([steps.size], np.int64))


@part
def first_room(schedule: PartialOrderSchedule, line: Timeline, act: int, ready: int) -> int:
    """Return the first cycle from ``ready`` on at which an activity's resources have room."""
    cycles, demands = schedule.cycles[act], schedule.demands
    start = ready
    settled = False
    while not settled:
        settled = True
        for i in range(demands.begin[act], demands.begin[act + 1]):
            which = demands.items[i]
            spare = schedule.capacity[which] - schedule.amounts[i]
            found = earliest_gap(line, which, start, cycles, spare)
            if found > start:
                start = found
                settled = False
    return start


@part
def hold(schedule: PartialOrderSchedule, line: Timeline, act: int, start: int) -> None:
    """Take an activity's resources from ``start`` on."""
    demands = schedule.demands
    for i in range(demands.begin[act], demands.begin[act + 1]):
        occupy(line, demands.items[i], start, start + schedule.cycles[act], schedule.amounts[i])


@part
def release(schedule: PartialOrderSchedule, line: Timeline, act: int, start: int) -> None:
    """Give back what an activity holds from ``start`` on."""
    demands = schedule.demands
    for i in range(demands.begin[act], demands.begin[act + 1]):
        occupy(line, demands.items[i], start, start + schedule.cycles[act], -schedule.amounts[i])
