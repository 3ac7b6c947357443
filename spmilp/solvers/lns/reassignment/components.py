"""Which tasks change cores together, and where to."""

from collections.abc import Iterator

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.lns.reassignment.move import Reassignment, Snapshot
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.units import Cycles, KindIdx, MemoryIdx, TaskIdx

ALONE = 0.6
"""Share of the components that are one task; the others read one of its operands together."""

LOCAL = 0.7
"""Share of the components that go where more of what they read or write is, or is needed."""

EXCHANGED = 0.1
"""Share of the components that change places with another task though others have capacity."""


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
        self._memories = [memory for _, memory in pools]

    def choices(
        self, late: Snapshot, early: Ints, limit: Ints, count: int
    ) -> Iterator[tuple[Reassignment, ...]]:
        """Yield up to so many choices, each of one reassignment or of two.

        Parameters
        ----------
        late, early
            The schedule in which all is as late as it can be, and the earliest start cycles.
        limit
            Bytes of each memory that may be in use.
        """
        critical = np.flatnonzero((late.schedule.cycles > 0) & (late.start == early))
        for _ in range(count if critical.size else 0):
            tasks = self._component_at(late.schedule, int(self._random.choice(critical)))
            if tasks:
                yield from self._reassignments(late, limit, tasks)

    def _reassignments(
        self, late: Snapshot, limit: Ints, tasks: tuple[TaskIdx, ...]
    ) -> Iterator[tuple[Reassignment, ...]]:
        """Yield one for a component, if there is any: alone, or in exchange for another task."""
        first = min(tasks, key=lambda task: (int(late.start[task]), task))
        demands = late.schedule.demands
        pool_of = demands.items[demands.begin[: self._count]]
        old = int(pool_of[first])
        others = [pool for pool in range(len(self._memories)) if pool != old]
        fitting = self._with_capacity(late, limit, first, others)
        if not others:
            return
        goes_alone = fitting and self._random.random() >= EXCHANGED
        pool = self._one_of(fitting if goes_alone else others, late, tasks)
        there = np.flatnonzero(pool_of == pool)
        if goes_alone:
            yield (Reassignment(tasks, pool),)
        elif there.size:
            other = there[np.argmin(np.abs(late.start[there] - late.start[first]))]
            yield Reassignment(tasks, pool), Reassignment((int(other),), old)

    def _component_at(self, schedule: PartialOrderSchedule, act: int) -> tuple[TaskIdx, ...]:
        """Return a component with a task, or at one end of a transfer."""
        first = act
        if act >= self._count:
            readers = self._readers(schedule, schedule.fills.values(act)[0])
            if readers and self._random.random() >= ALONE:
                return readers
            writer = int(schedule.filler[schedule.reads.values(act)[0]])
            ends = [*readers, writer] if 0 <= writer < self._count else readers
            if not ends:
                return ()
            first = int(self._random.choice(ends))
        operands = schedule.reads.values(first)
        if not operands or self._random.random() < ALONE:
            return (first,)
        return self._readers(schedule, int(self._random.choice(operands)))

    def _readers(self, schedule: PartialOrderSchedule, residency: int) -> tuple[TaskIdx, ...]:
        return tuple(
            sorted({one for one in schedule.readers.values(residency) if one < self._count})
        )

    def _with_capacity(
        self, late: Snapshot, limit: Ints, task: TaskIdx, pools: list[int]
    ) -> list[int]:
        """Return the pools in whose memory there is capacity for a task when it starts."""
        schedule = late.schedule
        need = int(schedule.bytes[schedule.reads.values(task)].sum())
        need += int(schedule.bytes[schedule.fills.values(task)].sum())
        here = self._memories[int(schedule.demands.items[schedule.demands.begin[task]])]
        free = self._bytes_free(late, limit, int(late.start[task]))
        free += self._operands_at(late, (task,))
        memories = self._memories
        return [pool for pool in pools if memories[pool] == here or need <= free[memories[pool]]]

    def _one_of(self, pools: list[int], late: Snapshot, tasks: tuple[TaskIdx, ...]) -> int:
        """Return a pool, as a rule near to what a component reads, or to readers of its results."""
        bytes_at = self._operands_at(late, tasks) + self._results_for(late.schedule, tasks)
        weight = bytes_at[[self._memories[pool] for pool in pools]]
        is_local = self._random.random() < LOCAL and weight.any()
        return int(self._random.choice(pools, p=weight / weight.sum() if is_local else None))

    def _bytes_free(self, late: Snapshot, limit: Ints, cycle: Cycles) -> Ints:
        """Return the bytes free in each memory just before a cycle."""
        is_there = (late.begins < cycle) & (late.ends >= cycle)
        schedule = late.schedule
        used = np.bincount(schedule.memory[is_there], schedule.bytes[is_there], limit.size)
        return limit - used.astype(np.int64)

    def _operands_at(self, late: Snapshot, tasks: tuple[TaskIdx, ...]) -> Ints:
        """Return how many bytes of what a component reads are in each memory at that time."""
        schedule, found = late.schedule, np.zeros(len(self._problem.machine.memories), np.int64)
        starts = late.start[[*tasks]]
        is_there = (late.begins < starts.max()) & (late.ends >= starts.min())
        for what in {what for task in tasks for what in self._problem.tasks[task].reads}:
            slice_ = self._problem.slices[what]
            holds = (schedule.slice == what) | (schedule.slice == slice_.buffer)
            found[np.unique(schedule.memory[is_there & holds])] += slice_.bytes
        return found

    def _results_for(self, schedule: PartialOrderSchedule, tasks: tuple[TaskIdx, ...]) -> Ints:
        """Return how many bytes of what a component writes are sent to each memory."""
        found = np.zeros(len(self._problem.machine.memories), np.int64)
        for written in (residency for task in tasks for residency in schedule.fills.values(task)):
            for reader in schedule.readers.values(written):
                if reader >= self._count:
                    for copy in schedule.fills.values(reader):
                        found[schedule.memory[copy]] += schedule.bytes[copy]
        return found
