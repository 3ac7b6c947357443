"""A task moves to another core, with the residencies that only it uses.

1. The task runs on the new pool of cores, and what it writes lies in its memory.
2. *Private* operands, which a transfer brings for this task alone, come along: it brings them to
   the new memory. Every transfer with an end that moved takes the shortest option between its new
   ends; where both have become one memory, it falls away.
3. *Shared* operands, which others need where they are, are read from a residency that is in the new
   memory at that time, or from a new copy there.
4. Results that are read in the old memory are copied back.

New copies take free slots of the schedule, see :mod:`spmilp.solvers.justify.context`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from spmilp.machine.routes import multicast_route, routes_of, transfer_rate
from spmilp.problem.problem import Problem, Slice
from spmilp.solvers.justify.context import ScheduleContext
from spmilp.solvers.justify.profiles import cycles_by
from spmilp.solvers.justify.schedule import Demands, PartialOrderSchedule, TimedSchedule, pools_of
from spmilp.solvers.justify.transfer_options import AT_PLACE, PART, WHOLE, EngineUse, OptionTables
from spmilp.solvers.schedule.kernels.records import NONE, Rows, ranges_of
from spmilp.units import Cycles, KindIdx, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


class TransferOption(NamedTuple):
    """A transfer's cycles, and its engine and links with what it holds of each, as in schedules."""

    cycles: Cycles
    latency: Cycles
    resources: tuple[int, ...]
    amounts: tuple[int, ...]
    late: tuple[Cycles, ...]
    early: tuple[Cycles, ...]


class TransferOptions:
    """The shortest transfers from any memory to others, DRAMs too; found when first asked for."""

    def __init__(self, problem: Problem, tables: OptionTables) -> None:
        self._machine = problem.machine
        self._drams = {dram.index for dram in problem.machine.drams}
        self._tables = tables
        self._routes = routes_of(problem.machine)
        self.shortest = cache(self._shortest)

    def _shortest(
        self, what: SliceIdx, source: MemoryIdx, targets: tuple[MemoryIdx, ...], is_part: bool
    ) -> TransferOption | None:
        """Return the option of the fewest cycles for a slice; ``None`` if no engine can send it.

        Of a multicast there are several ``targets``, none of them a DRAM. It ``is_part`` if it is
        copied out of the whole buffer.
        """
        options = self._options(what, source, targets, is_part)
        return min(options, key=lambda one: one.cycles, default=None)

    def _options(
        self, what: SliceIdx, source: MemoryIdx, targets: tuple[MemoryIdx, ...], is_part: bool
    ) -> Iterator[TransferOption]:
        route = multicast_route(self._routes, source, targets)
        is_multicast = len(targets) > 1
        if route is None or source in targets or (is_multicast and self._drams & {*targets}):
            return
        machine, tables = self._machine, self._tables
        form = PART if is_part else WHOLE
        if self._drams & {source, targets[0]}:
            form = AT_PLACE
        first_link = tables.first_engine + len(machine.engines)
        links = [first_link + link for link in route.links]
        for index in self._routes.engines_for(source, targets[0]):
            engine = machine.engines[index]
            if is_multicast and not engine.multicast:
                continue
            if not all(engine.serves(source, target) for target in targets):
                continue
            rate = int(transfer_rate(engine, route) * tables.scale)
            taken = EngineUse(index, engine.setup, route.latency, rate)
            cycles = cycles_by(taken, tables, what, form)
            if cycles > 0:
                yield TransferOption(
                    cycles,
                    route.latency,
                    resources=(tables.first_engine + index, *links),
                    amounts=(1, *(rate for _ in links)),
                    late=(0, *(engine.setup for _ in links)),
                    early=(route.latency * engine.pipelined, *(route.latency for _ in links)),
                )


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
        owners, rows = [*self._changes], self._before
        added = [*chain.from_iterable(self._changes.values())]
        first, length = rows.begin[:-1].copy(), np.diff(rows.begin)
        length[owners] = [len(values) for values in self._changes.values()]
        first[owners] = rows.items.size + np.cumsum(length[owners]) - length[owners]
        return ranges_of(np.append(rows.items, np.array(added, np.int64)), first, length)


class ScheduleEdit:
    """The columns of a schedule that a reassignment reads or changes, with its changes.

    Transfers from the ``first_free_slot`` on are free slots; those that are in use are passed over.
    """

    def __init__(self, schedule: PartialOrderSchedule, first_free_slot: int) -> None:
        self._schedule = schedule
        is_free = schedule.cycles[first_free_slot:] == 0
        self._free_slots = iter((first_free_slot + np.flatnonzero(is_free)).tolist())
        begin, *columns = schedule.demands
        self._demands = [Lists(Rows(begin, column)) for column in columns]
        self._latency = schedule.latency.copy()
        self._moved_slice = schedule.moved_slice.copy()
        self._bytes = schedule.bytes.copy()
        self._overwrites = schedule.overwrites.copy()
        self.cycles = schedule.cycles.copy()
        self.reads = Lists(schedule.reads)
        self.fills = Lists(schedule.fills)
        self.readers = Lists(schedule.readers)
        self.memory = schedule.memory.copy()
        self.slice = schedule.slice.copy()
        self.overwritten_by = schedule.overwritten_by.copy()

    def run(self, task: int, pool: int, cycles: Cycles) -> None:
        """Let a task run on a pool of cores."""
        self._demand(task, (pool,), (1,), (0,), (0,))
        self.cycles[task] = cycles

    def send(self, transfer: int, option: TransferOption) -> None:
        """Let a transfer take an option."""
        self._demand(transfer, option.resources, option.amounts, option.late, option.early)
        self.cycles[transfer], self._latency[transfer] = option.cycles, option.latency

    def _demand(self, act: int, *columns: tuple[int, ...]) -> None:
        for lists, values in zip(self._demands, columns, strict=True):
            lists[act] = values

    def drop(self, transfer: int) -> None:
        """Do without a transfer."""
        (source,) = self.reads[transfer]
        self.readers[source] = [one for one in self.readers[source] if one != transfer]
        self.reads[transfer] = []
        self.cycles[transfer] = 0

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

    def forbid_in_place(self, residency: ResidencyIdx) -> None:
        """Let nothing overwrite a residency in place any more."""
        successor = self.overwritten_by[residency]
        if successor != NONE:
            self.overwritten_by[residency] = self._overwrites[successor] = NONE

    def result(self) -> PartialOrderSchedule:
        """Return the schedule as it is now."""
        columns = [lists.result() for lists in self._demands]
        return self._schedule._replace(
            cycles=self.cycles,
            latency=self._latency,
            moved_slice=self._moved_slice,
            demands=Demands(columns[0].begin, *(column.items for column in columns)),
            reads=self.reads.result(),
            fills=self.fills.result(),
            readers=self.readers.result(),
            memory=self.memory,
            slice=self.slice,
            bytes=self._bytes,
            overwrites=self._overwrites,
            overwritten_by=self.overwritten_by,
        )


class Reassigned(NamedTuple):
    """A schedule with another assignment.

    The activities that need new times are ``unplaced``, as rows ``(cycle, 0 or 1, activity)`` in
    the order in which to place them: the cycle is its old start, or for a new transfer (0) the
    start of its first reader. ``memories`` may hold more bytes than before: the task's old one, and
    the new one.
    """

    schedule: PartialOrderSchedule
    unplaced: tuple[tuple[Cycles, int, int], ...]
    memories: tuple[MemoryIdx, ...]


class Reassigner:
    """Moves tasks of a plan's schedules to other pools of cores.

    ``pools`` are the kind and the memory of each pool of cores, ``options`` transfers between any
    two memories.
    """

    def __init__(self, context: ScheduleContext) -> None:
        problem, machine = context.problem, context.problem.machine
        self.context = context
        self.problem: Problem = problem
        self.options = TransferOptions(problem, context.options)
        self.drams = frozenset(dram.index for dram in machine.drams)
        firsts = [machine.cores[cores[0]] for cores in pools_of(machine)]
        self.pools: tuple[tuple[KindIdx, MemoryIdx], ...] = tuple(
            (core.kind, core.memory) for core in firsts
        )

    def reassigned(self, before: TimedSchedule, task: TaskIdx, pool: int) -> Reassigned | None:
        """Return a schedule in which a task runs on another pool of cores.

        ``None`` where that is not possible or not supported: where no core of the pool can run the
        task, or an engine cannot bring what is needed; where the task reads another scratchpad
        directly, or is read so; where a result has to stay in its memory until all ends; where two
        ends of a multicast would be in one memory; where cores work in a DRAM, where places in
        tensors and their order would change; and where no free slot is left.
        """
        try:
            return _Move(self, before, task, pool).result()
        except _RefusedError:
            return None


class _RefusedError(Exception):
    """The task has to stay."""


class _Move:
    """One reassignment in progress; ``_came``: residencies that have moved to the new memory."""

    def __init__(
        self, reassigner: Reassigner, before: TimedSchedule, task: TaskIdx, pool: int
    ) -> None:
        self._pools = reassigner.pools
        self._drams = reassigner.drams
        self._problem = reassigner.problem
        self._options = reassigner.options
        self._before = before
        self._task = task
        self._start = int(before.start[task])
        self._pool = pool
        self._kind, self._memory = self._pools[pool]
        self._old_memory = self._memory_of(task)
        self._edit = ScheduleEdit(before.schedule, reassigner.context.activities)
        self._came: list[ResidencyIdx] = []
        self._unplaced = {(self._start, 1, task)}

    def result(self) -> Reassigned:
        """Return the schedule after it."""
        self._assign()
        shared = self._bring_private_operands()
        # The transfers that fill or read what has come, each once.
        fillers = [int(self._before.schedule.filler[residency]) for residency in self._came]
        readers = [reader for residency in self._came for reader in self._edit.readers[residency]]
        for activity in dict.fromkeys((*fillers, *readers)):
            if self._is_transfer(activity):
                self._reroute(activity)
        for residency in shared:
            self._provide(residency)
        for residency in self._came:
            self._send_back(residency)
        memories = sorted({self._old_memory, self._memory})
        return Reassigned(self._edit.result(), tuple(sorted(self._unplaced)), tuple(memories))

    def _assign(self) -> None:
        """Let the task run on the new pool, and what it writes lie in its memory."""
        task, old_memory, edit = self._task, self._old_memory, self._edit
        cycles = self._problem.tasks[task].cycles[self._kind]
        changes_memory = old_memory != self._memory
        if cycles is None or self._pool_of(task) == self._pool:
            raise _RefusedError
        if changes_memory and self._drams & {old_memory, self._memory}:
            raise _RefusedError
        if any(edit.memory[read] != old_memory for read in edit.reads[task]):
            raise _RefusedError
        edit.run(task, self._pool, cycles)
        for residency in edit.fills[task]:
            is_read_remotely = any(
                self._memory_of(reader) != old_memory for reader in self._reading_tasks(residency)
            )
            if self._before.schedule.lasting[residency] or is_read_remotely:
                raise _RefusedError
            if changes_memory:
                self._bring(residency)

    def _bring_private_operands(self) -> list[ResidencyIdx]:
        """Let what is brought for the task alone come along; return the other operands."""
        schedule, shared = self._before.schedule, []
        for residency in dict.fromkeys(self._edit.reads[self._task]):
            if self._edit.memory[residency] == self._memory:
                continue
            is_brought = self._is_transfer(int(schedule.filler[residency]))
            is_private = {*self._reading_tasks(residency)} == {self._task}
            if is_brought and is_private and not schedule.lasting[residency]:
                self._bring(residency)
            else:
                shared.append(residency)
        return shared

    def _bring(self, residency: ResidencyIdx) -> None:
        self._edit.memory[residency] = self._memory
        self._came.append(residency)

    def _reroute(self, transfer: int) -> None:
        """Let a transfer go between the memories where its ends are now, or fall away."""
        edit = self._edit
        if not edit.cycles[transfer]:
            return
        (source,) = edit.reads[transfer]
        targets = edit.memory[edit.fills[transfer]].tolist()
        ends = {int(edit.memory[source]), *targets}
        if len(targets) == len(ends) == 1:
            self._do_without(transfer, source)
            return
        if len(ends) <= len(targets):
            raise _RefusedError
        what = int(self._before.schedule.moved_slice[transfer])
        edit.send(transfer, self._option(what, source, targets))
        self._unplaced.add((int(self._before.start[transfer]), 1, transfer))

    def _option(
        self, what: SliceIdx, source: ResidencyIdx, targets: Sequence[MemoryIdx]
    ) -> TransferOption:
        """Return how a slice is sent out of a residency."""
        is_part = bool(what != self._edit.slice[source])
        memory = int(self._edit.memory[source])
        option = self._options.shortest(what, memory, tuple(targets), is_part)
        if option is None:
            raise _RefusedError
        return option

    def _do_without(self, transfer: int, source: ResidencyIdx) -> None:
        """Drop a transfer: what it moves is read where it comes from, in the same memory."""
        edit = self._edit
        (target,) = edit.fills[transfer]
        if self._before.schedule.lasting[target]:
            raise _RefusedError
        edit.drop(transfer)
        for residency in (source, target):
            edit.forbid_in_place(residency)
        readers = dict.fromkeys(edit.readers[target])
        for reader in readers:
            edit.read_instead(reader, target, source)
        if edit.slice[source] != edit.slice[target]:
            # A copy out of a larger box asks more of an engine.
            for reader in readers:
                if self._is_transfer(reader):
                    self._reroute(reader)

    def _provide(self, operand: ResidencyIdx) -> None:
        """Let the task read, in the new memory, an operand that also stays where it is."""
        if self._task not in self._edit.readers[operand]:
            return
        what = self._slice_needed(operand, [self._task])
        present = self._present(what)
        if present == NONE:
            self._copy(operand, what, self._memory, [self._task])
            return
        successor = self._edit.overwritten_by[operand]
        if successor != NONE and self._before.schedule.filler[successor] == self._task:
            self._edit.forbid_in_place(operand)
        self._edit.read_instead(self._task, operand, present)

    def _send_back(self, result: ResidencyIdx) -> None:
        """Copy a result to where other tasks read it."""
        readers = [one for one in self._reading_tasks(result) if one != self._task]
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
        return wanted.pop() if len(wanted) == 1 else int(self._edit.slice[residency])

    def _present(self, what: SliceIdx) -> ResidencyIdx:
        """Return a residency of a slice in the new memory that lasts until the task, or -1."""
        schedule, edit, first = self._before.schedule, self._edit, self._start
        begins, ends = self._before.lifetimes()
        buffer = self._problem.slices[what].buffer
        filled = np.where(
            schedule.filler == NONE, 0, (self._before.start + schedule.cycles)[schedule.filler]
        )
        is_left = (schedule.filler == NONE) | (edit.cycles[schedule.filler] > 0)
        is_there = (begins < first) & (filled <= first) & (ends >= first) & is_left
        is_there &= (schedule.memory == self._memory) & (edit.memory == self._memory)
        is_there &= (schedule.slice == what) | (schedule.slice == buffer)
        is_there &= schedule.overwritten_by == NONE
        return next(iter(np.flatnonzero(is_there).tolist()), NONE)

    def _copy(
        self, residency: ResidencyIdx, what: SliceIdx, memory: MemoryIdx, readers: list[TaskIdx]
    ) -> None:
        """Let some tasks read a copy of a slice of a residency; it is made just before them."""
        edit = self._edit
        option = self._option(what, residency, (memory,))
        copied = edit.copy(self._problem.slices[what], residency, memory, option)
        if copied is None:
            raise _RefusedError
        transfer, copy = copied
        self._unplaced.add((min(int(self._before.start[one]) for one in readers), 0, transfer))
        successor = edit.overwritten_by[residency]
        if successor != NONE and self._before.schedule.filler[successor] in readers:
            if what != edit.slice[residency] or len(readers) > 1:
                edit.forbid_in_place(residency)
            else:
                edit.overwrite_instead(residency, copy)
        for reader in dict.fromkeys(readers):
            edit.read_instead(reader, residency, copy)

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
