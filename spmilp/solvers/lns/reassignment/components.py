"""Which tasks may change cores together, and where to."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import Ints, Rows
from spmilp.solvers.lns.reassignment.move import Times
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.units import Cycles, KindIdx, MemoryIdx, TaskIdx

ALONE = 0.6
"""Share of the components that are one task; the others read one of its operands together."""

NEAR = 0.7
"""Share of the components that go where more of what they read or write is, or is needed."""

EXCHANGED = 0.1
"""Share of the components that change places with another task though there is room elsewhere."""


class Choice(NamedTuple):
    """A component, and the pool of cores that it is to go to."""

    tasks: tuple[TaskIdx, ...]
    pool: int


class Components:
    """Chooses components at activities without slack, for no other move saves anything alone.

    Parameters
    ----------
    pools
        The kind and the memory of each pool of cores.
    """

    def __init__(
        self,
        problem: Problem,
        pools: tuple[tuple[KindIdx, MemoryIdx], ...],
        random: np.random.Generator,
    ) -> None:
        self._problem = problem
        self._random = random
        self._count = len(problem.tasks)
        self._pools = pools

    def choices(
        self, schedule: PartialOrderSchedule, late: Times, early: Ints, limit: Ints, count: int
    ) -> Iterator[tuple[Choice, ...]]:
        """Yield up to so many choices, each of one move or of two.

        Parameters
        ----------
        late, early
            Times in which all is as late as it can be, and start cycles as early as they can be.
        limit
            Bytes of each memory that may be in use.
        """
        tight = np.flatnonzero((schedule.cycles > 0) & (late.start == early))
        for _ in range(count if tight.size else 0):
            tasks = self._component_at(schedule, int(self._random.choice(tight)))
            if tasks:
                yield from self._moves_of(schedule, late, limit, tasks)

    def _moves_of(
        self, schedule: PartialOrderSchedule, late: Times, limit: Ints, tasks: tuple[TaskIdx, ...]
    ) -> Iterator[tuple[Choice, ...]]:
        """Yield a way for a component, if there is any: alone, or in exchange for another task."""
        first = min(tasks, key=lambda task: (int(late.start[task]), task))
        pool_of = schedule.demands.items[schedule.demands.begin[: self._count]]
        old = int(pool_of[first])
        others = [pool for pool in range(len(self._pools)) if pool != old]
        roomy = self._with_room(schedule, late, limit, first, others)
        if not others:
            return
        goes_alone = roomy and self._random.random() >= EXCHANGED
        pool = self._one_of(roomy if goes_alone else others, schedule, late, tasks)
        there = np.flatnonzero(pool_of == pool)
        if goes_alone:
            yield (Choice(tasks, pool),)
        elif there.size:
            other = there[np.argmin(np.abs(late.start[there] - late.start[first]))]
            yield Choice(tasks, pool), Choice((int(other),), old)

    def _component_at(self, schedule: PartialOrderSchedule, act: int) -> tuple[TaskIdx, ...]:
        """Return a component with a task, or at one end of a transfer."""
        first = act
        if act >= self._count:
            readers = self._readers(schedule, _row(schedule.fills, act)[0])
            if readers and self._random.random() >= ALONE:
                return readers
            maker = int(schedule.filler[_row(schedule.reads, act)[0]])
            ends = [*readers, maker] if 0 <= maker < self._count else readers
            if not ends:
                return ()
            first = int(self._random.choice(ends))
        operands = _row(schedule.reads, first)
        if not operands or self._random.random() < ALONE:
            return (first,)
        return self._readers(schedule, int(self._random.choice(operands)))

    def _readers(self, schedule: PartialOrderSchedule, residency: int) -> tuple[TaskIdx, ...]:
        return tuple(
            sorted({one for one in _row(schedule.readers, residency) if one < self._count})
        )

    def _with_room(
        self,
        schedule: PartialOrderSchedule,
        late: Times,
        limit: Ints,
        task: TaskIdx,
        pools: list[int],
    ) -> list[int]:
        """Return the pools in whose memory there is room for a task when it starts."""
        residency = [*_row(schedule.reads, task), *_row(schedule.fills, task)]
        here = self._pools[int(schedule.demands.items[schedule.demands.begin[task]])][1]
        spare = self._bytes_free(schedule, late, limit, int(late.start[task]))
        spare += self._operands_at(schedule, late, (task,))
        need = sum(int(schedule.bytes[one]) for one in residency)
        memories = [self._pools[pool][1] for pool in pools]
        return [
            pool
            for pool, memory in zip(pools, memories, strict=True)
            if memory == here or need <= spare[memory]
        ]

    def _one_of(
        self,
        pools: list[int],
        schedule: PartialOrderSchedule,
        late: Times,
        tasks: tuple[TaskIdx, ...],
    ) -> int:
        """Return a pool, as a rule near to what a component reads, or to who reads its results."""
        near = self._operands_at(schedule, late, tasks) + self._results_for(schedule, tasks)
        weight = near[[self._pools[pool][1] for pool in pools]]
        is_near = self._random.random() < NEAR and weight.any()
        share = weight / weight.sum() if is_near else None
        return int(self._random.choice(pools, p=share))

    def _bytes_free(
        self, schedule: PartialOrderSchedule, late: Times, limit: Ints, cycle: Cycles
    ) -> Ints:
        """Return the bytes free in each memory just before a cycle."""
        is_there = (late.begins < cycle) & (late.ends >= cycle)
        used = np.bincount(schedule.memory[is_there], schedule.bytes[is_there], limit.size)
        return limit - used.astype(np.int64)

    def _operands_at(
        self, schedule: PartialOrderSchedule, late: Times, tasks: tuple[TaskIdx, ...]
    ) -> Ints:
        """Return how many bytes of what a component reads are in each memory at that time."""
        found = np.zeros(len(self._problem.machine.memories), np.int64)
        starts = late.start[[*tasks]]
        is_there = (late.begins < starts.max()) & (late.ends >= starts.min())
        for part in {part for task in tasks for part in self._problem.tasks[task].reads}:
            slice_ = self._problem.slices[part]
            holds = (schedule.slice == part) | (schedule.slice == slice_.buffer)
            found[np.unique(schedule.memory[is_there & holds])] += slice_.bytes
        return found

    def _results_for(self, schedule: PartialOrderSchedule, tasks: tuple[TaskIdx, ...]) -> Ints:
        """Return how many bytes of what a component writes are sent to each memory."""
        written = [residency for task in tasks for residency in _row(schedule.fills, task)]
        moves = [user for residency in written for user in _row(schedule.readers, residency)]
        copies = [
            residency
            for one in moves
            if one >= self._count
            for residency in _row(schedule.fills, one)
        ]
        found = np.zeros(len(self._problem.machine.memories), np.int64)
        for residency in copies:
            found[schedule.memory[residency]] += schedule.bytes[residency]
        return found


def _row(rows: Rows, index: int) -> list[int]:
    found: list[int] = rows.items[rows.begin[index] : rows.begin[index + 1]].tolist()
    return found
