"""A plan as a partial-order schedule: flat arrays of all decisions but times.

An *activity* is a task or a transfer, tasks first. It reads residencies and fills others; a task
fills its scratch, too. A residency lasts from the start of the activity that fills it (or from
cycle 0) until the last activity has ended that reads or fills it, or until all ends if it has to.

What resources carry and memories hold over time are step functions, *profiles*.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.numba_layer import part
from spmilp.machine.machine import Machine
from spmilp.solvers.schedule.kernels.records import NONE, ONE, ZERO, Ints, Rows, owners_of, table
from spmilp.solvers.schedule.kernels.timeline import Timeline, earliest_gap, occupy, step_at
from spmilp.units import CoreIdx, Cycles, KindIdx, MemoryIdx

Flags: TypeAlias = NDArray[np.bool_]


def pools_of(machine: Machine) -> tuple[tuple[CoreIdx, ...], ...]:
    """Return the cores of each kind at each memory: to a task they are all the same."""
    pools: dict[tuple[KindIdx, MemoryIdx], list[CoreIdx]] = {}
    for core in machine.cores:
        pools.setdefault((core.kind, core.memory), []).append(core.index)
    return tuple(tuple(cores) for cores in pools.values())


class Demands(NamedTuple):
    """What each of many activities, or of many ways to send something, holds while it runs.

    Attributes
    ----------
    begin, items
        Its resources: ``items[begin[i]:begin[i + 1]]``. First come pools of equal cores, then
        engines, then links.
    amounts
        How much of each it holds; rates are in a unit of which all are whole multiples.
    """

    begin: Ints
    items: Ints
    amounts: Ints

    @property
    def rows(self) -> Rows:
        """The resources alone."""
        return Rows(self.begin, self.items)


class PartialOrderSchedule(NamedTuple):
    """All decisions of a plan but times; passes compute these from an order of activities.

    Attributes
    ----------
    cycles
        Of each activity; 0 for a transfer that was dropped, which reads nothing.
    demands, capacity
        The resources that each activity holds, and what there is of each resource.
    reads, fills
        Residencies that each activity reads and fills.
    before, after
        Tasks that each activity follows without data, and those that follow it.
    readers
        Activities that read each residency.
    filler
        The activity that fills each residency; -1 when it is there at cycle 0.
    memory, offset, bytes
        Of each residency.
    alignment
        Of each memory, what offsets are multiples of.
    lasting
        Whether each residency stays until all ends.
    slice
        Of each residency; -1 for scratch.
    moved_slice
        The slice that each activity moves; -1 for tasks.
    overwrites, overwritten_by
        In-place predecessor and successor of each residency: the one whose bytes it takes over, and
        the one that takes over its own; -1 for none.
    """

    cycles: Ints
    demands: Demands
    capacity: Ints
    reads: Rows
    fills: Rows
    before: Rows
    after: Rows
    readers: Rows
    filler: Ints
    memory: Ints
    offset: Ints
    bytes: Ints
    alignment: Ints
    lasting: Ints
    slice: Ints
    moved_slice: Ints
    overwrites: Ints
    overwritten_by: Ints


class ReuseOrder(NamedTuple):
    """For each residency, those that use some of its bytes just before it, and just after it."""

    earlier: Rows
    later: Rows


class Memories(NamedTuple):
    """What memories allow while times change.

    Attributes
    ----------
    limit
        Bytes of each memory that may be in use during the new time of an activity that a pass
        moves; ``NEVER`` for no limit.
    reuse
        The order of residencies on the same bytes, where addresses stay as they are.
    """

    limit: Ints
    reuse: ReuseOrder


@part
def taken(schedule: PartialOrderSchedule, residency: int, memory: int) -> int:
    """Return the bytes that a residency takes in a memory, with those up to the next offset.

    The size is rounded up to the memory's alignment. Residencies whose rounded sizes fit together
    are never kept from having addresses by alignment.
    """
    unit = schedule.alignment[memory]
    whole: int = (schedule.bytes[residency] + unit - 1) // unit * unit
    return whole


def taken_by(schedule: PartialOrderSchedule, residencies: Ints | Flags) -> Ints:
    """Return what :func:`taken` says of some residencies, each in its memory."""
    unit = schedule.alignment[schedule.memory[residencies]]
    return -(-schedule.bytes[residencies] // unit) * unit


def is_alive(schedule: PartialOrderSchedule) -> Flags:
    """Say which residencies there are: not those that dropped transfers filled."""
    alive: Flags = (schedule.filler == NONE) | (schedule.cycles[schedule.filler] > 0)
    return alive


@dataclass(frozen=True, slots=True)
class TimedSchedule:
    """A schedule, a valid start cycle for each activity, and when the last one ends."""

    schedule: PartialOrderSchedule
    start: Ints
    makespan: Cycles

    def lifetimes(self) -> tuple[Ints, Ints]:
        """Return the start and the end of each residency, ``[start, end)``.

        A residency that nothing fills and nobody reads exists for one cycle, a lasting one until
        the makespan, and one that a dropped transfer filled for none.
        """
        schedule, finish = self.schedule, self.start + self.schedule.cycles
        filled = schedule.filler != NONE
        begins = np.where(filled, self.start[schedule.filler], 0)
        ends = np.where(filled, finish[schedule.filler], 1)
        np.maximum.at(ends, owners_of(schedule.readers), finish[schedule.readers.items])
        return begins, np.where(schedule.lasting, np.maximum(ends, self.makespan), ends)


def timed(schedule: PartialOrderSchedule, start: Ints) -> TimedSchedule:
    """Return a schedule with its start cycles."""
    ends = (start + schedule.cycles)[schedule.cycles > 0]
    return TimedSchedule(schedule, start, int(ends.max(initial=0)))


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
def earliest_start(
    demands: Demands, capacity: Ints, usage: Timeline, one: int, cycles: int, ready: int
) -> int:
    """Return the first cycle from ``ready`` on at which all is free that an activity demands."""
    first, past = demands.begin[one], demands.begin[one + 1]
    start, asked, agreed = ready, first, ZERO
    # They are asked in turn until all agree.
    while agreed < past - first:
        resource = demands.items[asked]
        spare = capacity[resource] - demands.amounts[asked]
        found = earliest_gap(usage, resource, start, cycles, spare)
        agreed = agreed + 1 if found == start else ONE
        start = found
        asked = asked + 1 if asked + 1 < past else first
    return start


@part
def hold(demands: Demands, usage: Timeline, one: int, start: int, end: int, sign: int) -> None:
    """Take what an activity demands from ``start`` to ``end``, or give it back with ``sign`` -1."""
    for i in range(demands.begin[one], demands.begin[one + 1]):
        occupy(usage, demands.items[i], start, end, sign * demands.amounts[i])


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
