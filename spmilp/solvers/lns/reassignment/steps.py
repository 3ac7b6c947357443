"""Steps in which tasks change cores."""

from collections.abc import Iterable

import numpy as np

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import NEVER, NONE, Ints, numbers, owners_of
from spmilp.solvers.lns.reassignment.components import Choice, Components
from spmilp.solvers.lns.reassignment.move import Reassigned, Reassigner, Times
from spmilp.solvers.partial_order.capacity_passes import (
    capacity_backward_pass,
    capacity_forward_pass,
    capacity_forward_pass_by,
)
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.repacking import justified_by_capacity
from spmilp.solvers.partial_order.schedule import (
    PartialOrderSchedule,
    TimedSchedule,
    lifetimes,
    makespan_of,
)
from spmilp.units import Bytes, MemoryIdx

TRIES = 8
"""Moves at most in a step."""


class ReassignmentSteps:
    """Moves one component to other cores, or lets it change places with a task, if that pays.

    The plan has to end earlier, or at the same cycle and the busiest resource has less to do.
    """

    def __init__(self, context: ScheduleContext, seed: int) -> None:
        self._context = context
        plan = context.plan
        first_free_slot = len(plan.placements) + len(plan.transfers)
        self._mover = Reassigner(context.problem, context.options, first_free_slot)
        random = np.random.default_rng(seed)
        self._known: tuple[TimedSchedule, Ints, Ints, Ints] | None = None
        self._components = Components(context.problem, self._mover.pools, random)

    def improve(self, current: TimedSchedule, limit: Ints, clock: Clock) -> TimedSchedule:
        """Try some moves, up to the first that pays; return a incumbent that ends no later."""
        context, schedule, makespan = self._context, current.schedule, current.makespan
        late, early = self._extremes(current, limit)
        if makespan_of(schedule, early) < makespan:
            return TimedSchedule(schedule, early, makespan_of(schedule, early))
        times = Times(late, *lifetimes(schedule, late, makespan))
        for choices in self._components.choices(schedule, times, early, limit, TRIES):
            if clock.is_over():
                break
            found = self._moved(schedule, times, choices, limit)
            if found is not None and _is_better(found, current):
                return justified_by_capacity(context, found, limit, clock, rounds=1)
        return current

    def _extremes(self, current: TimedSchedule, limit: Ints) -> tuple[Ints, Ints]:
        """Return start cycles as late and as early as they can be; those of the last time again."""
        known = self._known
        if known is None or known[0] is not current or not np.array_equal(known[1], limit):
            schedule, kept = current.schedule, self._context.kept_reuse
            late = capacity_backward_pass(schedule, kept, limit, current.start, current.makespan)
            early = capacity_forward_pass(schedule, kept, limit, late, current.makespan)
            self._known = known = (current, limit, late, early)
        return known[2:]

    def _moved(
        self, before: PartialOrderSchedule, late: Times, choices: tuple[Choice, ...], limit: Ints
    ) -> TimedSchedule | None:
        """Return the incumbent after moves; ``None`` if they are not possible or do not pay."""
        schedule, times = before, late
        anew: set[int] = set()
        memories: set[MemoryIdx] = set()
        for choice in choices:
            moved = self._mover.moved(schedule, times, choice.tasks, choice.pool)
            if moved is None:
                return None
            start = retimed(schedule, moved, times.start)
            schedule, last = moved.schedule, makespan_of(moved.schedule, start)
            times = Times(start, *lifetimes(schedule, start, last))
            anew.update(act for _, _, act in moved.anew)
            memories.update(moved.memories)
        full = overfull(schedule, times, limit, sorted(memories))
        if full:
            as_before = overfull(before, late, limit, full)
            if any(most > as_before.get(memory, 0) for memory, most in full.items()):
                return None
        # Whatever is behind may not be later than it can be for the makespan before.
        by = late.start.copy()
        by[sorted(anew)] = NEVER
        last = makespan_of(schedule, times.start)
        left = capacity_forward_pass_by(
            schedule, self._context.kept_reuse, limit, times.start, last, by
        )
        return None if left is None else TimedSchedule(schedule, left, makespan_of(schedule, left))


def _is_better(found: TimedSchedule, current: TimedSchedule) -> bool:
    if found.makespan != current.makespan:
        return found.makespan < current.makespan
    return _busiest(found.schedule) < _busiest(current.schedule)


def _busiest(schedule: PartialOrderSchedule) -> float:
    """Return the cycles for which the busiest of all resources is residency as a whole."""
    work = schedule.amounts * schedule.cycles[owners_of(schedule.demands)]
    residency = np.bincount(schedule.demands.items, weights=work, minlength=schedule.capacity.size)
    return float((residency / schedule.capacity).max(initial=0.0))


def overfull(
    schedule: PartialOrderSchedule, times: Times, limit: Ints, memories: Iterable[MemoryIdx]
) -> dict[MemoryIdx, Bytes]:
    """Return the most bytes at any cycle in those of some memories that hold more than ``limit``.

    Parameters
    ----------
    limit
        Bytes of each memory; ``NEVER`` for no limit.
    """
    found = {}
    for memory in memories:
        if limit[memory] != NEVER:
            most = _most_bytes(schedule, times, memory)
            if most > limit[memory]:
                found[memory] = most
    return found


def _most_bytes(schedule: PartialOrderSchedule, times: Times, memory: MemoryIdx) -> Bytes:
    start, begins, ends = times
    residency = np.flatnonzero((schedule.memory == memory) & (begins < ends))
    size, overwrites, filler = (
        schedule.bytes[residency],
        schedule.overwrites[residency],
        schedule.filler[residency],
    )
    # What takes over bytes counts from the end of the task that writes it.
    shared = np.where(overwrites == NONE, 0, np.minimum(size, schedule.bytes[overwrites]))
    filled = np.where(filler == NONE, 0, (start + schedule.cycles)[filler])
    at = np.concatenate((begins[residency], filled, ends[residency]))
    change = np.concatenate((size - shared, shared, -size))
    # What ends makes room for what begins at the same cycle.
    return int(np.cumsum(change[np.lexsort((change, at))]).max(initial=0))


def retimed(before: PartialOrderSchedule, moved: Reassigned, start: Ints) -> Ints:
    """Return start cycles of a moved schedule, in which what has to be placed anew runs alone.

    At the cycle given for each, nothing begins any more until all has ended that runs; then comes
    the activity, and all that began at that cycle or later comes after it, as late as it came
    before. So whoever waits for another still begins when that has ended, and of the others only
    those hold something at the same time that did so before.

    Parameters
    ----------
    start
        Cycles of the schedule before, to which those of ``moved.anew`` refer.
    """
    cycles = moved.schedule.cycles
    stays = (cycles > 0) & (before.cycles > 0)
    stays[[act for _, _, act in moved.anew]] = False
    others = np.flatnonzero(stays)
    others = others[np.argsort(start[others], kind="stable")]
    begins = start[others]
    latest_end = np.maximum.accumulate((start + cycles)[others])
    found = start.copy()
    shift, cut, at, shifts = 0, -1, [], [0]
    for cycle, _, act in moved.anew:
        if cycle != cut:
            cut = cycle
            started = int(np.searchsorted(begins, cycle))
            running = int(latest_end[started - 1]) if started else 0
            shift += max(0, running - cycle)
            at.append(cycle)
            shifts.append(shift)
        found[act] = cycle + shift
        shift += int(cycles[act])
        shifts[-1] = shift
    found[others] += numbers(shifts)[np.searchsorted(numbers(at), begins, side="right")]
    return found
