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
from spmilp.solvers.lns.copies import Copies
from spmilp.solvers.lns.cores.sketch import Sketch
from spmilp.solvers.lns.cores.ways import Ways
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.reading import pools_of
from spmilp.units import Cycles, KindIdx, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


class Times(NamedTuple):
    """When activities start, and from when to when residencies are there."""

    start: Ints
    begins: Ints
    ends: Ints


class Moved(NamedTuple):
    """A draft with another assignment.

    Attributes
    ----------
    anew
        What has to find new times: the cycle before which all was done that it follows, 0 for new
        transfers and 1 for others, and the activity.
    memories
        Where there may be more bytes than before: the old memories of the tasks, and the new one.
    """

    draft: Draft
    anew: tuple[tuple[Cycles, int, int], ...]
    memories: tuple[MemoryIdx, ...]


class Mover:
    """Moves components of a problem's drafts to other pools of cores."""

    def __init__(self, problem: Problem, copies: Copies, first_spare: int) -> None:
        machine = problem.machine
        self.problem = problem
        self.ways = Ways(problem, copies)
        self.first_spare = first_spare
        self.drams = frozenset(dram.index for dram in machine.drams)
        firsts = [machine.cores[cores[0]] for cores in pools_of(machine)]
        self.pools: tuple[tuple[KindIdx, MemoryIdx], ...] = tuple(
            (core.kind, core.memory) for core in firsts
        )

    def moved(
        self, draft: Draft, times: Times, tasks: Iterable[TaskIdx], pool: int
    ) -> Moved | None:
        """Return a draft in which some tasks run on another pool of cores.

        ``None`` where that is not possible or not supported: where no core of the pool can run a
        task, or an engine cannot bring what is needed; where a task of the component reads another
        scratchpad directly, or is read so; where a result has to stay in its memory until all
        ends; where a result is sent to several memories at once; where cores work in a DRAM, where
        places in tensors and their order would change; and where no spare is left. (An operand that
        comes to several memories at once stays, and is copied.)
        """
        try:
            return _Moving(self, draft, times, tasks, pool).moved()
        except _RefusedError:
            return None


class _RefusedError(Exception):
    """The component has to stay."""


class _Moving:
    """One move. ``_came`` are the residencies that have come to the new memory."""

    def __init__(
        self, mover: Mover, draft: Draft, times: Times, tasks: Iterable[TaskIdx], pool: int
    ) -> None:
        self._mover = mover
        self._draft = draft
        self._times = times
        self._component = sorted(tasks, key=lambda task: (int(times.start[task]), task))
        self._is_inside = frozenset(self._component)
        self._count = len(mover.problem.tasks)
        self._pool = pool
        self._kind, self._memory = mover.pools[pool]
        self._sketch = Sketch(draft, mover.first_spare)
        self._memories = {self._memory}
        self._came: list[ResidencyIdx] = []
        self._anew: list[tuple[Cycles, int, int]] = []

    def moved(self) -> Moved:
        """Return the draft after it."""
        for task in self._component:
            self._run(task)
        staying = self._operands_come_along()
        fillers = [int(self._draft.filler[held]) for held in self._came]
        senders = [user for held in self._came for user in self._sketch.users(held)]
        moves = {one: None for one in [*fillers, *senders] if one >= self._count}
        for move in moves:
            self._goes_another_way(move)
        for held in staying:
            self._comes_as_well(held)
        for held in self._came:
            self._is_brought_back(held)
        return Moved(
            self._sketch.draft(), tuple(sorted(set(self._anew))), tuple(sorted(self._memories))
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
        if any(self._sketch.memory(held) != old_memory for held in self._sketch.reads(task)):
            raise _RefusedError
        self._memories.add(old_memory)
        self._sketch.run(task, self._pool, cycles)
        self._anew.append((int(self._times.start[task]), 1, task))
        for held in self._sketch.fills(task):
            if self._draft.lasting[held] or self._is_read_from_afar(held, old_memory):
                raise _RefusedError
            if old_memory != self._memory:
                self._come(held)

    def _pool_of(self, task: TaskIdx) -> int:
        return int(self._draft.demands.items[self._draft.demands.begin[task]])

    def _is_read_from_afar(self, held: ResidencyIdx, memory: MemoryIdx) -> bool:
        readers = [user for user in self._sketch.users(held) if user < self._count]
        return any(self._mover.pools[self._pool_of(one)][1] != memory for one in readers)

    def _come(self, held: ResidencyIdx) -> None:
        self._sketch.put(held, self._memory)
        self._came.append(held)

    def _operands_come_along(self) -> list[ResidencyIdx]:
        """Move what is brought for the component alone; return the other operands."""
        draft, staying = self._draft, []
        operands = {held: None for task in self._component for held in self._sketch.reads(task)}
        for held in operands:
            if self._sketch.memory(held) == self._memory:
                continue
            filler = int(draft.filler[held])
            readers = [user for user in self._sketch.users(held) if user < self._count]
            is_alone = filler >= self._count and len(self._sketch.fills(filler)) == 1
            if is_alone and self._is_inside.issuperset(readers) and not draft.lasting[held]:
                self._come(held)
            else:
                staying.append(held)
        return staying

    def _goes_another_way(self, move: int) -> None:
        """Let a transfer go between the memories where its ends are now, or fall away."""
        sketch = self._sketch
        if not sketch.cycles(move):
            return
        (source,), fills = sketch.reads(move), sketch.fills(move)
        if len(fills) > 1:
            raise _RefusedError
        (held,) = fills
        if sketch.memory(source) == sketch.memory(held):
            if self._draft.lasting[held]:
                raise _RefusedError
            sketch.drop(move)
            for one in (source, held):
                sketch.keep_apart(one)
            users = dict.fromkeys(sketch.users(held))
            for user in users:
                sketch.read_instead(user, held, source)
            if sketch.slice(source) != sketch.slice(held):
                # A copy out of a larger box asks more of an engine.
                for user in users:
                    if user >= self._count:
                        self._goes_another_way(user)
            return
        what = int(self._draft.part[move])
        way = self._mover.ways.shortest(
            what,
            sketch.memory(source),
            sketch.memory(held),
            is_part=what != sketch.slice(source),
        )
        if way is None:
            raise _RefusedError
        sketch.go(move, way)
        self._anew.append((int(self._times.start[move]), 1, move))

    def _comes_as_well(self, held: ResidencyIdx) -> None:
        """Let the component read an operand in the new memory that also stays where it is."""
        readers = [user for user in self._sketch.users(held) if user in self._is_inside]
        if not readers:
            return
        what = self._needed(held, readers)
        there = self._still_there(what, self._first_start(readers))
        if there == NONE:
            self._copied(held, what, self._memory, readers)
            return
        heir = self._sketch.heir(held)
        if heir != NONE and int(self._draft.filler[heir]) in self._is_inside:
            self._sketch.keep_apart(held)
        for reader in dict.fromkeys(readers):
            self._sketch.read_instead(reader, held, there)

    def _is_brought_back(self, held: ResidencyIdx) -> None:
        """Copy a result to where others read it."""
        readers = [
            user
            for user in self._sketch.users(held)
            if user < self._count and user not in self._is_inside
        ]
        memories = {self._mover.pools[self._pool_of(one)][1] for one in readers}
        for memory in sorted(memories - {self._memory}):
            there = [one for one in readers if self._mover.pools[self._pool_of(one)][1] == memory]
            self._copied(held, self._needed(held, there), memory, there)

    def _first_start(self, readers: list[TaskIdx]) -> Cycles:
        return min(int(self._times.start[one]) for one in readers)

    def _needed(self, held: ResidencyIdx, readers: list[TaskIdx]) -> SliceIdx:
        """Return the slice of a residency that some tasks read; all of it if they differ."""
        tasks = self._mover.problem.tasks
        wanted = {
            part
            for one in readers
            for part, read in zip(tasks[one].reads, self._sketch.reads(one), strict=True)
            if read == held
        }
        return wanted.pop() if len(wanted) == 1 else self._sketch.slice(held)

    def _still_there(self, what: SliceIdx, first: Cycles) -> ResidencyIdx:
        """Return a residency of a slice in the new memory that lasts until a cycle, or -1."""
        draft, (_, begins, ends) = self._draft, self._times
        buffer = self._mover.problem.slices[what].buffer
        is_there = (draft.memory == self._memory) & (begins < first) & (ends >= first)
        is_there &= ((draft.slice == what) | (draft.slice == buffer)) & (draft.heir == NONE)
        for held in is_there.nonzero()[0].tolist():
            filler = int(draft.filler[held])
            valid = 0 if filler == NONE else int(self._times.start[filler] + draft.cycles[filler])
            is_left = filler == NONE or self._sketch.cycles(filler) > 0
            if valid <= first and is_left and self._sketch.memory(held) == self._memory:
                return int(held)
        return NONE

    def _copied(
        self, held: ResidencyIdx, what: SliceIdx, memory: MemoryIdx, readers: list[TaskIdx]
    ) -> None:
        """Let some readers read a copy of a slice of a residency; it is made just before them."""
        sketch = self._sketch
        is_part = what != sketch.slice(held)
        way = self._mover.ways.shortest(what, sketch.memory(held), memory, is_part=is_part)
        if way is None:
            raise _RefusedError
        size = self._mover.problem.slices[what].bytes
        copy = sketch.copied(what, size, held, memory, way)
        if copy is None:
            raise _RefusedError
        move, new = copy
        self._anew.append((self._first_start(readers), 0, move))
        heir = sketch.heir(held)
        if heir != NONE and int(self._draft.filler[heir]) in readers:
            if is_part or len(readers) > 1:
                sketch.keep_apart(held)
            else:
                sketch.bequeath(held, new)
        for reader in dict.fromkeys(readers):
            sketch.read_instead(reader, held, new)
