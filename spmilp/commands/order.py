"""The order that command lists must keep, and the least waits that imply it.

Conflicts on bytes, and tasks that follow others without data, give the order; vector clocks tell
how far every list has come when an activity ends; the transitive reduction drops what is implied.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from operator import add
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.plan.plan import Placement, Plan, Transfer
from spmilp.problem.problem import Problem
from spmilp.problem.strides import footprint, layout_in_slice
from spmilp.units import Box, Bytes, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx

Activity: TypeAlias = int
"""A task by its index, or a transfer by its index plus the number of tasks."""

ListIdx: TypeAlias = int
"""A core by its index; then the channels, in the order of engines and of channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activities:
    """The tasks of a plan, counted by ``tasks``, and behind them its transfers.

    ``order`` has all by their start in the plan, and ``lists`` those of each list in this order. In
    a valid plan whatever must precede an activity starts before it, so that this is one of the
    orders in which command lists can start them. ``list_of`` and ``position`` have the list of each
    activity and its place in it, ``rank`` its place in ``order``. ``pipelined`` are the lists in
    which an activity starts when the one before it has sent all, not when that has arrived.
    """

    tasks: int
    order: tuple[Activity, ...]
    lists: tuple[tuple[Activity, ...], ...]
    list_of: tuple[ListIdx, ...]
    position: tuple[int, ...]
    rank: tuple[int, ...]
    pipelined: frozenset[ListIdx]


def activities_of(problem: Problem, plan: Plan) -> Activities:
    """Return the tasks and transfers of a plan in the lists that will run them."""
    channels = (engine.channels for engine in problem.machine.engines)
    first_list = list(accumulate(channels, initial=len(problem.machine.cores)))
    list_of = [placement.core for placement in plan.placements]
    list_of += [first_list[move.engine] + move.channel for move in plan.transfers]
    starts = [placement.start for placement in plan.placements]
    starts += [move.start for move in plan.transfers]
    order = sorted(range(len(starts)), key=lambda activity: (starts[activity], activity))
    lists: list[list[Activity]] = [[] for _ in range(first_list[-1])]
    position, rank = [0] * len(order), [0] * len(order)
    for place, activity in enumerate(order):
        mine = lists[list_of[activity]]
        position[activity], rank[activity] = len(mine), place
        mine.append(activity)
    return Activities(
        tasks=len(plan.placements),
        order=tuple(order),
        lists=tuple(map(tuple, lists)),
        list_of=tuple(list_of),
        position=tuple(position),
        rank=tuple(rank),
        pipelined=frozenset(
            first_list[engine.index] + channel
            for engine in problem.machine.engines
            for channel in range(engine.channels * engine.pipelined)
        ),
    )


class Packed(NamedTuple):
    """The bytes ``[low, high)`` of a memory."""

    memory: MemoryIdx
    low: Bytes
    high: Bytes


class Placed(NamedTuple):
    """A box of elements of a DRAM tensor."""

    tensor: TensorIdx
    box: Box


Region: TypeAlias = Packed | Placed

Touched: TypeAlias = tuple[Activity, tuple[Region, ...], tuple[Region, ...]]
"""An activity, what it reads, and what it writes, scratch included."""


def touched(problem: Problem, plan: Plan, activities: Activities) -> list[Touched]:
    """Return what each activity of a valid plan reads and writes, in their order.

    A slice at its buffer's place in a DRAM tensor is a box of elements, exactly. Anywhere else it
    counts with all bytes from its first to its last, whether or not its rows leave gaps: nobody
    else may use these gaps while its buffer is there.
    """

    @cache
    def inside(slice_: SliceIdx, held: SliceIdx) -> tuple[Bytes, Bytes]:
        """Return the bytes of a slice, from the first byte of a residency that holds ``held``."""
        part = problem.slices[slice_]
        if slice_ == held:
            return 0, part.bytes
        layout = layout_in_slice(problem, slice_, held)
        item = problem.buffers[part.buffer].item
        return layout.offset, layout.offset + footprint(part.extent, item, layout)

    @cache
    def region(slice_: SliceIdx, index: ResidencyIdx) -> Region:
        residency, part = plan.residencies[index], problem.slices[slice_]
        place = problem.buffers[part.buffer].place
        if place is not None and problem.tensors[place.tensor].memory == residency.memory:
            first = map(add, place.start, part.start)
            box = tuple((a, a + n) for a, n in zip(first, part.extent, strict=True))
            return Placed(place.tensor, box)
        low, high = inside(slice_, slice_ if residency.slice is None else residency.slice)
        return Packed(residency.memory, residency.offset + low, residency.offset + high)

    found: list[Touched] = []
    for activity in activities.order:
        if activity < activities.tasks:
            task, placement = problem.tasks[activity], plan.placements[activity]
            reads = tuple(map(region, task.reads, placement.reads))
            writes = tuple(map(region, task.writes, placement.writes))
            if placement.scratch is not None:
                scratch = plan.residencies[placement.scratch]
                low, high = scratch.offset, scratch.offset + scratch.bytes
                writes = (*writes, Packed(scratch.memory, low, high))
        else:
            move = plan.transfers[activity - activities.tasks]
            reads = (region(move.slice, move.source),)
            writes = tuple(region(move.slice, end) for end in move.destinations)
        found.append((activity, reads, writes))
    return found


NOBODY = -1


class Intervals:
    """The bytes of a memory in disjoint intervals, each with its last writer and later readers.

    Activities come in an order in which each precedes whatever must follow it. Of the readers in
    one list only the last is kept: the others have read before it starts. A write makes one
    interval of all that it covers, so that the number of intervals grows with what lies in the
    memory at one time and not with the length of the plan.
    """

    def __init__(self) -> None:
        self._lows: list[Bytes] = [0]
        self._writers: list[int] = [NOBODY]
        self._readers: list[dict[int, int]] = [{}]

    def read(self, activity: int, of_list: int, low: Bytes, high: Bytes) -> Iterator[int]:
        """Note a read; yield the writers that it must come after."""
        for at in range(self._cut(low), self._cut(high)):
            if self._writers[at] != NOBODY:
                yield self._writers[at]
            self._readers[at][of_list] = activity

    def write(self, activity: int, but: int, low: Bytes, high: Bytes) -> Iterator[int]:
        """Note a write; yield readers to come after, but those of a list, or the writer."""
        first, end = self._cut(low), self._cut(high)
        for at in range(first, end):
            if self._readers[at]:
                yield from (each for mine, each in self._readers[at].items() if mine != but)
            elif self._writers[at] != NOBODY:
                yield self._writers[at]
        self._lows[first:end] = [low]
        self._writers[first:end] = [activity]
        self._readers[first:end] = [{}]

    def _cut(self, at: Bytes) -> int:
        """Return the position of the interval that begins at a byte; make it begin there."""
        position = bisect_left(self._lows, at)
        if position == len(self._lows) or self._lows[position] != at:
            position = bisect_right(self._lows, at)
            self._lows.insert(position, at)
            self._writers.insert(position, self._writers[position - 1])
            self._readers.insert(position, dict(self._readers[position - 1]))
        return position


class Boxes:
    """The boxes of a tensor that anybody touches, each with its last writer and later readers.

    Unlike bytes of a scratchpad, the boxes of a tensor are few and the same again and again: which
    of them overlap is found once. What an activity has to come after is then looked up in them;
    some of it may be long past, and is left to the reduction.
    """

    def __init__(self, boxes: AbstractSet[Box]) -> None:
        distinct = sorted(boxes)
        bounds = np.array(distinct, dtype=np.int64).reshape(len(distinct), -1, 2)
        lows, highs = bounds[..., 0], bounds[..., 1]
        self._overlapping: dict[Box, list[Box]] = {}
        for box, low, high in zip(distinct, lows, highs, strict=True):
            meet = ((lows < high) & (low < highs)).all(axis=1)
            self._overlapping[box] = [distinct[at] for at in np.flatnonzero(meet)]
        self._writer = dict.fromkeys(distinct, NOBODY)
        self._readers: dict[Box, dict[int, int]] = {box: {} for box in distinct}

    def read(self, activity: int, of_list: int, box: Box) -> Iterator[int]:
        """Note a read; yield the writers that it must come after."""
        for other in self._overlapping[box]:
            if self._writer[other] != NOBODY:
                yield self._writer[other]
        self._readers[box][of_list] = activity

    def write(self, activity: int, but: int, box: Box) -> Iterator[int]:
        """Note a write; yield readers, but those of a list, and writers that it must come after."""
        for other in self._overlapping[box]:
            yield from (each for mine, each in self._readers[other].items() if mine != but)
            if self._writer[other] != NOBODY:
                yield self._writer[other]
        self._writer[box] = activity
        self._readers[box] = {}


Before: TypeAlias = tuple[frozenset[Activity], ...]
"""For each activity, others that must have ended, or only read, before it starts."""


def predecessors(
    problem: Problem, plan: Plan, activities: Activities, *, own_readers: bool = False
) -> Before:
    """For each activity, others that must have ended before it starts.

    Two activities conflict when they touch the same bytes and at least one writes them. The pairs
    returned, together with the order inside each list, imply the order of every conflicting pair;
    they need not be the least. Whatever comes later in the list of a reader may overwrite what that
    has read, be the list pipelined: such pairs are there only if ``own_readers`` says so.
    """
    found: list[set[Activity]] = [set() for _ in activities.order]
    for task, placement in zip(problem.tasks, plan.placements, strict=True):
        found[placement.task].update(task.after)
    accesses = touched(problem, plan, activities)
    intervals = [Intervals() for _ in problem.machine.memories]
    boxes = {tensor: Boxes(where) for tensor, where in _boxes_of_written_tensors(accesses).items()}
    for activity, reads, writes in accesses:
        own, mine = activities.list_of[activity], found[activity]
        but = NOBODY if own_readers else own
        for region in reads:
            if isinstance(region, Packed):
                mine.update(intervals[region.memory].read(activity, own, region.low, region.high))
            elif region.tensor in boxes:
                mine.update(boxes[region.tensor].read(activity, own, region.box))
        for region in writes:
            if isinstance(region, Packed):
                mine.update(intervals[region.memory].write(activity, but, region.low, region.high))
            else:
                mine.update(boxes[region.tensor].write(activity, but, region.box))
        mine.discard(activity)
    return tuple(map(frozenset, found))


def _boxes_of_written_tensors(accesses: list[Touched]) -> dict[TensorIdx, set[Box]]:
    """Return what is touched of the tensors that somebody writes; weights and inputs are not."""
    boxes: defaultdict[TensorIdx, set[Box]] = defaultdict(set)
    written: set[TensorIdx] = set()
    for _, reads, writes in accesses:
        written.update(region.tensor for region in writes if isinstance(region, Placed))
        for region in (*reads, *writes):
            if isinstance(region, Placed):
                boxes[region.tensor].add(region.box)
    return {tensor: boxes[tensor] for tensor in written}


def transitive_reduction(
    activities: Activities,
    before: Sequence[Collection[Activity]],
    instead: Sequence[Collection[Activity]] | None = None,
) -> tuple[tuple[Activity, ...], ...]:
    """For each activity, those that it has to wait for; no fewer would do.

    ``before`` has for each activity some that must have ended before it, and that start before it
    in the plan. The reduction of an acyclic order is unique (Aho, Garey and Ullman, The transitive
    reduction of a directed graph, SIAM Journal on Computing 1(2), 1972). The order inside a list
    costs nothing and is taken for granted; that of a pipelined one does not say that anything has
    ended. An activity looks at its predecessors from the last to start to the first: only one that
    starts later can imply another, so that each is either implied by what is already waited for, or
    by nothing. ``instead`` has what to wait for in place of each.
    """
    instead = before if instead is None else instead
    clocks = Clocks(activities, instead)
    kept: list[tuple[Activity, ...]] = [()] * len(activities.order)
    for activity in activities.order:
        clock, waits = clocks.before_start(activity), list[Activity]()
        pairs = [*zip(before[activity], instead[activity], strict=True)]
        pairs.sort(key=lambda pair: activities.rank[pair[0]], reverse=True)
        for earlier, other in pairs:
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

    Instead of waiting for an activity one may wait for a later one of the same list, if all up to
    that have ended in the plan by then. So each wait is an interval of activities of a list, of
    which one has to signal. The fewest are chosen by the greedy algorithm for stabbing intervals:
    of the interval that closes first take the last activity, drop all intervals that contain it,
    and repeat. In the plan all that is waited for has started before, so waits cannot form a cycle.
    """
    work: tuple[Placement | Transfer, ...] = (*plan.placements, *plan.transfers)
    ended = [[*accumulate((work[each].end for each in mine), max)] for mine in activities.lists]
    intervals: list[list[tuple[int, int, Activity]]] = [[] for _ in activities.lists]
    for later, mine in enumerate(waits):
        for earlier in mine:
            number, first = activities.list_of[earlier], activities.position[earlier]
            last = max(first, bisect_right(ended[number], work[later].start) - 1)
            intervals[number].append((last, first, later))
    instead: dict[tuple[Activity, Activity], Activity] = {}
    for mine, some in zip(activities.lists, intervals, strict=True):
        chosen = -1
        for last, first, later in sorted(some):
            if first > chosen:
                chosen = last
            instead[mine[first], later] = mine[chosen]
    chosen_for = [[instead[earlier, later] for earlier in m] for later, m in enumerate(waits)]
    return transitive_reduction(activities, waits, chosen_for)


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
        self._at_last_start: dict[ListIdx, int] = {}  # what a list knew of its own ends

    def before_start(self, activity: Activity) -> Clock:
        """Return what the order of its list alone says when an activity starts."""
        position = self._activities.position[activity]
        if position == 0:
            return np.zeros(len(self._column), dtype=np.int32)
        own = self._activities.list_of[activity]
        previous = self._activities.lists[own][position - 1]
        clock = self._clocks[previous].copy()
        if own in self._activities.pipelined:
            clock[self._column[own]] = self._at_last_start[own]
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
        own = self._activities.list_of[activity]
        self._at_last_start[own] = clock[self._column[own]]
        clock[self._column[own]] = self._activities.position[activity] + 1
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
