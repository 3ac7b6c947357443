"""Who may wait for the bytes of whom, and the times that follow from it.

Where two residencies share bytes for a time, the one that begins later waits for the end of the
other, and all that follows waits with it.
"""

import numpy as np

from spmilp.compiled import kernel
from spmilp.solvers.kernels.records import NEVER, NONE, Ints, Rows, owners_of, rows_from_pairs
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule, TimedSchedule, timed


class WaitingOrder:
    """Who may wait for whom, so that nobody waits for what follows itself.

    Each activity has a time, its start at first, and those that follow it have no earlier one. One
    that waits gets the time of the last one that it waits for, which has to be before
    that of all that follow it.

    Parameters
    ----------
    before
        A schedule at valid times.

    Attributes
    ----------
    first
        The first time of those that follow each activity.
    last
        The last time of those that fill or read each residency; ``NEVER`` for what stays.
    """

    def __init__(self, context: ScheduleContext, before: TimedSchedule) -> None:
        schedule, start = before.schedule, before.start
        readers, fillers = schedule.readers, schedule.filler[owners_of(schedule.readers)]
        is_filled = fillers != NONE
        self._schedule = schedule
        self.first = np.full(start.size, NEVER)
        np.minimum.at(self.first, fillers[is_filled], start[readers.items[is_filled]])
        np.minimum.at(self.first, owners_of(schedule.after), start[schedule.after.items])
        self.last = np.where(schedule.filler == NONE, 0, start[schedule.filler])
        np.maximum.at(self.last, owners_of(readers), start[readers.items])
        self.last[schedule.lasting > 0] = NEVER
        # What follows one that frees bytes may take these at its end.
        frees = np.zeros(start.size, np.bool_)
        is_on_chip = ~context.is_dram[schedule.memory]
        frees[owners_of(schedule.reads)[is_on_chip[schedule.reads.items]]] = True
        is_read = np.diff(readers.begin) > 0
        frees[owners_of(schedule.fills)[~is_read[schedule.fills.items]]] = True
        self.first[frees] = np.minimum(self.first, start + schedule.cycles)[frees]

    def note_wait(self, filler: int, time: int) -> None:
        """Let an activity have such a time at least."""
        for rows in (self._schedule.reads, self._schedule.fills):
            touched = rows.row(filler)
            self.last[touched] = np.maximum(self.last[touched], time)


def after_all_waits(context: ScheduleContext, before: TimedSchedule) -> TimedSchedule | None:
    """Return start cycles at which nothing begins to fill bytes that others still have.

    Cores, channels and links may do too much then: a forward pass puts that right. ``None`` where
    activities would wait for each other.
    """
    schedule, start = before.schedule, before.start.copy()
    rows, incoming = _successors(schedule, context.with_addresses_of(before).reuse.earlier)
    runs = schedule.cycles > 0
    waiting = np.flatnonzero(runs & (incoming == 0))
    queue = np.zeros(start.size, np.int64)
    queue[: waiting.size] = waiting
    if _wait(rows, incoming, schedule.cycles, start, queue, waiting.size) < runs.sum():
        return None
    return timed(schedule, start)


def _successors(schedule: PartialOrderSchedule, earlier: Rows) -> tuple[Rows, Ints]:
    """Return the activities that wait for each one to end, and for how many each one waits."""
    reader, read = owners_of(schedule.reads), schedule.reads.items
    pairs = [(schedule.before.items, owners_of(schedule.before)), (schedule.filler[read], reader)]
    over = np.flatnonzero(schedule.overwrites != NONE)
    is_in_place = schedule.overwrites[owners_of(earlier)] == earlier.items
    first = np.concatenate((earlier.items[~is_in_place], schedule.overwrites[over]))
    second = np.concatenate((owners_of(earlier)[~is_in_place], over))
    pairs.append((schedule.filler[first], schedule.filler[second]))
    count = np.diff(schedule.readers.begin)[first]
    where = np.repeat(schedule.readers.begin[first] - (np.cumsum(count) - count), count)
    where += np.arange(count.sum())
    second = np.repeat(second, count)
    overwrites = schedule.filler[second] == schedule.readers.items[where]
    overwrites &= schedule.overwrites[second] == np.repeat(first, count)
    second = schedule.filler[second]
    second[overwrites] = NONE
    pairs.append((schedule.readers.items[where], second))
    one, other = (np.concatenate(column) for column in zip(*pairs, strict=True))
    kept = (one != NONE) & (other != NONE)
    kept &= (schedule.cycles[one] > 0) & (schedule.cycles[other] > 0)
    one, other = one[kept], other[kept]
    activities = schedule.cycles.size
    return rows_from_pairs(one, other, activities), np.bincount(other, minlength=activities)


@kernel
def _wait(
    successors: Rows, incoming: Ints, cycles: Ints, start: Ints, queue: Ints, count: int
) -> int:
    """Let each activity of a partial order start after those before it; return how many do."""
    done = 0
    while done < count:
        act = queue[done]
        done += 1
        end = start[act] + cycles[act]
        for i in range(successors.begin[act], successors.begin[act + 1]):
            other = successors.items[i]
            start[other] = max(start[other], end)
            incoming[other] -= 1
            if incoming[other] == 0:
                queue[count] = other
                count += 1
    return count
