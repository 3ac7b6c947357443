"""Steps in which tasks change cores: which change together, and where to; whether it pays."""

from collections.abc import Iterable, Iterator

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.improve.reassignment import (
    Reassigned,
    Reassigner,
    Reassignment,
    Snapshot,
    snapshot,
)
from spmilp.solvers.justify.passes import backward_pass, forward_pass, forward_pass_by
from spmilp.solvers.justify.repacking import Repacking
from spmilp.solvers.justify.schedule import (
    Memories,
    PartialOrderSchedule,
    TimedSchedule,
    taken_by,
    timed,
)
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, Ints, numbers, owners_of
from spmilp.units import Bytes, Cycles, KindIdx, MemoryIdx, TaskIdx

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
            filled = schedule.fills.values(act)
            one = filled[0] if len(filled) == 1 else int(self._random.choice(filled))
            readers = self._readers(schedule, one)
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
        need = int(taken_by(schedule, schedule.reads.row(task)).sum())
        need += int(taken_by(schedule, schedule.fills.row(task)).sum())
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
        used = np.bincount(schedule.memory[is_there], taken_by(schedule, is_there), limit.size)
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


TRIES = 8
"""Reassignments at most in a step."""


class ReassignmentSteps:
    """Moves one component to other cores, or lets it change places with a task, if that pays.

    The plan has to end earlier, or at the same cycle and the busiest resource has less to do.
    """

    def __init__(self, work: Repacking, clock: Clock, seed: int) -> None:
        self._work = work
        self._clock = clock
        self._reassigner = Reassigner(work.context)
        random = np.random.default_rng(seed)
        self._components = Components(work.context.problem, self._reassigner.pools, random)
        self._last: tuple[TimedSchedule, Ints, TimedSchedule, TimedSchedule] | None = None

    def improve(self, current: TimedSchedule) -> TimedSchedule:
        """Try some moves, up to the first that pays; return a schedule that ends no later."""
        memories = self._work.memories()
        late, early = self._extremes(current, memories)
        if early.makespan < current.makespan:
            return early
        before, limit = snapshot(late), memories.limit
        for choice in self._components.choices(before, early.start, limit, TRIES):
            if self._clock.is_over():
                break
            found = self._reassigned(before, choice, memories)
            if found is not None and _is_better(found, current):
                return self._work.opened(found, rounds=1)
        return current

    def _extremes(
        self, current: TimedSchedule, memories: Memories
    ) -> tuple[TimedSchedule, TimedSchedule]:
        """Return the schedule as late and as early as it can be; computed once for each."""
        last = self._last
        if last is None or last[0] is not current or not np.array_equal(last[1], memories.limit):
            late = backward_pass(current, memories)
            self._last = last = (current, memories.limit, late, forward_pass(late, memories))
        return last[2:]

    def _reassigned(
        self, late: Snapshot, choice: tuple[Reassignment, ...], memories: Memories
    ) -> TimedSchedule | None:
        """Return the schedule after a choice; ``None`` if it is not possible or does not pay."""
        now, stretched = late, TimedSchedule(late.schedule, late.start, 0)
        placed: set[int] = set()
        changed: set[MemoryIdx] = set()
        for one in choice:
            found = self._reassigner.reassigned(now, one)
            if found is None:
                return None
            stretched = with_unplaced(now.schedule, found, now.start)
            now = snapshot(stretched)
            placed.update(act for _, _, act in found.unplaced)
            changed.update(found.memories)
        full = overfull(now, memories.limit, sorted(changed))
        if full:
            as_before = overfull(late, memories.limit, full)
            if any(most > as_before.get(memory, 0) for memory, most in full.items()):
                return None
        # Whatever is behind may not be later than it can be for the makespan before.
        due = late.start.copy()
        due[sorted(placed)] = NEVER
        return forward_pass_by(stretched, memories, due)


def with_unplaced(before: PartialOrderSchedule, found: Reassigned, start: Ints) -> TimedSchedule:
    """Return times for a reassigned schedule, in which what has to be placed anew runs alone.

    At the cycle given for each, nothing begins any more until all has ended that runs; then comes
    the activity, and all that began at that cycle or later comes after it, as late as it came
    before. So what waits for another still begins when that has ended, and of the others only
    those hold something at the same time that did so before.

    Parameters
    ----------
    start
        Cycles of the schedule before, to which those of ``found.unplaced`` refer.
    """
    cycles = found.schedule.cycles
    stays = (cycles > 0) & (before.cycles > 0)
    stays[[act for _, _, act in found.unplaced]] = False
    others = np.flatnonzero(stays)
    others = others[np.argsort(start[others], kind="stable")]
    begins = start[others]
    latest_end = np.maximum.accumulate((start + cycles)[others])
    new = start.copy()
    shift, cut, at, shifts = 0, -1, [], [0]
    for cycle, _, act in found.unplaced:
        if cycle != cut:
            cut = cycle
            started = int(np.searchsorted(begins, cycle))
            running = int(latest_end[started - 1]) if started else 0
            shift += max(0, running - cycle)
            at.append(cycle)
            shifts.append(shift)
        new[act] = cycle + shift
        shift += int(cycles[act])
        shifts[-1] = shift
    new[others] += numbers(shifts)[np.searchsorted(numbers(at), begins, side="right")]
    return timed(found.schedule, new)


def overfull(now: Snapshot, limit: Ints, memories: Iterable[MemoryIdx]) -> dict[MemoryIdx, Bytes]:
    """Return the most bytes at any cycle in those of some memories that hold more than ``limit``.

    Parameters
    ----------
    limit
        Bytes of each memory; ``NEVER`` for no limit.
    """
    most = {memory: _most_bytes(now, memory) for memory in memories if limit[memory] != NEVER}
    return {memory: count for memory, count in most.items() if count > limit[memory]}


def _most_bytes(now: Snapshot, memory: MemoryIdx) -> Bytes:
    schedule, start, begins, ends = now
    there = np.flatnonzero((schedule.memory == memory) & (begins < ends))
    size, overwrites = taken_by(schedule, there), schedule.overwrites[there]
    filler = schedule.filler[there]
    # Bytes that are overwritten in place count twice only when the writer has ended.
    shared = np.where(overwrites == NONE, 0, np.minimum(size, taken_by(schedule, overwrites)))
    filled = np.where(filler == NONE, 0, (start + schedule.cycles)[filler])
    at = np.concatenate((begins[there], filled, ends[there]))
    change = np.concatenate((size - shared, shared, -size))
    # What ends makes room for what begins at the same cycle.
    return int(np.cumsum(change[np.lexsort((change, at))]).max(initial=0))


def _is_better(found: TimedSchedule, current: TimedSchedule) -> bool:
    if found.makespan != current.makespan:
        return found.makespan < current.makespan
    return _busiest(found.schedule) < _busiest(current.schedule)


def _busiest(schedule: PartialOrderSchedule) -> float:
    """Return the cycles for which the busiest of all resources is held as a whole."""
    work = schedule.amounts * schedule.cycles[owners_of(schedule.demands)]
    held = np.bincount(schedule.demands.items, weights=work, minlength=schedule.capacity.size)
    return float((held / schedule.capacity).max(initial=0.0))
