"""The order that command lists must keep, and the least waits that imply it.

Conflicts on bytes, and tasks that follow others without data, give the order; vector clocks tell
how far every list has come when an activity ends; the transitive reduction drops what is implied.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.commands.accesses import Accesses, Packed, Placed, Region
from spmilp.commands.activities import Activities, Activity
from spmilp.commands.last_access import Boxes, Intervals
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.units import Box, TensorIdx

Touched: TypeAlias = tuple[Activity, tuple[Region, ...], tuple[Region, ...]]
"""An activity, what it reads, and what it writes."""

Before: TypeAlias = tuple[frozenset[Activity], ...]
"""For each activity, others that must have ended before it starts."""


def predecessors(problem: Problem, plan: Plan, activities: Activities) -> Before:
    """For each activity, others that must have ended before it starts.

    Two activities conflict when they touch the same bytes and at least one writes them. The pairs
    returned, together with the order inside each list, imply the order of every conflicting pair;
    they need not be the least.
    """
    found: list[set[Activity]] = [set() for _ in activities.order]
    for task, placement in zip(problem.tasks, plan.placements, strict=True):
        found[placement.task].update(task.after)
    accesses = Accesses(problem, plan)
    touched = [
        (activity, tuple(accesses.reads(activity)), tuple(accesses.writes(activity)))
        for activity in activities.order
    ]
    intervals = [Intervals() for _ in problem.machine.memories]
    boxes = {tensor: Boxes(where) for tensor, where in _boxes_of_written_tensors(touched).items()}
    for activity, reads, writes in touched:
        own, mine = activities.list_of[activity], found[activity]
        for region in reads:
            if isinstance(region, Packed):
                known = intervals[region.memory]
                mine.update(known.read(activity, own, region.low, region.high))
            elif region.tensor in boxes:
                mine.update(boxes[region.tensor].read(activity, own, region.box))
        for region in writes:
            if isinstance(region, Packed):
                mine.update(intervals[region.memory].write(activity, region.low, region.high))
            else:
                mine.update(boxes[region.tensor].write(activity, region.box))
        mine.discard(activity)
    return tuple(map(frozenset, found))


def _boxes_of_written_tensors(touched: list[Touched]) -> dict[TensorIdx, set[Box]]:
    """Return what is touched of the tensors that somebody writes; weights and inputs are not."""
    boxes: dict[TensorIdx, set[Box]] = {
        region.tensor: set()
        for _, _, writes in touched
        for region in writes
        if isinstance(region, Placed)
    }
    for _, reads, writes in touched:
        for region in (*reads, *writes):
            if isinstance(region, Placed) and region.tensor in boxes:
                boxes[region.tensor].add(region.box)
    return boxes


def transitive_reduction(
    activities: Activities, before: Sequence[Collection[Activity]]
) -> tuple[tuple[Activity, ...], ...]:
    """For each activity, those in other lists that it has to wait for; no fewer would do.

    The reduction of an acyclic order is unique (Aho, Garey and Ullman, The transitive reduction of
    a directed graph, SIAM Journal on Computing 1(2), 1972). The order inside a list costs nothing
    and is taken for granted. An activity looks at its predecessors from the last to start to the
    first: only one that starts later can imply another, so that each is either implied by what is
    already waited for, or by nothing.

    Parameters
    ----------
    before
        For each activity, some that must precede it. Each of them ends before the activity starts
        in the plan.
    """
    return _reduced(activities, before, before)


def _reduced(
    activities: Activities,
    before: Sequence[Collection[Activity]],
    instead: Sequence[Collection[Activity]],
) -> tuple[tuple[Activity, ...], ...]:
    """Return waits for what stands in place of each predecessor, as far as that is not implied."""
    clocks = Clocks(activities, instead)
    kept: list[tuple[Activity, ...]] = [()] * len(activities.order)
    for activity in activities.order:
        clock = clocks.before_start(activity)
        waits = []
        pairs = zip(before[activity], instead[activity], strict=True)
        for earlier, other in sorted(
            pairs, key=lambda pair: activities.rank[pair[0]], reverse=True
        ):
            if not clocks.covers(clock, earlier):
                waits.append(other)
                clocks.wait_for(clock, other)
        kept[activity] = tuple(waits)
        clocks.end(activity, clock)
    return tuple(kept)


def with_fewer_signals(
    plan: Plan, activities: Activities, waits: Sequence[Sequence[Activity]]
) -> tuple[tuple[Activity, ...], ...]:
    """For each activity, those to wait for so that fewer have to signal their end.

    Instead of an activity one may wait for a later one of the same list that has ended in the plan
    by then; so each wait is an interval of ends. No fewer ends serve all waits on a list than are
    chosen: the last one of the interval that is over first must be, or one before it that serves
    no more intervals; then the same with those that it does not serve. All that is waited for has
    ended before in the plan, so that nothing can wait in a circle.

    Parameters
    ----------
    waits
        A transitive reduction.
    """
    starts = [each.start for each in plan.placements] + [move.start for move in plan.transfers]
    ends = [each.end for each in plan.placements] + [move.end for move in plan.transfers]
    of_list = [[ends[activity] for activity in mine] for mine in activities.lists]
    intervals: list[list[tuple[int, int, Activity]]] = [[] for _ in activities.lists]
    for later, mine in enumerate(waits):
        for earlier in mine:
            number = activities.list_of[earlier]
            last = bisect_right(of_list[number], starts[later]) - 1
            intervals[number].append((last, activities.position[earlier], later))
    instead: dict[tuple[int, int, Activity], Activity] = {}
    for number, some in enumerate(intervals):
        chosen = -1
        for last, first, later in sorted(some):
            if first > chosen:
                chosen = last
            instead[number, first, later] = activities.lists[number][chosen]
    chosen_for = [
        [
            instead[activities.list_of[earlier], activities.position[earlier], later]
            for earlier in mine
        ]
        for later, mine in enumerate(waits)
    ]
    return _reduced(activities, waits, chosen_for)


Clock: TypeAlias = NDArray[np.int32]
"""For each list that is not empty, how many of its activities have ended for certain."""


class Clocks:
    """The clocks of the activities that are still asked for.

    A clock has a number for each list, so that those of all activities would fill a machine of
    thousands of cores; each is dropped after its last use.
    """

    def __init__(self, activities: Activities, before: Sequence[Collection[Activity]]) -> None:
        self._activities = activities
        self._before = before
        used = [index for index, mine in enumerate(activities.lists) if mine]
        self._column = {index: column for column, index in enumerate(used)}
        self._uses = [0] * len(activities.order)
        for mine in activities.lists:
            for earlier in mine[:-1]:
                self._uses[earlier] += 1
        for predecessors in before:
            for earlier in predecessors:
                self._uses[earlier] += 1
        self._clocks: dict[Activity, Clock] = {}

    def before_start(self, activity: Activity) -> Clock:
        """Return what the order of its list alone says when an activity starts."""
        position = self._activities.position[activity]
        if position == 0:
            return np.zeros(len(self._column), dtype=np.int32)
        previous = self._activities.lists[self._activities.list_of[activity]][position - 1]
        clock = self._clocks[previous].copy()
        self._release(previous)
        return clock

    def covers(self, clock: Clock, activity: Activity) -> bool:
        """Say whether an activity has ended for certain at a clock."""
        column = self._column[self._activities.list_of[activity]]
        return bool(clock[column] > self._activities.position[activity])

    def wait_for(self, clock: Clock, earlier: Activity) -> None:
        """Add to a clock what is known once an activity has ended."""
        np.maximum(clock, self._clocks[earlier], out=clock)

    def end(self, activity: Activity, clock: Clock) -> None:
        """Note the clock of an activity at its end; what it came after is not asked for again."""
        column = self._column[self._activities.list_of[activity]]
        clock[column] = self._activities.position[activity] + 1
        if self._uses[activity]:
            self._clocks[activity] = clock
        for earlier in self._before[activity]:
            self._release(earlier)

    def at_each_end(self) -> Iterator[tuple[Activity, Clock]]:
        """Yield each activity with the clock at its end."""
        for activity in self._activities.order:
            clock = self.before_start(activity)
            for earlier in self._before[activity]:
                self.wait_for(clock, earlier)
            self.end(activity, clock)
            yield activity, clock

    def _release(self, activity: Activity) -> None:
        self._uses[activity] -= 1
        if self._uses[activity] == 0:
            del self._clocks[activity]
