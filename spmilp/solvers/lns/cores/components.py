"""Which tasks may change cores together, and where to."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.records import NONE, Ints, numbers
from spmilp.solvers.lns.cores.moving import Times
from spmilp.solvers.lns.draft import Draft, Rows
from spmilp.units import Bytes, Cycles, KindIdx, MemoryIdx, TaskIdx

ALONE = 0.6
"""Share of the components that are one task; the others read one of its operands together."""

NEAR = 0.7
"""Share of the components that go where more of what they read or write is, or is needed."""


class Choice(NamedTuple):
    """A component, and the pool of cores that it may go to."""

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
        self._pools_at: defaultdict[MemoryIdx, list[int]] = defaultdict(list)
        for pool, (_, memory) in enumerate(pools):
            self._pools_at[memory].append(pool)

    def choices(
        self, draft: Draft, late: Times, early: Ints, limit: Ints, count: int
    ) -> Iterator[Choice]:
        """Yield up to so many choices.

        Parameters
        ----------
        late, early
            Times in which all is as late as it can be, and start cycles as early as they can be.
        limit
            Bytes of each memory that may be in use.
        """
        tight = np.flatnonzero((draft.cycles > 0) & (late.start == early))
        for _ in range(count if tight.size else 0):
            tasks = self._component_at(draft, int(self._random.choice(tight)))
            pool = self._pool_for(draft, late, limit, tasks) if tasks else NONE
            if pool != NONE and pool != draft.demands.items[draft.demands.begin[tasks[0]]]:
                yield Choice(tasks, pool)

    def _component_at(self, draft: Draft, act: int) -> tuple[TaskIdx, ...]:
        """Return a component with a task, or at one end of a transfer."""
        first = act
        if act >= self._count:
            readers = self._readers(draft, _row(draft.fills, act)[0])
            if readers and self._random.random() >= ALONE:
                return readers
            maker = int(draft.filler[_row(draft.reads, act)[0]])
            ends = [*readers, maker] if 0 <= maker < self._count else readers
            if not ends:
                return ()
            first = int(self._random.choice(ends))
        operands = _row(draft.reads, first)
        if not operands or self._random.random() < ALONE:
            return (first,)
        return self._readers(draft, int(self._random.choice(operands)))

    def _readers(self, draft: Draft, held: int) -> tuple[TaskIdx, ...]:
        return tuple(sorted({one for one in _row(draft.users, held) if one < self._count}))

    def _pool_for(self, draft: Draft, late: Times, limit: Ints, tasks: tuple[TaskIdx, ...]) -> int:
        """Return a pool in whose memory there is room for the first task; -1 for none."""
        first = min(tasks, key=lambda task: (int(late.start[task]), task))
        near = self._bytes_at(draft, late, tasks)
        new = [*_row(draft.reads, first), *_row(draft.fills, first)]
        need = int(draft.bytes[new].sum())
        free = self._bytes_free(draft, late, limit, int(late.start[first]))
        roomy = [
            memory
            for memory in self._pools_at
            if need - near.get(memory, 0) <= free[memory] or memory == draft.memory[new[0]]
        ]
        if self._random.random() < NEAR and any(memory in near for memory in roomy):
            roomy = [memory for memory in roomy if memory in near]
            weight = numbers(near[memory] for memory in roomy)
            memory = int(self._random.choice(roomy, p=weight / weight.sum()))
        elif roomy:
            memory = int(self._random.choice(roomy))
        else:
            return NONE
        return int(self._random.choice(self._pools_at[memory]))

    def _bytes_free(self, draft: Draft, late: Times, limit: Ints, cycle: Cycles) -> Ints:
        """Return the bytes free in each memory just before a cycle."""
        is_there = (late.begins < cycle) & (late.ends >= cycle)
        used = np.bincount(draft.memory[is_there], draft.bytes[is_there], limit.size)
        return limit - used.astype(np.int64)

    def _bytes_at(
        self, draft: Draft, late: Times, tasks: tuple[TaskIdx, ...]
    ) -> dict[MemoryIdx, Bytes]:
        """Return how much of what a component reads is in each memory, or goes there afterwards."""
        found: defaultdict[MemoryIdx, Bytes] = defaultdict(int)
        starts = late.start[[*tasks]]
        is_there = (late.begins < starts.max()) & (late.ends >= starts.min())
        for part in {part for task in tasks for part in self._problem.tasks[task].reads}:
            slice_ = self._problem.slices[part]
            holds = (draft.slice == part) | (draft.slice == slice_.buffer)
            for memory in np.unique(draft.memory[is_there & holds]).tolist():
                found[memory] += slice_.bytes
        for task in tasks:
            for written in _row(draft.fills, task):
                for move in _row(draft.users, written):
                    for copy in _row(draft.fills, move) if move >= self._count else ():
                        found[int(draft.memory[copy])] += int(draft.bytes[copy])
        return {memory: size for memory, size in found.items() if memory in self._pools_at}


def _row(rows: Rows, index: int) -> list[int]:
    found: list[int] = rows.items[rows.begin[index] : rows.begin[index + 1]].tolist()
    return found
