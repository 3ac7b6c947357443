"""A component changes cores: tasks, with the residencies that only they use.

What the tasks write goes with them, and what they read too, if a transfer brings it for them alone:
it brings it to the new memory, by another way. A transfer whose two ends become one memory falls
away. An operand that others need where it is, is read from a residency that is still in the new
memory at that time, or else copied; and so is a result that is read where it would have been.
"""

from collections.abc import Iterable
from typing import NamedTuple

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.lns.reassignment.edit import ScheduleEdit
from spmilp.solvers.partial_order.from_plan import pools_of
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.solvers.partial_order.transfer_options import OptionTables, TransferOptions
from spmilp.units import Cycles, KindIdx, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


class Times(NamedTuple):
    """When activities start, and from when to when residencies are there."""

    start: Ints
    begins: Ints
    ends: Ints


class Reassigned(NamedTuple):
    """A schedule with another assignment.

    Attributes
    ----------
    anew
        What has to find new times: the cycle before which all was done that it follows, 0 for new
        transfers and 1 for others, and the activity.
    memories
        Where there may be more bytes than before: the old memories of the tasks, and the new one.
    """

    schedule: PartialOrderSchedule
    anew: tuple[tuple[Cycles, int, int], ...]
    memories: tuple[MemoryIdx, ...]


class Reassigner:
    """Moves components of a problem's schedules to other pools of cores."""

    def __init__(self, problem: Problem, options: OptionTables, first_free_slot: int) -> None:
        machine = problem.machine
        self.problem = problem
        self.ways = TransferOptions(problem, options)
        self.first_free_slot = first_free_slot
        self.drams = frozenset(dram.index for dram in machine.drams)
        firsts = [machine.cores[cores[0]] for cores in pools_of(machine)]
        self.pools: tuple[tuple[KindIdx, MemoryIdx], ...] = tuple(
            (core.kind, core.memory) for core in firsts
        )

    def moved(
        self, schedule: PartialOrderSchedule, times: Times, tasks: Iterable[TaskIdx], pool: int
    ) -> Reassigned | None:
        """Return a schedule in which some tasks run on another pool of cores.

        ``None`` where that is not possible or not supported: where no core of the pool can run a
        task, or an engine cannot bring what is needed; where a task of the component reads another
        scratchpad directly, or is read so; where a result has to stay in its memory until all
        ends; where a result is sent to several memories at once; where cores work in a DRAM, where
        places in tensors and their order would change; and where no spare is left. (An operand that
        comes to several memories at once stays, and is copied.)
        """
        try:
            return _Moving(self, schedule, times, tasks, pool).moved()
        except _RefusedError:
            return None


class _RefusedError(Exception):
    """The component has to stay."""


class _Moving:
    """One move. ``_came`` are the residencies that have come to the new memory."""

    def __init__(
        self,
        mover: Reassigner,
        schedule: PartialOrderSchedule,
        times: Times,
        tasks: Iterable[TaskIdx],
        pool: int,
    ) -> None:
        self._mover = mover
        self._schedule = schedule
        self._times = times
        self._component = sorted(tasks, key=lambda task: (int(times.start[task]), task))
        self._is_inside = frozenset(self._component)
        self._count = len(mover.problem.tasks)
        self._pool = pool
        self._kind, self._memory = mover.pools[pool]
        self._edit = ScheduleEdit(schedule, mover.first_free_slot)
        self._memories = {self._memory}
        self._came: list[ResidencyIdx] = []
        self._anew: list[tuple[Cycles, int, int]] = []

    def moved(self) -> Reassigned:
        """Return the schedule after it."""
        for task in self._component:
            self._run(task)
        staying = self._operands_come_along()
        fillers = [int(self._schedule.filler[residency]) for residency in self._came]
        senders = [user for residency in self._came for user in self._edit.readers(residency)]
        moves = {one: None for one in [*fillers, *senders] if one >= self._count}
        for move in moves:
            self._goes_another_way(move)
        for residency in staying:
            self._comes_as_well(residency)
        for residency in self._came:
            self._is_brought_back(residency)
        return Reassigned(
            self._edit.schedule(), tuple(sorted(set(self._anew))), tuple(sorted(self._memories))
        )

    def _run(self, task: TaskIdx) -> None:
        cycles = self._mover.problem.tasks[task].cycles[self._kind]
        old_memory = self._mover.pools[self._pool_of(task)][1]
        if cycles is None or self._pool_of(task) == self._pool:
            raise _RefusedError
        if old_memory != self._memory and self._mover.drams.intersection(
            (old_memory, self._memory)
        ):
            raise _RefusedError
        if any(self._edit.memory(residency) != old_memory for residency in self._edit.reads(task)):
            raise _RefusedError
        self._memories.add(old_memory)
        self._edit.run(task, self._pool, cycles)
        self._anew.append((int(self._times.start[task]), 1, task))
        for residency in self._edit.fills(task):
            if self._schedule.lasting[residency] or self._is_read_from_afar(residency, old_memory):
                raise _RefusedError
            if old_memory != self._memory:
                self._come(residency)

    def _pool_of(self, task: TaskIdx) -> int:
        return int(self._schedule.demands.items[self._schedule.demands.begin[task]])

    def _is_read_from_afar(self, residency: ResidencyIdx, memory: MemoryIdx) -> bool:
        readers = [user for user in self._edit.readers(residency) if user < self._count]
        return any(self._mover.pools[self._pool_of(one)][1] != memory for one in readers)

    def _come(self, residency: ResidencyIdx) -> None:
        self._edit.put(residency, self._memory)
        self._came.append(residency)

    def _operands_come_along(self) -> list[ResidencyIdx]:
        """Move what is brought for the component alone; return the other operands."""
        schedule, staying = self._schedule, []
        operands = {
            residency: None for task in self._component for residency in self._edit.reads(task)
        }
        for residency in operands:
            if self._edit.memory(residency) == self._memory:
                continue
            filler = int(schedule.filler[residency])
            readers = [user for user in self._edit.readers(residency) if user < self._count]
            is_alone = filler >= self._count and len(self._edit.fills(filler)) == 1
            if is_alone and self._is_inside.issuperset(readers) and not schedule.lasting[residency]:
                self._come(residency)
            else:
                staying.append(residency)
        return staying

    def _goes_another_way(self, move: int) -> None:
        """Let a transfer go between the memories where its ends are now, or fall away."""
        edit = self._edit
        if not edit.cycles(move):
            return
        (source,), fills = edit.reads(move), edit.fills(move)
        if len(fills) > 1:
            raise _RefusedError
        (residency,) = fills
        if edit.memory(source) == edit.memory(residency):
            if self._schedule.lasting[residency]:
                raise _RefusedError
            edit.drop(move)
            for one in (source, residency):
                edit.keep_apart(one)
            readers = dict.fromkeys(edit.readers(residency))
            for user in readers:
                edit.read_instead(user, residency, source)
            if edit.slice(source) != edit.slice(residency):
                # A copy out of a larger box asks more of an engine.
                for user in readers:
                    if user >= self._count:
                        self._goes_another_way(user)
            return
        what = int(self._schedule.moved_slice[move])
        way = self._mover.ways.shortest(
            what,
            edit.memory(source),
            edit.memory(residency),
            is_part=what != edit.slice(source),
        )
        if way is None:
            raise _RefusedError
        edit.go(move, way)
        self._anew.append((int(self._times.start[move]), 1, move))

    def _comes_as_well(self, residency: ResidencyIdx) -> None:
        """Let the component read an operand in the new memory that also stays where it is."""
        readers = [user for user in self._edit.readers(residency) if user in self._is_inside]
        if not readers:
            return
        what = self._needed(residency, readers)
        there = self._still_there(what, self._first_start(readers))
        if there == NONE:
            self._copied(residency, what, self._memory, readers)
            return
        overwritten_by = self._edit.overwritten_by(residency)
        if overwritten_by != NONE and int(self._schedule.filler[overwritten_by]) in self._is_inside:
            self._edit.keep_apart(residency)
        for reader in dict.fromkeys(readers):
            self._edit.read_instead(reader, residency, there)

    def _is_brought_back(self, residency: ResidencyIdx) -> None:
        """Copy a result to where others read it."""
        readers = [
            user
            for user in self._edit.readers(residency)
            if user < self._count and user not in self._is_inside
        ]
        memories = {self._mover.pools[self._pool_of(one)][1] for one in readers}
        for memory in sorted(memories - {self._memory}):
            there = [one for one in readers if self._mover.pools[self._pool_of(one)][1] == memory]
            self._copied(residency, self._needed(residency, there), memory, there)

    def _first_start(self, readers: list[TaskIdx]) -> Cycles:
        return min(int(self._times.start[one]) for one in readers)

    def _needed(self, residency: ResidencyIdx, readers: list[TaskIdx]) -> SliceIdx:
        """Return the slice of a residency that some tasks read; all of it if they differ."""
        tasks = self._mover.problem.tasks
        wanted = {
            part
            for one in readers
            for part, read in zip(tasks[one].reads, self._edit.reads(one), strict=True)
            if read == residency
        }
        return wanted.pop() if len(wanted) == 1 else self._edit.slice(residency)

    def _still_there(self, what: SliceIdx, first: Cycles) -> ResidencyIdx:
        """Return a residency of a slice in the new memory that lasts until a cycle, or -1."""
        schedule, (_, begins, ends) = self._schedule, self._times
        buffer = self._mover.problem.slices[what].buffer
        is_there = (schedule.memory == self._memory) & (begins < first) & (ends >= first)
        is_there &= ((schedule.slice == what) | (schedule.slice == buffer)) & (
            schedule.overwritten_by == NONE
        )
        for residency in is_there.nonzero()[0].tolist():
            filler = int(schedule.filler[residency])
            valid = (
                0 if filler == NONE else int(self._times.start[filler] + schedule.cycles[filler])
            )
            is_left = filler == NONE or self._edit.cycles(filler) > 0
            if valid <= first and is_left and self._edit.memory(residency) == self._memory:
                return int(residency)
        return NONE

    def _copied(
        self, residency: ResidencyIdx, what: SliceIdx, memory: MemoryIdx, readers: list[TaskIdx]
    ) -> None:
        """Let some readers read a copy of a slice of a residency; it is made just before them."""
        edit = self._edit
        is_part = what != edit.slice(residency)
        way = self._mover.ways.shortest(what, edit.memory(residency), memory, is_part=is_part)
        if way is None:
            raise _RefusedError
        size = self._mover.problem.slices[what].bytes
        copy = edit.copied(what, size, residency, memory, way)
        if copy is None:
            raise _RefusedError
        move, new = copy
        self._anew.append((self._first_start(readers), 0, move))
        overwritten_by = edit.overwritten_by(residency)
        if overwritten_by != NONE and int(self._schedule.filler[overwritten_by]) in readers:
            if is_part or len(readers) > 1:
                edit.keep_apart(residency)
            else:
                edit.bequeath(residency, new)
        for reader in dict.fromkeys(readers):
            edit.read_instead(reader, residency, new)
