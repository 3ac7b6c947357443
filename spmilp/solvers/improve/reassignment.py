"""Tasks move to other cores, with the residencies that only they use.

1. The tasks run on the new pool of cores, and what they write lies in its memory.
2. *Private* operands, which a transfer brings for these tasks alone, come along: it brings them to
   the new memory. Every transfer with an end that moved takes the shortest option between its new
   ends; where both have become one memory, it falls away.
3. *Shared* operands, which others need where they are, are read from a residency that is in the new
   memory at that time, or from a new copy there.
4. Results that are read in the old memory are copied back.

New copies take free slots of the schedule, see :mod:`spmilp.solvers.justify.context`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spmilp.problem.problem import Problem, Slice
from spmilp.solvers.justify.context import ScheduleContext
from spmilp.solvers.justify.schedule import PartialOrderSchedule, TimedSchedule, pools_of
from spmilp.solvers.justify.transfer_options import TransferOption, TransferOptions
from spmilp.solvers.schedule.kernels.records import NONE, Ints, Rows
from spmilp.units import Cycles, KindIdx, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


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
    is_slot = (schedule.cycles == 0) & (np.diff(schedule.fills.begin) == 1)
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
        is_dropped = schedule.cycles == 0
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

        The residency stays in the tables, filled by a dropped transfer. Without one, a free slot
        becomes that dropped transfer.
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
    """Return rows of which some are replaced, without sorting all."""
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


class Snapshot(NamedTuple):
    """A schedule, when its activities start, and from when to when its residencies are there."""

    schedule: PartialOrderSchedule
    start: Ints
    begins: Ints
    ends: Ints


def snapshot(timed: TimedSchedule) -> Snapshot:
    """Return a schedule with all its times."""
    return Snapshot(timed.schedule, timed.start, *timed.lifetimes())


class Reassignment(NamedTuple):
    """Tasks, and the pool of cores that they are to run on."""

    tasks: tuple[TaskIdx, ...]
    pool: int


class Reassigned(NamedTuple):
    """A schedule with another assignment.

    Attributes
    ----------
    unplaced
        The activities that need new times, as rows ``(cycle, 0 or 1, activity)`` in the order in
        which to place them: the cycle is its old start, or for a new transfer (0) the start of its
        first reader.
    memories
        Memories that may hold more bytes than before: the tasks' old ones, and the new one.
    """

    schedule: PartialOrderSchedule
    unplaced: tuple[tuple[Cycles, int, int], ...]
    memories: tuple[MemoryIdx, ...]


class Reassigner:
    """Moves tasks of a plan's schedules to other pools of cores.

    Attributes
    ----------
    pools
        The kind and the memory of each pool of cores.
    options
        Transfers between any two memories.
    first_free_slot
        The first of the transfers that were free slots at the beginning; some may be used.
    """

    def __init__(self, context: ScheduleContext) -> None:
        problem, machine = context.problem, context.problem.machine
        self.context = context
        self.problem: Problem = problem
        self.options = TransferOptions(problem, context.options)
        self.first_free_slot = context.activities
        self.drams = frozenset(dram.index for dram in machine.drams)
        firsts = [machine.cores[cores[0]] for cores in pools_of(machine)]
        self.pools: tuple[tuple[KindIdx, MemoryIdx], ...] = tuple(
            (core.kind, core.memory) for core in firsts
        )

    def reassigned(self, before: Snapshot, reassignment: Reassignment) -> Reassigned | None:
        """Return a schedule in which some tasks run on another pool of cores.

        ``None`` where that is not possible or not supported: where no core of the pool can run a
        task, or an engine cannot bring what is needed; where one of the tasks reads another
        scratchpad directly, or is read so; where a result has to stay in its memory until all
        ends; where cores work in a DRAM, where places in tensors and their order would change; and
        where no free slot is left.
        """
        try:
            return _Move(self, before, reassignment).result()
        except _RefusedError:
            return None


class _RefusedError(Exception):
    """The tasks have to stay."""


class _Move:
    """One reassignment in progress; ``_came``: residencies that have moved to the new memory."""

    def __init__(
        self, reassigner: Reassigner, before: Snapshot, reassignment: Reassignment
    ) -> None:
        self._pools = reassigner.pools
        self._drams = reassigner.drams
        self._problem = reassigner.problem
        self._options = reassigner.options
        self._before = before
        self._tasks = sorted(reassignment.tasks, key=lambda task: (int(before.start[task]), task))
        self._moves = frozenset(self._tasks)
        self._pool = reassignment.pool
        self._kind, self._memory = self._pools[self._pool]
        self._edit = ScheduleEdit(before.schedule, reassigner.first_free_slot)
        self._memories = {self._memory}
        self._came: list[ResidencyIdx] = []
        self._unplaced: list[tuple[Cycles, int, int]] = []

    def result(self) -> Reassigned:
        """Return the schedule after it."""
        for task in self._tasks:
            self._assign(task)
        shared = self._bring_private_operands()
        for transfer in self._transfers_of_what_came():
            self._reroute(transfer)
        for residency in shared:
            self._provide(residency)
        for residency in self._came:
            self._send_back(residency)
        return Reassigned(
            self._edit.result(), tuple(sorted(set(self._unplaced))), tuple(sorted(self._memories))
        )

    def _assign(self, task: TaskIdx) -> None:
        """Let a task run on the new pool, and what it writes lie in its memory."""
        cycles = self._problem.tasks[task].cycles[self._kind]
        old_memory = self._memory_of(task)
        if cycles is None or self._pool_of(task) == self._pool:
            raise _RefusedError
        if old_memory != self._memory and self._drams & {old_memory, self._memory}:
            raise _RefusedError
        if any(self._edit.memory[read] != old_memory for read in self._edit.reads[task]):
            raise _RefusedError
        self._memories.add(old_memory)
        self._edit.run(task, self._pool, cycles)
        self._unplaced.append((int(self._before.start[task]), 1, task))
        for residency in self._edit.fills[task]:
            is_read_remotely = any(
                self._memory_of(reader) != old_memory for reader in self._reading_tasks(residency)
            )
            if self._before.schedule.lasting[residency] or is_read_remotely:
                raise _RefusedError
            if old_memory != self._memory:
                self._bring(residency)

    def _bring_private_operands(self) -> list[ResidencyIdx]:
        """Let what is brought for the tasks alone come along; return the other operands."""
        schedule, shared = self._before.schedule, []
        operands = {residency: None for task in self._tasks for residency in self._edit.reads[task]}
        for residency in operands:
            if self._edit.memory[residency] == self._memory:
                continue
            filler = int(schedule.filler[residency])
            is_brought = self._is_transfer(filler)
            is_private = self._moves.issuperset(self._reading_tasks(residency))
            if is_brought and is_private and not schedule.lasting[residency]:
                self._bring(residency)
            else:
                shared.append(residency)
        return shared

    def _bring(self, residency: ResidencyIdx) -> None:
        self._edit.memory[residency] = self._memory
        self._came.append(residency)

    def _transfers_of_what_came(self) -> list[int]:
        """Return the transfers that fill or read what has come, each once."""
        fillers = [int(self._before.schedule.filler[residency]) for residency in self._came]
        readers = [reader for residency in self._came for reader in self._edit.readers[residency]]
        return [*dict.fromkeys(one for one in (*fillers, *readers) if self._is_transfer(one))]

    def _reroute(self, transfer: int) -> None:
        """Let a transfer go between the memories where its ends are now, or fall away."""
        edit = self._edit
        if not edit.cycles[transfer]:
            return
        (source,) = edit.reads[transfer]
        there = {edit.memory[source]: source}
        # What has moved to where another target is, or the source, is read from that one.
        for target in sorted(edit.fills[transfer], key=lambda one: one in self._came):
            instead = there.setdefault(edit.memory[target], target)
            if instead != target:
                self._do_without(transfer, target, instead)
        if not edit.cycles[transfer]:
            return
        what = int(self._before.schedule.moved_slice[transfer])
        targets = [edit.memory[target] for target in edit.fills[transfer]]
        is_part = what != edit.slice[source]
        option = self._options.shortest(what, edit.memory[source], targets, is_part=is_part)
        if option is None:
            raise _RefusedError
        edit.send(transfer, option)
        self._unplaced.append((int(self._before.start[transfer]), 1, transfer))

    def _do_without(self, transfer: int, target: ResidencyIdx, instead: ResidencyIdx) -> None:
        """Let what is in the same memory be read instead of a target; without any, drop it."""
        edit = self._edit
        if self._before.schedule.lasting[target]:
            raise _RefusedError
        if len(edit.fills[transfer]) == 1:
            edit.drop(transfer)
        elif not edit.remove_target(transfer, target):
            raise _RefusedError
        for residency in (instead, target):
            edit.forbid_in_place(residency)
        readers = dict.fromkeys(edit.readers[target])
        for reader in readers:
            edit.read_instead(reader, target, instead)
        if edit.slice[instead] != edit.slice[target]:
            # A copy out of a larger box asks more of an engine.
            for reader in readers:
                if self._is_transfer(reader):
                    self._reroute(reader)

    def _provide(self, operand: ResidencyIdx) -> None:
        """Let the tasks read, in the new memory, an operand that also stays where it is."""
        readers = [one for one in self._edit.readers[operand] if one in self._moves]
        if not readers:
            return
        what = self._slice_needed(operand, readers)
        present = self._present(what, self._first_start(readers))
        if present == NONE:
            self._copy(operand, what, self._memory, readers)
            return
        successor = self._edit.overwritten_by[operand]
        if successor != NONE and int(self._before.schedule.filler[successor]) in self._moves:
            self._edit.forbid_in_place(operand)
        for reader in dict.fromkeys(readers):
            self._edit.read_instead(reader, operand, present)

    def _send_back(self, result: ResidencyIdx) -> None:
        """Copy a result to where tasks that have not moved read it."""
        readers = [one for one in self._reading_tasks(result) if one not in self._moves]
        for memory in sorted({self._memory_of(one) for one in readers} - {self._memory}):
            there = [one for one in readers if self._memory_of(one) == memory]
            self._copy(result, self._slice_needed(result, there), memory, there)

    def _slice_needed(self, residency: ResidencyIdx, readers: list[TaskIdx]) -> SliceIdx:
        """Return the slice of a residency that some tasks read; all of it if they differ."""
        wanted = {
            part
            for one in readers
            for part, read in zip(
                self._problem.tasks[one].reads, self._edit.reads[one], strict=True
            )
            if read == residency
        }
        return wanted.pop() if len(wanted) == 1 else self._edit.slice[residency]

    def _present(self, what: SliceIdx, first: Cycles) -> ResidencyIdx:
        """Return a residency of a slice in the new memory that lasts until a cycle, or -1."""
        schedule, start, begins, ends = self._before
        buffer = self._problem.slices[what].buffer
        is_there = (schedule.memory == self._memory) & (begins < first) & (ends >= first)
        is_there &= (schedule.slice == what) | (schedule.slice == buffer)
        is_there &= schedule.overwritten_by == NONE
        for residency in is_there.nonzero()[0].tolist():
            filler = self._edit.filler[residency]
            filled = 0 if filler == NONE else int(start[filler] + schedule.cycles[filler])
            is_left = filler == NONE or self._edit.cycles[filler] > 0
            if filled <= first and is_left and self._edit.memory[residency] == self._memory:
                return int(residency)
        return NONE

    def _copy(
        self, residency: ResidencyIdx, what: SliceIdx, memory: MemoryIdx, readers: list[TaskIdx]
    ) -> None:
        """Let some tasks read a copy of a slice of a residency; it is made just before them."""
        edit = self._edit
        is_part = what != edit.slice[residency]
        option = self._options.shortest(what, edit.memory[residency], (memory,), is_part=is_part)
        if option is None:
            raise _RefusedError
        copied = edit.copy(self._problem.slices[what], residency, memory, option)
        if copied is None:
            raise _RefusedError
        transfer, copy = copied
        self._unplaced.append((self._first_start(readers), 0, transfer))
        successor = edit.overwritten_by[residency]
        if successor != NONE and int(self._before.schedule.filler[successor]) in readers:
            if is_part or len(readers) > 1:
                edit.forbid_in_place(residency)
            else:
                edit.overwrite_instead(residency, copy)
        for reader in dict.fromkeys(readers):
            edit.read_instead(reader, residency, copy)

    def _first_start(self, readers: list[TaskIdx]) -> Cycles:
        return min(int(self._before.start[one]) for one in readers)

    def _is_transfer(self, activity: int) -> bool:
        return activity >= len(self._problem.tasks)

    def _reading_tasks(self, residency: ResidencyIdx) -> list[TaskIdx]:
        return [one for one in self._edit.readers[residency] if not self._is_transfer(one)]

    def _pool_of(self, task: TaskIdx) -> int:
        demands = self._before.schedule.demands
        return int(demands.items[demands.begin[task]])

    def _memory_of(self, task: TaskIdx) -> MemoryIdx:
        """Return the memory of the pool that a task ran on before."""
        return self._pools[self._pool_of(task)][1]
