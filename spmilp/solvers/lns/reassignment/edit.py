"""A schedule in the course of being changed: only what changes is written down."""

from collections.abc import Mapping, Sequence

import numpy as np

from spmilp.problem.problem import Slice
from spmilp.solvers.kernels.records import NONE, Ints, Rows
from spmilp.solvers.partial_order.schedule import FREE, PartialOrderSchedule
from spmilp.solvers.partial_order.transfer_options import TransferOption
from spmilp.units import Cycles, MemoryIdx, ResidencyIdx


class Column:
    """An array with changes."""

    def __init__(self, before: Ints) -> None:
        self._before = before
        self._changes: dict[int, int] = {}

    def __getitem__(self, index: int) -> int:
        return self._changes.get(index, int(self._before[index]))

    def __setitem__(self, index: int, value: int) -> None:
        self._changes[index] = value

    def result(self) -> Ints:
        """Return the array with its changes."""
        if not self._changes:
            return self._before
        found = self._before.copy()
        found[[*self._changes]] = [*self._changes.values()]
        return found


class Lists:
    """Rows with changes."""

    def __init__(self, before: Rows) -> None:
        self._before = before
        self._changes: dict[int, Sequence[int]] = {}

    def __getitem__(self, index: int) -> list[int]:
        return [*self._changes[index]] if index in self._changes else self._before.values(index)

    def __setitem__(self, index: int, values: Sequence[int]) -> None:
        self._changes[index] = values

    def result(self) -> Rows:
        """Return the rows with their changes."""
        return _with_rows(self._before, self._changes)


def free_slots(schedule: PartialOrderSchedule, first: int) -> Ints:
    """Return the transfers from the first slot on that are free."""
    is_slot = (schedule.cycles == 0) & (schedule.fixed == FREE)
    is_slot &= np.diff(schedule.fills.begin) == 1
    return first + np.flatnonzero(is_slot[first:])


class ScheduleEdit:
    """The columns of a schedule that a reassignment reads or changes, with its changes.

    Parameters
    ----------
    first_free_slot
        The first of the transfers that are free slots; those that are in use are passed over.
    """

    def __init__(self, schedule: PartialOrderSchedule, first_free_slot: int) -> None:
        self._schedule = schedule
        free = free_slots(schedule, first_free_slot)
        self._free_slots = iter(free.tolist())
        is_dropped = (schedule.cycles == 0) & (schedule.fixed == FREE)
        is_dropped[free] = False
        self._dropped = next(iter(np.flatnonzero(is_dropped).tolist()), None)
        self._demands = Lists(schedule.demands)
        self._amounts = Lists(Rows(schedule.demands.begin, schedule.amounts))
        self._moved_slice = Column(schedule.moved_slice)
        self._bytes = Column(schedule.bytes)
        self._overwrites = Column(schedule.overwrites)
        self.filler = Column(schedule.filler)
        self.cycles = Column(schedule.cycles)
        self.reads = Lists(schedule.reads)
        self.fills = Lists(schedule.fills)
        self.readers = Lists(schedule.readers)
        self.memory = Column(schedule.memory)
        self.slice = Column(schedule.slice)
        self.overwritten_by = Column(schedule.overwritten_by)

    def run(self, task: int, pool: int, cycles: Cycles) -> None:
        """Let a task run on a pool of cores."""
        self._demands[task], self._amounts[task] = (pool,), (1,)
        self.cycles[task] = cycles

    def send(self, transfer: int, option: TransferOption) -> None:
        """Let a transfer take an option."""
        self._demands[transfer], self._amounts[transfer] = option.resources, option.amounts
        self.cycles[transfer] = option.cycles

    def drop(self, transfer: int) -> None:
        """Do without a transfer."""
        (source,) = self.reads[transfer]
        self.readers[source] = [one for one in self.readers[source] if one != transfer]
        self.reads[transfer] = []
        self.cycles[transfer] = 0

    def remove_target(self, transfer: int, target: ResidencyIdx) -> bool:
        """Let a transfer no longer fill one of several residencies; say whether that is possible.

        What is gone is filled by a transfer that was dropped, or by a free slot, which then is no
        longer one.
        """
        if self._dropped is None:
            self._dropped = next(self._free_slots, None)
        dropped = self._dropped
        if dropped is None:
            return False
        self.fills[transfer] = [one for one in self.fills[transfer] if one != target]
        self.fills[dropped] = [*self.fills[dropped], target]
        self.filler[target] = dropped
        return True

    def read_instead(self, act: int, old: ResidencyIdx, new: ResidencyIdx) -> None:
        """Let an activity read another residency, as often as it read the old one."""
        reads = self.reads[act]
        self.reads[act] = [new if one == old else one for one in reads]
        self.readers[old] = [one for one in self.readers[old] if one != act]
        self.readers[new] = sorted([*self.readers[new], *[act] * reads.count(old)])

    def copy(
        self, what: Slice, source: ResidencyIdx, memory: MemoryIdx, option: TransferOption
    ) -> tuple[int, ResidencyIdx] | None:
        """Add a transfer; return it and what it fills, or ``None`` without a free slot."""
        transfer = next(self._free_slots, None)
        if transfer is None:
            return None
        (new,) = self.fills[transfer]
        self.send(transfer, option)
        self._moved_slice[transfer] = what.index
        self.reads[transfer] = [source]
        self.readers[source] = sorted([*self.readers[source], transfer])
        self.readers[new] = []
        self.slice[new], self._bytes[new], self.memory[new] = what.index, what.bytes, memory
        self._overwrites[new] = self.overwritten_by[new] = NONE
        return transfer, new

    def overwrite_instead(self, residency: ResidencyIdx, instead: ResidencyIdx) -> None:
        """Let what overwrites a residency in place overwrite another one."""
        successor = self.overwritten_by[residency]
        self.overwritten_by[residency], self.overwritten_by[instead] = NONE, successor
        self._overwrites[successor] = instead

    def overwrite(self, old: ResidencyIdx, new: ResidencyIdx) -> None:
        """Let a residency overwrite another one in place."""
        self.overwritten_by[old], self._overwrites[new] = new, old

    def forbid_in_place(self, residency: ResidencyIdx) -> None:
        """Let nothing overwrite a residency in place any more."""
        successor = self.overwritten_by[residency]
        if successor != NONE:
            self.overwritten_by[residency] = self._overwrites[successor] = NONE

    def result(self) -> PartialOrderSchedule:
        """Return the schedule as it is now."""
        return self._schedule._replace(
            cycles=self.cycles.result(),
            moved_slice=self._moved_slice.result(),
            demands=self._demands.result(),
            amounts=self._amounts.result().items,
            reads=self.reads.result(),
            fills=self.fills.result(),
            filler=self.filler.result(),
            readers=self.readers.result(),
            memory=self.memory.result(),
            slice=self.slice.result(),
            bytes=self._bytes.result(),
            overwrites=self._overwrites.result(),
            overwritten_by=self.overwritten_by.result(),
        )


def _with_rows(rows: Rows, changes: Mapping[int, Sequence[int]]) -> Rows:
    """Return rows of which some are others, without sorting all."""
    if not changes:
        return rows
    owners = [*changes]
    if all(rows.begin[one + 1] - rows.begin[one] == len(some) for one, some in changes.items()):
        items = rows.items.copy()
        for owner, some in changes.items():
            items[rows.begin[owner] : rows.begin[owner + 1]] = some
        return Rows(rows.begin, items)
    lengths = np.diff(rows.begin)
    kept = np.ones(lengths.size, np.bool_)
    kept[owners] = False
    is_kept = np.repeat(kept, lengths)
    lengths[owners] = [len(items) for items in changes.values()]
    begin = np.concatenate(([0], np.cumsum(lengths)))
    items = np.zeros(begin[-1], np.int64)
    items[np.repeat(kept, lengths)] = rows.items[is_kept]
    for owner, some in changes.items():
        items[begin[owner] : begin[owner + 1]] = some
    return Rows(begin, items)
