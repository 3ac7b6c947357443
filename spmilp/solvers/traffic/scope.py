"""The order of tasks, what a window leaves open, and the steps at which slices may be of use."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

from spmilp.plan.plan import Plan
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, SliceIdx, TaskIdx


@dataclass(frozen=True)
class TaskSequence:
    """Tasks one after another, each in a pool of cores.

    ``order`` has every task after all that it follows; the *step* of a task is its position.
    ``pools`` has that of each task, by index.
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


def sequence_of(tables: ProblemTables, plan: Plan) -> TaskSequence:
    """Return the order in which a plan's tasks start, and their pools."""
    order = sorted(plan.placements, key=lambda placement: (placement.start, placement.task))
    return TaskSequence(tuple(one.task for one in order), tables.pools_of_plan(plan))


def one_pool(tables: ProblemTables) -> tuple[int, ...] | None:
    """Return for each task the same pool: of those that run every task, one with the most bytes.

    There nothing moves from core to core. ``None`` if no pool runs every task.
    """
    tasks = range(len(tables.problem.tasks))
    able = set(range(len(tables.pools))).intersection(*(tables.pools_of(task) for task in tasks))
    memories = tables.problem.machine.memories
    room = {pool: memories[tables.pools[pool].memory].usable for pool in able}

    def bytes_of(pool: int) -> tuple[float, int]:
        size = room[pool]
        return inf if size is None else size, -pool

    return (max(able, key=bytes_of),) * len(tasks) if able else None


MOST_POOLS = 4
"""If there are at most so many pools of cores, a task in a window may go to any of them."""


class Slot(NamedTuple):
    """A task's step and the pool of cores in which it runs."""

    step: int
    pool: int


class Run(NamedTuple):
    """A task that takes one of its slots."""

    task: TaskIdx
    slot: Slot


Scope: TypeAlias = tuple[tuple[Slot, ...], ...]
"""The slots of each task, by index; at each step one of them runs."""


def fixed(sequence: TaskSequence) -> Scope:
    """Return the scope of one sequence: each task has one slot."""
    slots = zip(sequence.steps, sequence.pools, strict=True)
    return tuple((Slot(step, pool),) for step, pool in slots)


def window(tables: ProblemTables, sequence: TaskSequence, first: int, last: int) -> Scope:
    """Return a scope in which the tasks at steps ``[first, last)`` may change places.

    A task that has to follow n tasks of the window comes at step ``first + n`` or later; likewise
    the tasks that have to follow it bound its last step. If pools are at most :data:`MOST_POOLS`,
    the tasks may also change pools.
    """
    free = sequence.order[first:last]
    before = _ancestors(tables, free)
    after = {task: sum(task in some for some in before.values()) for task in free}
    slots = list(fixed(sequence))
    has_few = len(tables.pools) <= MOST_POOLS
    for task in free:
        allowed = tables.pools_of(task) if has_few else (sequence.pools[task],)
        steps = range(first + len(before[task]), last - after[task])
        slots[task] = tuple(Slot(step, pool) for step in steps for pool in allowed)
    return tuple(slots)


def _ancestors(tables: ProblemTables, free: tuple[TaskIdx, ...]) -> dict[TaskIdx, set[TaskIdx]]:
    """Return what comes before each of some tasks, among themselves, in any order.

    The ``free`` ones are successive tasks of a sequence: what leads between them is among them.
    """
    found: dict[TaskIdx, set[TaskIdx]] = {}
    for task in free:
        direct = [earlier for earlier in tables.predecessors[task] if earlier in found]
        found[task] = {one for earlier in direct for one in (earlier, *found[earlier])}
    return found


BEGINNING = -1
"""The step before the first task; the one after the last task is their number."""

MOST_MEMORIES = 4
"""On-chip memories in which a slice may wait at a step, besides those where a task uses it. If the
chip has more, only those with the slice's last uses are taken."""


class Location(NamedTuple):
    """A slice in a memory."""

    slice: SliceIdx
    memory: MemoryIdx


@dataclass(slots=True)
class UsePoint:
    """A step at which a slice may be in a memory on the chip.

    ``writers`` are runs at this step that write it, ``readers`` those that read it or a part of it,
    in this memory. Without any it may only wait there, come from there or go there.
    """

    step: int
    writers: list[Run] = field(default_factory=list)
    readers: list[Run] = field(default_factory=list)


class UsePoints:
    """All use points of a scope.

    ``of`` has those of each location, in order of steps; at each step there is one at most.
    ``initial`` and ``final`` are the locations of slices that are there at the beginning, and of
    those that have to be at the end.
    """

    def __init__(self, tables: ProblemTables, scope: Scope) -> None:
        self.tables = tables
        self.scope = scope
        self._found: dict[Location, dict[int, UsePoint]] = defaultdict(dict)
        self._worked_in = frozenset(pool.memory for pool in tables.pools)
        buffers = tables.problem.buffers
        self.initial = frozenset(self._on_chip((b.index, b.starts_in) for b in buffers))
        self.final = frozenset(self._on_chip((b.index, b.ends_in) for b in buffers))
        for location in self.initial:
            self._point(location, BEGINNING)
        for location in self.final:
            self._point(location, len(scope))
        self._add_those_of_runs()
        self._add_those_on_the_way()
        self.of = {
            location: tuple(points[step] for step in sorted(points))
            for location, points in sorted(self._found.items())
        }

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(points) for points in self.of.values())

    def is_initial(self, location: Location, point: UsePoint) -> bool:
        """Say whether a slice is there at the beginning, and this is it."""
        return location in self.initial and point.step == BEGINNING

    def is_working(self, memory: MemoryIdx) -> bool:
        """Say whether cores work in a memory."""
        return memory in self._worked_in

    def _on_chip(self, ends: Iterable[tuple[SliceIdx, MemoryIdx | None]]) -> Iterable[Location]:
        for buffer, memory in ends:
            if memory is not None and not self.tables.is_dram(memory):
                yield Location(buffer, memory)

    def _add_those_of_runs(self) -> None:
        for task, slots in zip(self.tables.problem.tasks, self.scope, strict=True):
            for slot in slots:
                run, memory = Run(task.index, slot), self.tables.pools[slot.pool].memory
                for written in task.writes:
                    self._point(Location(written, memory), slot.step).writers.append(run)
                for read in task.reads:
                    for holder in self.tables.holders(read):
                        if self.tables.fits(holder, memory):
                            readers = self._point(Location(holder, memory), slot.step).readers
                            if run not in readers:
                                readers.append(run)

    def _add_those_on_the_way(self) -> None:
        """Add those where a slice may come from or wait while something happens elsewhere.

        On a machine with few memories these are all of them. On others they are those in which
        something happened to the slice last.
        """
        memories = range(len(self.tables.machine.memories))
        chip = [memory for memory in memories if not self.tables.is_dram(memory)]
        happens: dict[SliceIdx, dict[int, set[MemoryIdx]]] = defaultdict(lambda: defaultdict(set))
        for location, points in self._found.items():
            for holder in self.tables.holders(location.slice):
                for step in points:
                    happens[holder][step].add(location.memory)
        for slice_, steps in happens.items():
            recent = chip if len(chip) <= MOST_MEMORIES else []
            for step in sorted(steps):
                here = steps[step]
                for memory in recent:
                    if here != {memory} and self._are_linked(slice_, memory, here - {memory}):
                        self._point(Location(slice_, memory), step)
                if len(chip) > MOST_MEMORIES:
                    others = [memory for memory in recent if memory not in here]
                    recent = [*sorted(here), *others][:MOST_MEMORIES]

    def _are_linked(self, slice_: SliceIdx, memory: MemoryIdx, others: Iterable[MemoryIdx]) -> bool:
        transfers = self.tables.transfers
        return self.tables.fits(slice_, memory) and any(
            transfers.between(slice_, memory, other) or transfers.between(slice_, other, memory)
            for other in others
        )

    def _point(self, location: Location, step: int) -> UsePoint:
        return self._found[location].setdefault(step, UsePoint(step))
