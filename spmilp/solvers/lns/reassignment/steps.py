"""Steps in which tasks change cores."""

from collections.abc import Iterable

import numpy as np

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import NEVER, NONE, Ints, numbers, owners_of
from spmilp.solvers.lns.reassignment.components import Components
from spmilp.solvers.lns.reassignment.move import (
    Reassigned,
    Reassigner,
    Reassignment,
    Snapshot,
    snapshot,
)
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.forward import forward_pass, forward_pass_by
from spmilp.solvers.partial_order.repacking import justified_by_capacity
from spmilp.solvers.partial_order.schedule import (
    Memories,
    PartialOrderSchedule,
    TimedSchedule,
    timed,
)
from spmilp.units import Bytes, MemoryIdx

TRIES = 8
"""Reassignments at most in a step."""


class ReassignmentSteps:
    """Moves one component to other cores, or lets it change places with a task, if that pays.

    The plan has to end earlier, or at the same cycle and the busiest resource has less to do.
    """

    def __init__(self, context: ScheduleContext, seed: int) -> None:
        self._context = context
        self._reassigner = Reassigner(context)
        random = np.random.default_rng(seed)
        self._components = Components(context.problem, self._reassigner.pools, random)
        self._last: tuple[TimedSchedule, Ints, TimedSchedule, TimedSchedule] | None = None

    def improve(self, current: TimedSchedule, memories: Memories, clock: Clock) -> TimedSchedule:
        """Try some moves, up to the first that pays; return a schedule that ends no later."""
        late, early = self._extremes(current, memories)
        if early.makespan < current.makespan:
            return early
        before, limit = snapshot(late), memories.limit
        for choice in self._components.choices(before, early.start, limit, TRIES):
            if clock.is_over():
                break
            found = self._reassigned(before, choice, memories)
            if found is not None and _is_better(found, current):
                return justified_by_capacity(self._context, found, memories, clock, rounds=1)
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
    size, overwrites = schedule.bytes[there], schedule.overwrites[there]
    filler = schedule.filler[there]
    # Bytes that are overwritten in place count twice only when the writer has ended.
    shared = np.where(overwrites == NONE, 0, np.minimum(size, schedule.bytes[overwrites]))
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
