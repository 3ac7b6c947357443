"""Task sequences, and what a model leaves open of one: the slots that each task may take."""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from random import Random
from typing import NamedTuple

from spmilp.plan.plan import Plan
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, TaskIdx


@dataclass(frozen=True)
class TaskSequence:
    """Tasks one after another, each in a pool of cores.

    Parameters
    ----------
    order
        Every task, after all that it follows; the *step* of a task is its position.
    pools
        For each task, by index.
    """

    order: tuple[TaskIdx, ...]
    pools: tuple[int, ...]

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The step of each task, by index."""
        found = [0] * len(self.order)
        for step, task in enumerate(self.order):
            found[task] = step
        return tuple(found)

    def memories(self, tables: ProblemTables) -> tuple[MemoryIdx, ...]:
        """Return the memory in which each task works, by index."""
        return tuple(tables.pools[pool].memory for pool in self.pools)


def sequence_of(tables: ProblemTables, plan: Plan) -> TaskSequence:
    """Return the order in which a plan's tasks start, and their pools."""
    order = sorted(plan.placements, key=lambda placement: (placement.start, placement.task))
    return TaskSequence(tuple(one.task for one in order), tables.pools_of_plan(plan))


def quickest_pools(tables: ProblemTables) -> tuple[int, ...] | None:
    """Return for each task the pool in which it is quickest; ``None`` if some task has none."""
    found = []
    for task in tables.problem.tasks:
        pools = tables.pools_of(task.index)
        if not pools:
            return None
        found.append(min(pools, key=lambda pool: (tables.cycles_on(task.index, pool), pool)))
    return tuple(found)


def one_pool(tables: ProblemTables) -> tuple[int, ...] | None:
    """Return for each task the same pool: of those that run every task, one with the most bytes.

    There nothing moves from core to core. ``None`` if no pool runs every task, or if there is no
    other.
    """
    tasks = range(len(tables.problem.tasks))
    able = set(range(len(tables.pools))).intersection(*(tables.pools_of(task) for task in tasks))
    if not able or len(tables.pools) == 1:
        return None
    memories = tables.problem.machine.memories
    room = {pool: memories[tables.pools[pool].memory].usable for pool in able}
    best = max(able, key=lambda pool: (inf if (size := room[pool]) is None else size, -pool))
    return (best,) * len(tasks)


MOST_POOLS = 4
"""Up to so many pools of cores, a task in a window may go to any of them."""

FIRST_SIZE = 5
"""Tasks of the first windows."""

GROWTH = 1.5
"""From one round of windows to the next, when nothing was gained."""

FIRST_LIMIT = 1.0
"""Deterministic time for a window at first; about a second."""


class Slot(NamedTuple):
    """A task's step and the pool of cores in which it runs."""

    step: int
    pool: int


class Run(NamedTuple):
    """A task that takes one of its slots."""

    task: TaskIdx
    slot: Slot


@dataclass(frozen=True, slots=True)
class Scope:
    """The slots of each task, by index; at each step one of them runs."""

    slots: tuple[tuple[Slot, ...], ...]


def fixed(sequence: TaskSequence) -> Scope:
    """Return the scope of one sequence: each task has one slot."""
    slots = zip(sequence.steps, sequence.pools, strict=True)
    return Scope(tuple((Slot(step, pool),) for step, pool in slots))


def window(tables: ProblemTables, sequence: TaskSequence, first: int, last: int) -> Scope:
    """Return a scope in which the tasks at steps ``[first, last)`` may change places.

    None comes before what it follows: so many steps behind the first as tasks before it are in the
    window, and as many before the last as tasks after it are. Where pools are few, they may change
    these, too.
    """
    free = sequence.order[first:last]
    before = _ancestors(tables, free)
    after = {task: sum(task in some for some in before.values()) for task in free}
    slots = list(fixed(sequence).slots)
    has_few = len(tables.pools) <= MOST_POOLS
    for task in free:
        allowed = tables.pools_of(task) if has_few else (sequence.pools[task],)
        steps = range(first + len(before[task]), last - after[task])
        slots[task] = tuple(Slot(step, pool) for step in steps for pool in allowed)
    return Scope(tuple(slots))


def _ancestors(tables: ProblemTables, free: tuple[TaskIdx, ...]) -> dict[TaskIdx, set[TaskIdx]]:
    """Return what comes before each of some tasks, among themselves, in any order.

    Parameters
    ----------
    free
        Successive tasks of a sequence: what leads from one to another is among them.
    """
    found: dict[TaskIdx, set[TaskIdx]] = {}
    for task in free:
        direct = [earlier for earlier in tables.predecessors[task] if earlier in found]
        found[task] = {one for earlier in direct for one in (earlier, *found[earlier])}
    return found


class Windows:
    """Windows over all steps, round by round, each of which overlaps half of the next one.

    After a round without any gain windows grow, and get more time if some were not searched to
    their end.

    Attributes
    ----------
    limit
        Deterministic time for the next window.
    """

    def __init__(self, tables: ProblemTables, seed: int) -> None:
        self._tables = tables
        self._random = Random(seed)
        self._size = 0
        self._firsts: list[int] = []
        self._has_gained = False
        self._is_complete = True
        self.limit = FIRST_LIMIT

    def next(self, sequence: TaskSequence) -> Scope | None:
        """Return the next scope; ``None`` when one with all tasks has been searched to its end."""
        steps = len(sequence.order)
        if not self._firsts:
            if self._size >= steps and self._is_complete and not self._has_gained:
                return None
            self._begin_round(steps)
        first = self._firsts.pop()
        return window(self._tables, sequence, first, min(first + self._size, steps))

    def learn(self, *, has_gained: bool, is_complete: bool) -> None:
        """Take note of how the last window went."""
        self._has_gained |= has_gained
        self._is_complete &= is_complete

    def _begin_round(self, steps: int) -> None:
        if not self._has_gained:
            self.limit *= 1.0 if self._is_complete else GROWTH
            self._size = min(steps, max(FIRST_SIZE, int(self._size * GROWTH)))
        self._has_gained, self._is_complete = False, True
        last = steps - self._size
        self._firsts = sorted({*range(0, last, max(1, self._size // 2)), last})
        self._random.shuffle(self._firsts)
