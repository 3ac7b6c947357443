"""A schedule in the course of being changed: only what changes is written down."""

from collections.abc import Mapping, Sequence

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints, Rows
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.solvers.partial_order.transfer_options import TransferOption
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx


class ScheduleEdit:
    """Looks like the schedule, with changes.

    Parameters
    ----------
    first_free_slot
        The first of the free_slots, see :mod:`spmilp.solvers.partial_order.context`.
    """

    def __init__(self, schedule: PartialOrderSchedule, first_free_slot: int) -> None:
        self._schedule = schedule
        self._free_slots = iter(
            (first_free_slot + np.flatnonzero(schedule.cycles[first_free_slot:] == 0)).tolist()
        )
        self._cycles: dict[int, Cycles] = {}
        self._part: dict[int, SliceIdx] = {}
        self._ways: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._reads: dict[int, list[ResidencyIdx]] = {}
        self._readers: dict[ResidencyIdx, list[int]] = {}
        self._memory: dict[ResidencyIdx, MemoryIdx] = {}
        self._slice: dict[ResidencyIdx, SliceIdx] = {}
        self._bytes: dict[ResidencyIdx, Bytes] = {}
        self._overwrites: dict[ResidencyIdx, ResidencyIdx] = {}
        self._overwritten_by: dict[ResidencyIdx, ResidencyIdx] = {}

    def cycles(self, act: int) -> Cycles:
        """Return the cycles of an activity."""
        return self._cycles.get(act, int(self._schedule.cycles[act]))

    def reads(self, act: int) -> list[ResidencyIdx]:
        """Return what an activity reads."""
        return self._reads[act] if act in self._reads else _row(self._schedule.reads, act)

    def readers(self, residency: ResidencyIdx) -> list[int]:
        """Return who reads a residency; who reads it twice, twice."""
        if residency in self._readers:
            return self._readers[residency]
        return _row(self._schedule.readers, residency)

    def fills(self, act: int) -> list[ResidencyIdx]:
        """Return what an activity fills."""
        return _row(self._schedule.fills, act)

    def memory(self, residency: ResidencyIdx) -> MemoryIdx:
        """Return where a residency lies."""
        return self._memory.get(residency, int(self._schedule.memory[residency]))

    def slice(self, residency: ResidencyIdx) -> SliceIdx:
        """Return what a residency holds."""
        return self._slice.get(residency, int(self._schedule.slice[residency]))

    def overwritten_by(self, residency: ResidencyIdx) -> ResidencyIdx:
        """Return what takes over a residency's bytes; -1 for none."""
        return self._overwritten_by.get(residency, int(self._schedule.overwritten_by[residency]))

    def put(self, residency: ResidencyIdx, memory: MemoryIdx) -> None:
        """Let a residency lie in a memory."""
        self._memory[residency] = memory

    def run(self, task: int, pool: int, cycles: Cycles) -> None:
        """Let a task run on a pool of cores."""
        self._ways[task] = (pool,), (1,)
        self._cycles[task] = cycles

    def go(self, move: int, way: TransferOption) -> None:
        """Let a transfer take a way."""
        self._ways[move] = way.resources, way.amounts
        self._cycles[move] = way.cycles

    def drop(self, move: int) -> None:
        """Do without a transfer."""
        (source,) = self.reads(move)
        self._readers[source] = [one for one in self.readers(source) if one != move]
        self._reads[move] = []
        self._cycles[move] = 0

    def read_instead(self, act: int, old: ResidencyIdx, new: ResidencyIdx) -> None:
        """Let an activity read another residency, as often as it read the old one."""
        count = self.reads(act).count(old)
        self._reads[act] = [new if one == old else one for one in self.reads(act)]
        self._readers[old] = [one for one in self.readers(old) if one != act]
        self._readers[new] = sorted([*self.readers(new), *[act] * count])

    def copied(
        self,
        what: SliceIdx,
        size: Bytes,
        source: ResidencyIdx,
        memory: MemoryIdx,
        way: TransferOption,
    ) -> tuple[int, ResidencyIdx] | None:
        """Add a transfer; return it and what it fills, or ``None`` without a spare left."""
        move = next(self._free_slots, None)
        if move is None:
            return None
        (new,) = self.fills(move)
        self.go(move, way)
        self._part[move] = what
        self._reads[move] = [source]
        self._readers[source] = sorted([*self.readers(source), move])
        self._readers[new] = []
        self._slice[new], self._bytes[new], self._memory[new] = what, size, memory
        self._overwrites[new] = self._overwritten_by[new] = NONE
        return move, new

    def bequeath(self, residency: ResidencyIdx, instead: ResidencyIdx) -> None:
        """Let ``instead`` hand its bytes over to the overwritten_by of a residency."""
        overwritten_by = self.overwritten_by(residency)
        (
            self._overwritten_by[residency],
            self._overwritten_by[instead],
            self._overwrites[overwritten_by],
        ) = NONE, overwritten_by, instead

    def keep_apart(self, residency: ResidencyIdx) -> None:
        """Let nothing take over the bytes of a residency any more."""
        overwritten_by = self.overwritten_by(residency)
        if overwritten_by != NONE:
            self._overwritten_by[residency], self._overwrites[overwritten_by] = NONE, NONE

    def schedule(self) -> PartialOrderSchedule:
        """Return the schedule as it is now."""
        schedule = self._schedule
        demands = _with_rows(schedule.demands, {act: way[0] for act, way in self._ways.items()})
        amounts = _with_rows(
            Rows(schedule.demands.begin, schedule.amounts),
            {act: way[1] for act, way in self._ways.items()},
        )
        return schedule._replace(
            cycles=_with(schedule.cycles, self._cycles),
            moved_slice=_with(schedule.moved_slice, self._part),
            demands=demands,
            amounts=amounts.items,
            reads=_with_rows(schedule.reads, self._reads),
            readers=_with_rows(schedule.readers, self._readers),
            memory=_with(schedule.memory, self._memory),
            slice=_with(schedule.slice, self._slice),
            bytes=_with(schedule.bytes, self._bytes),
            overwrites=_with(schedule.overwrites, self._overwrites),
            overwritten_by=_with(schedule.overwritten_by, self._overwritten_by),
        )


def _row(rows: Rows, index: int) -> list[int]:
    found: list[int] = rows.items[rows.begin[index] : rows.begin[index + 1]].tolist()
    return found


def _with(column: Ints, changes: dict[int, int]) -> Ints:
    if not changes:
        return column
    found = column.copy()
    found[[*changes]] = [*changes.values()]
    return found


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
