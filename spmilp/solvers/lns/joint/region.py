"""What is free in a joint window, and the rest of the schedule, which bounds it."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spmilp.solvers.kernels.records import NONE, inverted
from spmilp.solvers.lns.reassignment.edit import Lists, free_slots
from spmilp.solvers.lns.reassignment.move import Reassigner
from spmilp.solvers.lns.window import Window
from spmilp.solvers.partial_order.schedule import FREE, PartialOrderSchedule, TimedSchedule
from spmilp.units import BufferIdx, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TaskIdx


class Rest(Window):
    """What is not free of a window: it still lasts from the window's start to its end.

    Attributes
    ----------
    holders
        Residencies that may be read by what is free: they may be there for that alone.
    """

    def __init__(
        self,
        whole: Window,
        early: TimedSchedule,
        late: TimedSchedule,
        span: tuple[Cycles, Cycles],
    ) -> None:
        super().__init__(whole.context, early, late, *span)
        self._whole = whole
        self.holders: set[ResidencyIdx] = set()

    @cached_property
    def start(self) -> Cycles:
        """The cycle before which nothing of the window may start."""
        return self._whole.start

    @cached_property
    def end(self) -> Cycles:
        """The cycle by which the window and all before it have ended."""
        return self._whole.end

    def is_near(self, residency: ResidencyIdx) -> bool:
        """Say whether a residency may be there between the start and the end."""
        return residency in self.holders or super().is_near(residency)

    def is_behind(self, activity: int) -> bool:
        """Say whether an activity comes behind the window."""
        return not (self.is_before[activity] or self.is_inside[activity])


class Need(NamedTuple):
    """An activity that is not free reads a slice of a residency that is."""

    residency: ResidencyIdx
    activity: int
    what: SliceIdx


class Region:
    """Free tasks of a window, the transfers that are decided with them, and the rest.

    Parameters
    ----------
    span
        Activities whose latest start lies in it are inside of the window.
    pools
        The pools that each task may run on that is to be free, its own first. A task stays as it is
        if it has to; what overwrites its results in place is free, too, on its own pool.

    Attributes
    ----------
    whole, rest
        The window with all that is in it, and without what is free.
    tasks
        Free tasks with their pools.
    transfers
        Free transfers: each that brings an operand of a free task, or sends a result of one on, if
        it has one destination and starts in the window or not long before.
    free
        Residencies that free activities fill.
    needs
        Who else reads these.
    """

    def __init__(
        self,
        reassigner: Reassigner,
        early: TimedSchedule,
        late: TimedSchedule,
        span: tuple[Cycles, Cycles],
        pools: Mapping[TaskIdx, tuple[int, ...]],
    ) -> None:
        self.context = reassigner.context
        self.problem = reassigner.problem
        self.reassigner = reassigner
        self.schedule = late.schedule
        self.whole = Window(self.context, early, late, *span)
        self._count = len(self.problem.tasks)
        self.tasks = self._free_tasks(pools)
        self.transfers = self._free_transfers()
        acts = (*self.tasks, *self.transfers)
        self.free = {one for act in acts for one in self.schedule.fills.values(act)}
        self.needs = self._needs()
        self.slots: list[int] = free_slots(self.schedule, reassigner.first_free_slot).tolist()
        schedule = self._without_free()
        self.rest = Rest(
            self.whole,
            TimedSchedule(schedule, early.start, early.makespan),
            TimedSchedule(schedule, late.start, late.makespan),
            span,
        )

    def pool_of(self, task: TaskIdx) -> int:
        """Return the pool that a task runs on now."""
        demands = self.schedule.demands
        return int(demands.items[demands.begin[task]])

    def memory_of(self, task: TaskIdx) -> MemoryIdx:
        """Return the memory of that pool."""
        return self.reassigner.pools[self.pool_of(task)][1]

    def buffer_of(self, what: SliceIdx) -> BufferIdx:
        """Return the buffer that a slice is a part of."""
        return self.problem.slices[what].buffer

    def slices_read(self, act: int, residency: ResidencyIdx) -> list[SliceIdx]:
        """Return what an activity reads of a residency."""
        if act >= self._count:
            return [int(self.schedule.moved_slice[act])]
        reads = self.problem.tasks[act].reads
        held = self.schedule.reads.values(act)
        return [what for what, one in zip(reads, held, strict=True) if one == residency]

    def holders(self, whats: Iterable[SliceIdx]) -> list[ResidencyIdx]:
        """Return the residencies of the rest that hold one of some slices and may be read."""
        schedule, rest, found = self.schedule, self.rest, []
        for one in np.flatnonzero(np.isin(schedule.slice, [*whats])).tolist():
            filler = rest.filler[one]
            is_filled = filler == NONE or (rest.cycles[filler] > 0 and not rest.is_behind(filler))
            if one in self.free or not is_filled:
                continue
            if self.context.is_dram[schedule.memory[one]] or self.whole.is_near(one):
                found.append(one)
        rest.holders.update(found)
        return found

    def _free_tasks(
        self, pools: Mapping[TaskIdx, tuple[int, ...]]
    ) -> dict[TaskIdx, tuple[int, ...]]:
        """Return the tasks that may be free, with what overwrites their results in place."""
        schedule = self.schedule
        found = {task: some for task, some in pools.items() if self._may_be_free(task)}
        waiting, gone = [*found], set[TaskIdx]()
        while waiting:
            task = waiting.pop()
            for other in self._overwriting(task) if task in found else ():
                if other in found:
                    continue
                if other not in gone and self._may_be_free(other):
                    found[other] = (self.pool_of(other),)
                    waiting.append(other)
                    continue
                del found[task]
                gone.add(task)
                # What it overwrites is no longer overwritten by a free task.
                olds = [int(schedule.overwrites[one]) for one in schedule.fills.values(task)]
                waiting += [int(schedule.filler[old]) for old in olds if old != NONE]
                break
        return found

    def _overwriting(self, act: int) -> list[int]:
        """Return the tasks that overwrite in place what an activity fills."""
        news = (int(self.schedule.overwritten_by[one]) for one in self.schedule.fills.values(act))
        return [int(self.schedule.filler[new]) for new in news if new != NONE]

    def _may_be_free(self, task: TaskIdx) -> bool:
        """Say whether a task may change: it is inside, and all that it touches is at its core."""
        schedule = self.schedule
        if not self.whole.is_inside[task] or schedule.fixed[task] != FREE:
            return False
        memory, filled = self.memory_of(task), schedule.fills.values(task)
        if self.context.is_dram[memory] or schedule.lasting[filled].any():
            return False
        if any(schedule.memory[one] != memory for one in self.whole.touched(task)):
            return False
        readers = (other for one in filled for other in schedule.readers.values(one))
        return all(self.memory_of(other) == memory for other in readers if other < self._count)

    def _free_transfers(self) -> list[int]:
        schedule, found, waiting = self.schedule, set[int](), list[int]()
        for task in self.tasks:
            waiting += [int(schedule.filler[one]) for one in schedule.reads.values(task)]
            for one in schedule.fills.values(task):
                waiting += schedule.readers.values(one)
        while waiting:
            act = waiting.pop()
            if act in found or not self._transfer_may_be_free(act):
                continue
            found.add(act)
            # What is sent on from where it brings its slice may come from elsewhere.
            waiting += schedule.readers.values(schedule.fills.values(act)[0])
        return sorted(found)

    def _transfer_may_be_free(self, act: int) -> bool:
        schedule, window = self.schedule, self.whole
        if act < self._count or schedule.fixed[act] != FREE or schedule.cycles[act] == 0:
            return False
        fills = schedule.fills.values(act)
        starts_here = window.is_inside[act]
        starts_here |= window.is_before[act] and window.old[act] >= window.start
        if not starts_here or len(fills) != 1:
            return False
        kept = self.context.kept_reuse
        if kept.earlier.values(fills[0]) or kept.later.values(fills[0]):
            return False
        return all(task in self.tasks for task in self._overwriting(act))

    def _needs(self) -> list[Need]:
        freed, found = {*self.tasks, *self.transfers}, []
        for one in sorted(self.free):
            for act in dict.fromkeys(self.schedule.readers.values(one)):
                if act not in freed:
                    found += [Need(one, act, what) for what in self.slices_read(act, one)]
        return found

    def _without_free(self) -> PartialOrderSchedule:
        """Return a schedule in which free transfers are dropped, and free tasks need only time."""
        schedule, free = self.schedule, sorted(self.free)
        reads, demands = Lists(schedule.reads), Lists(schedule.demands)
        amounts = Lists(schedule.demands._replace(items=schedule.amounts))
        for act in (*self.tasks, *self.transfers):
            reads[act], demands[act], amounts[act] = (), (), ()
        for need in self.needs:
            reads[need.activity] = [o for o in reads[need.activity] if o not in self.free]
        left = reads.result()
        cycles, sizes, lasting, overwrites, overwritten_by = (
            column.copy()
            for column in (
                schedule.cycles,
                schedule.bytes,
                schedule.lasting,
                schedule.overwrites,
                schedule.overwritten_by,
            )
        )
        cycles[self.transfers] = 0
        sizes[free] = lasting[free] = 0
        olds, news = overwrites[free], overwritten_by[free]
        overwritten_by[olds[olds != NONE]] = overwrites[news[news != NONE]] = NONE
        overwrites[free] = overwritten_by[free] = NONE
        return schedule._replace(
            cycles=cycles,
            reads=left,
            readers=inverted(left, schedule.filler.size),
            demands=demands.result(),
            amounts=amounts.result().items,
            bytes=sizes,
            lasting=lasting,
            overwrites=overwrites,
            overwritten_by=overwritten_by,
        )
