"""A plan as a partial-order schedule: flat arrays of all decisions but times.

An *activity* is a task or a transfer, tasks first. It reads residencies and fills others; a task
fills its scratch, too. A residency lasts from the start of the activity that fills it (or from
cycle 0) until the last activity is through with it that reads or fills it, or until all ends if it
has to. A task reads until its end, a transfer until all is sent, its latency before its end.

The .pxd has the tuples that kernels read for C, with the same fields.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.machine.machine import Machine
from spmilp.solvers.schedule.kernels.records import NONE, Ints, Rows, owners_of
from spmilp.units import CoreIdx, Cycles, KindIdx, MemoryIdx

Flags: TypeAlias = NDArray[np.bool_]


def pools_of(machine: Machine) -> tuple[tuple[CoreIdx, ...], ...]:
    """Return the cores of each kind at each memory: to a task they are all the same."""
    pools: dict[tuple[KindIdx, MemoryIdx], list[CoreIdx]] = {}
    for core in machine.cores:
        pools.setdefault((core.kind, core.memory), []).append(core.index)
    return tuple(tuple(cores) for cores in pools.values())


class Demands(NamedTuple):
    """What each of many activities, or of many ways to send something, holds and when.

    Its resources are ``items[begin[i]:begin[i + 1]]``: first pools of equal cores, then engines,
    then links. It holds ``amounts`` of each (rates in a unit of which all are whole multiples) from
    so many cycles ``late`` after its start until so many ``early`` before its end.
    """

    begin: Ints
    items: Ints
    amounts: Ints
    late: Ints
    early: Ints

    @property
    def rows(self) -> Rows:
        """The resources alone."""
        return Rows(self.begin, self.items)

    def mirrored(self) -> "Demands":
        """Return the demands in mirrored time."""
        return self._replace(late=self.early, early=self.late)


def demands_of_transfers(
    rows: Rows, amounts: Ints, setup: Ints, latency: Ints, is_pipelined: Flags
) -> Demands:
    """Return what transfers hold: each a channel, and behind it the links.

    Links are held for the bytes alone, the channel from the start, if its engine is not pipelined
    until the end. ``setup``, ``latency`` and ``is_pipelined`` are those of each transfer.
    """
    owners, is_link = owners_of(rows), np.ones(rows.items.size, np.bool_)
    is_link[rows.begin[:-1]] = False
    late = np.where(is_link, setup[owners], 0)
    early = np.where(is_link | is_pipelined[owners], latency[owners], 0)
    return Demands(rows.begin, rows.items, amounts, late, early)


class PartialOrderSchedule(NamedTuple):
    """All decisions of a plan but times; passes compute these from an order of activities.

    Attributes
    ----------
    cycles
        Of each activity; 0 for a transfer that was dropped, which reads nothing.
    latency
        Of each activity: how long before its end it reads no more; 0 for tasks.
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
    latency: Ints
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

    So many bytes of each memory, its ``limit``, may be in use during the new time of an activity
    that a pass moves; ``NEVER`` for no limit. ``reuse`` is the order of residencies on the same
    bytes, where addresses stay as they are.
    """

    limit: Ints
    reuse: ReuseOrder


def taken_by(schedule: PartialOrderSchedule, residencies: Ints | Flags) -> Ints:
    """Return the bytes that residencies take, each in its memory, see ``profiles.taken``."""
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
        sent = finish - schedule.latency
        np.maximum.at(ends, owners_of(schedule.readers), sent[schedule.readers.items])
        return begins, np.where(schedule.lasting, np.maximum(ends, self.makespan), ends)


def timed(schedule: PartialOrderSchedule, start: Ints) -> TimedSchedule:
    """Return a schedule with its start cycles."""
    ends = (start + schedule.cycles)[schedule.cycles > 0]
    return TimedSchedule(schedule, start, int(ends.max(initial=0)))
