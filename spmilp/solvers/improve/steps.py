"""Steps in which a task changes its core: which one, and where to; whether it pays."""

from collections.abc import Iterable

import numpy as np

from spmilp.solvers.common.clock import Clock, Step
from spmilp.solvers.improve.reassignment import Reassigned, Reassigner
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
from spmilp.units import Bytes, MemoryIdx, TaskIdx

TRIES = 8
"""Reassignments at most in a step."""


class ReassignmentSteps:
    """Moves one task to another core, if that pays.

    The plan has to end earlier, or at the same cycle and the busiest resource has less to do. Tasks
    are chosen at activities without slack, for no other move saves anything alone.
    """

    def __init__(self, work: Repacking, clock: Clock, seed: int) -> None:
        self._work = work
        self._clock = clock
        self._reassigner = Reassigner(work.context)
        self._tasks = len(work.context.problem.tasks)
        self._random = np.random.default_rng(seed)
        self._last: tuple[TimedSchedule, Ints, TimedSchedule, TimedSchedule] | None = None

    def improve(self, current: TimedSchedule) -> TimedSchedule:
        """Try some moves, up to the first that pays; return a schedule that ends no later."""
        memories = self._work.memories()
        late, early = self._extremes(current, memories)
        if early.makespan < current.makespan:
            return early
        critical = np.flatnonzero((late.schedule.cycles > 0) & (late.start == early.start))
        pools = len(self._reassigner.pools)
        for _ in range(TRIES if critical.size else 0):
            task = self._task_at(late.schedule, int(self._random.choice(critical)))
            if task is None or self._clock.is_over():
                continue
            found = self._reassigned(late, task, int(self._random.integers(pools)), memories)
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
            self._clock.pace.count(Step.PASS, 2 * late.start.size)
        return last[2:]

    def _task_at(self, schedule: PartialOrderSchedule, act: int) -> TaskIdx | None:
        """Return an activity, or a task at one end of a transfer, if there is one."""
        if act < self._tasks:
            return act
        ends = [
            int(schedule.filler[schedule.reads.values(act)[0]]),
            *(
                reader
                for one in schedule.fills.values(act)
                for reader in schedule.readers.values(one)
            ),
        ]
        tasks = [one for one in ends if 0 <= one < self._tasks]
        return int(self._random.choice(tasks)) if tasks else None

    def _reassigned(
        self, late: TimedSchedule, task: TaskIdx, pool: int, memories: Memories
    ) -> TimedSchedule | None:
        """Return the schedule after a move; ``None`` if it is not possible or does not pay."""
        self._clock.pace.count(Step.MOVE, late.start.size)
        found = self._reassigner.reassigned(late, task, pool)
        if found is None:
            return None
        stretched = with_unplaced(late.schedule, found, late.start)
        full = overfull(stretched, memories.limit, found.memories)
        as_before = overfull(late, memories.limit, full)
        if any(most > as_before.get(memory, 0) for memory, most in full.items()):
            return None
        # Whatever is behind may not be later than it can be for the makespan before.
        due = late.start.copy()
        due[[act for _, _, act in found.unplaced]] = NEVER
        return forward_pass_by(stretched, memories, due)


def with_unplaced(before: PartialOrderSchedule, found: Reassigned, start: Ints) -> TimedSchedule:
    """Return times for a reassigned schedule, in which what has to be placed anew runs alone.

    At the cycle given for each, nothing begins any more until all has ended that runs; then comes
    the activity, and all that began at that cycle or later comes after it, as late as it came
    before. So what waits for another still begins when that has ended, and of the others only those
    hold something at the same time that did so before. ``start`` has the cycles of the schedule
    before, to which those of ``found.unplaced`` refer.
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


def overfull(
    now: TimedSchedule, limit: Ints, memories: Iterable[MemoryIdx]
) -> dict[MemoryIdx, Bytes]:
    """Return the most bytes at any cycle in those of some memories that hold more than ``limit``.

    ``limit`` is in bytes of each memory; ``NEVER`` for no limit.
    """
    most = {memory: _most_bytes(now, memory) for memory in memories if limit[memory] != NEVER}
    return {memory: count for memory, count in most.items() if count > limit[memory]}


def _most_bytes(now: TimedSchedule, memory: MemoryIdx) -> Bytes:
    schedule, (begins, ends) = now.schedule, now.lifetimes()
    there = np.flatnonzero((schedule.memory == memory) & (begins < ends))
    size, overwrites = taken_by(schedule, there), schedule.overwrites[there]
    filler = schedule.filler[there]
    # Bytes that are overwritten in place count twice only when the writer has ended.
    shared = np.where(overwrites == NONE, 0, np.minimum(size, taken_by(schedule, overwrites)))
    filled = np.where(filler == NONE, 0, (now.start + schedule.cycles)[filler])
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
    demands = schedule.demands
    held = schedule.cycles[owners_of(demands.rows)] - demands.late - demands.early
    work = demands.amounts * np.maximum(held, 0)
    load = np.bincount(demands.items, weights=work, minlength=schedule.capacity.size)
    return float((load / schedule.capacity).max(initial=0.0))
