"""A plan as a partial-order schedule: flat arrays of all decisions but times.

An *activity* is a task or a transfer, tasks first. It reads residencies and fills others; a task
fills its scratch, too. A residency lasts from the start of the activity that fills it (or from
cycle 0) until the last activity has ended that reads or fills it, or until all ends if it has to.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NONE, Ints, Rows, owners_of
from spmilp.units import Cycles

Flags: TypeAlias = NDArray[np.bool_]

FREE, KEEPS_PLACE, KEEPS_TIME = (cast(int, np.int64(value)) for value in range(3))
"""What may change about an activity: all, only when it starts, or nothing."""


class PartialOrderSchedule(NamedTuple):
    """The decisions of a plan; times follow from the order of given ones.

    Attributes
    ----------
    cycles
        Of each activity; 0 for a transfer that was dropped, which reads nothing.
    demands, amounts
        The resources of each activity and how much of them it holds; first come pools of equal
        cores, then engines, then links.
    capacity
        Of each resource; rates in a unit of which all are whole multiples.
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
    head, tail
        Cycles before which each activity does not start, and that follow its end until all ends: 0
        but in a stretch of a schedule.
    fixed
        What may change about each activity: ``FREE``, ``KEEPS_PLACE`` or ``KEEPS_TIME``. Those of
        the last kind run when a stretch begins, and start before all others.
    """

    cycles: Ints
    demands: Rows
    amounts: Ints
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
    head: Ints
    tail: Ints
    fixed: Ints


class ReuseOrder(NamedTuple):
    """Which residencies had the bytes of each just before, and which have them just after."""

    earlier: Rows
    later: Rows


class Memories(NamedTuple):
    """What memories allow while times change.

    Attributes
    ----------
    limit
        Bytes of each memory that may be in use where something moves to; ``NEVER`` for no limit.
    reuse
        The order of residencies where addresses stay as they are.
    """

    limit: Ints
    reuse: ReuseOrder


@part
def taken(schedule: PartialOrderSchedule, residency: int, memory: int) -> int:
    """Return the bytes that a residency takes in a memory, with those up to the next offset.

    Counted like this, bytes that fit are not kept from having addresses by gaps between them.
    """
    return padded(schedule, schedule.bytes[residency], memory)


@part
def padded(schedule: PartialOrderSchedule, size: int, memory: int) -> int:
    """Return a number of bytes rounded up to what offsets in a memory are multiples of."""
    unit = schedule.alignment[memory]
    whole: int = (size + unit - 1) // unit * unit
    return whole


def taken_by(schedule: PartialOrderSchedule, residencies: Ints | Flags) -> Ints:
    """Return the same for some residencies, each in its memory."""
    unit = schedule.alignment[schedule.memory[residencies]]
    return -(-schedule.bytes[residencies] // unit) * unit


def is_alive(schedule: PartialOrderSchedule) -> Flags:
    """Say which residencies there are: not those that dropped transfers filled."""
    alive: Flags = (schedule.filler == NONE) | (schedule.cycles[schedule.filler] > 0)
    return alive


def makespan_of(schedule: PartialOrderSchedule, start: Ints) -> int:
    """Return the end of the last activity, and of what follows it."""
    ends = start + schedule.cycles + schedule.tail
    return int(ends[schedule.cycles > 0].max(initial=0))


def lifetimes(schedule: PartialOrderSchedule, start: Ints, last: int) -> tuple[Ints, Ints]:
    """Return the first and the last cycle of each residency, ``[start, end)``.

    What nothing fills and nobody reads is there for one cycle; what lasts, until cycle ``last``;
    what a dropped transfer filled, for none.
    """
    filled = schedule.filler != NONE
    begins = np.where(filled, start[schedule.filler], 0)
    ends = np.where(filled, begins + schedule.cycles[schedule.filler], 1)
    np.maximum.at(
        ends, owners_of(schedule.readers), (start + schedule.cycles)[schedule.readers.items]
    )
    return begins, np.where(schedule.lasting, np.maximum(ends, last), ends)


@dataclass(frozen=True, slots=True)
class TimedSchedule:
    """A schedule, a valid start cycle for each activity, and when the last one ends."""

    schedule: PartialOrderSchedule
    start: Ints
    makespan: Cycles

    def lifetimes(self) -> tuple[Ints, Ints]:
        """Return the first and the last cycle of each residency, ``[start, end)``."""
        return lifetimes(self.schedule, self.start, self.makespan)


def timed(schedule: PartialOrderSchedule, start: Ints) -> TimedSchedule:
    """Return a schedule with its start cycles."""
    return TimedSchedule(schedule, start, makespan_of(schedule, start))
