"""What resources carry and memories hold over time: step functions, empty, with room for all."""

import numpy as np

from spmilp.compiled import part
from spmilp.solvers.kernels.records import ONE, ZERO, Ints, table
from spmilp.solvers.kernels.timeline import Timeline, earliest_gap, occupy, step_at
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule


def profiles_of_resources(schedule: PartialOrderSchedule, changes: int = 0) -> Timeline:
    """Return empty profiles of cores, engines and links, with room for some changes."""
    most = 2 * np.bincount(schedule.demands.items, minlength=schedule.capacity.size)
    return _profiles(most + 2 * changes)


def profiles_of_memories(
    schedule: PartialOrderSchedule, memories: int, changes: int = 0
) -> Timeline:
    """Return empty profiles of the bytes in use, with room for some changes."""
    most = 6 * np.bincount(schedule.memory, minlength=memories) + 2 * schedule.readers.items.size
    return _profiles(most + 2 * changes)


def _profiles(breakpoints: Ints) -> Timeline:
    most = breakpoints + 4
    rows = table(most.size, "begin", "length", "slots")
    rows["begin"] = np.cumsum(most) - most
    rows["length"] = 1
    rows["slots"] = most
    steps = table(int(most.sum()), "time", "load")
    return Timeline(steps=steps, resources=rows, used=np.array([steps.size], np.int64))


@part
def earliest_start(schedule: PartialOrderSchedule, usage: Timeline, act: int, ready: int) -> int:
    """Return the first cycle from ``ready`` on at which an activity's resources are free."""
    cycles, demands = schedule.cycles[act], schedule.demands
    first, past = demands.begin[act], demands.begin[act + 1]
    start, asked, agreed = ready, first, ZERO
    # They are asked in turn until all agree.
    while agreed < past - first:
        resource = demands.items[asked]
        spare = schedule.capacity[resource] - schedule.amounts[asked]
        found = earliest_gap(usage, resource, start, cycles, spare)
        agreed = agreed + 1 if found == start else ONE
        start = found
        asked = asked + 1 if asked + 1 < past else first
    return start


@part
def hold(schedule: PartialOrderSchedule, usage: Timeline, act: int, start: int, sign: int) -> None:
    """Take an activity's resources from ``start`` on, or give them back with ``sign`` -1."""
    demands = schedule.demands
    end = start + schedule.cycles[act]
    for i in range(demands.begin[act], demands.begin[act + 1]):
        occupy(usage, demands.items[i], start, end, sign * schedule.amounts[i])


@part
def has_capacity(
    occupancy: Timeline, limit: Ints, memory: int, first: int, until: int, need: int
) -> bool:
    """Say whether so many bytes of a memory are free from ``first`` to ``until``."""
    steps, row = occupancy.steps, occupancy.resources[memory]
    step = step_at(occupancy, memory, first)
    past = row.begin + row.length
    while step < past and steps[step].time < until:
        if steps[step].load + need > limit[memory]:
            return False
        step += 1
    return True
