"""Rules 6 and 9: sizes, bytes inside a memory, bytes shared at a time, DRAM tensors.

What shares bytes is found by sweeps over time: of the bytes of a memory, of the elements of a DRAM
tensor.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from operator import add, attrgetter
from typing import NamedTuple

from spmilp.checker.rules.case import Case, Use
from spmilp.checker.violation import Violation
from spmilp.machine.machine import Memory
from spmilp.plan.plan import Placement, Residency
from spmilp.units import Box, Bytes, Cycles, ResidencyIdx, SliceIdx


class _AtBox:
    """The residencies of one box of a tensor, by their start: written ones, and initial ones.

    Two residencies that nothing writes show the same bytes as at cycle 0, and may share them.
    """

    def __init__(self) -> None:
        self.written: list[Residency] = []
        self.initial: list[Residency] = []

    def add(self, residency: Residency) -> None:
        (self.written if _is_written(residency) else self.initial).append(residency)


def overlapping_boxes(case: Case) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield each two residencies at their places that share elements at some cycle.

    Two that are both there at cycle 0 show the same bytes, and nothing writes them: they may.

    Boxes that occur are few, and residencies at one box many. Which boxes share elements is found
    once; residencies at such boxes are then swept in time. That takes ``n log n`` steps for ``n``
    residencies at one box, besides the pairs that are found.
    """
    per_tensor: dict[int, dict[Box, _AtBox]] = {}
    written: set[int] = set()
    by_start = sorted(case.plan.residencies, key=lambda each: (each.start, each.index))
    for residency in by_start:
        home = case.home[residency.index]
        if home is not None and residency.slice is not None:
            box = _box_in_tensor(case, residency.slice)
            per_tensor.setdefault(home, {}).setdefault(box, _AtBox()).add(residency)
            if _is_written(residency):
                written.add(home)
    for tensor in sorted(written):
        at_box = per_tensor[tensor]
        for one, other in _boxes_that_share_elements(at_box):
            yield from _pairs_at(at_box[one], at_box[other])


def _boxes_that_share_elements(boxes: Iterable[Box]) -> Iterator[tuple[Box, Box]]:
    """Yield each box with itself and with those that it overlaps, by a sweep along one axis.

    Along the axis that separates the boxes best, most of them have ended when the next one begins.
    """
    distinct = sorted(boxes)
    axes = range(len(distinct[0]))
    axis = max(axes, key=lambda a: (len({box[a] for box in distinct}), -a), default=None)
    if axis is not None:
        distinct.sort(key=lambda box: box[axis])
    alive: list[Box] = []
    for box in distinct:
        if axis is not None:
            alive = [other for other in alive if other[axis][1] > box[axis][0]]
        yield box, box
        for other in alive:
            if _share_elements(other, box):
                yield other, box
        alive.append(box)


def _pairs_at(one: _AtBox, other: _AtBox) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the residencies at two boxes, or at one, that exist at the same cycle and conflict."""
    if one is other:
        yield from _within(one.written)
    else:
        yield from _between(one.written, other.written)
        yield from _between(one.initial, other.written)
    yield from _between(one.written, other.initial)


def _within(residencies: list[Residency]) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    alive: list[tuple[Cycles, ResidencyIdx]] = []
    for later in residencies:
        for earlier in _still_there(alive, later.start):
            yield earlier, later.index
        heappush(alive, (later.end, later.index))


def _between(
    ones: list[Residency], others: list[Residency]
) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    if not ones or not others:
        return
    alive: tuple[list[tuple[Cycles, ResidencyIdx]], ...] = ([], [])
    merged = [(each, 0) for each in ones] + [(each, 1) for each in others]
    merged.sort(key=lambda item: (item[0].start, item[0].index))
    for later, side in merged:
        for earlier in _still_there(alive[1 - side], later.start):
            yield earlier, later.index
        heappush(alive[side], (later.end, later.index))


def _still_there(alive: list[tuple[Cycles, ResidencyIdx]], cycle: Cycles) -> list[ResidencyIdx]:
    """Drop what has ended by a cycle from a heap by ends, and return the rest by index."""
    while alive and alive[0][0] <= cycle:
        heappop(alive)
    return sorted(index for _, index in alive)


def _box_in_tensor(case: Case, slice_: SliceIdx) -> Box:
    """Return the elements of the tensor at which a slice of a placed buffer lies."""
    part = case.problem.slices[slice_]
    place = case.problem.buffers[part.buffer].place
    start = part.start if place is None else tuple(map(add, place.start, part.start))
    return tuple((first, first + count) for first, count in zip(start, part.extent, strict=True))


def _is_written(residency: Residency) -> bool:
    return residency.filled_by_task is not None or residency.filled_by_transfer is not None


def _share_elements(one: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


class Rectangle(NamedTuple):
    """The bytes ``[low, high)`` during the cycles ``[start, end)``; ``key`` says whose."""

    low: Bytes
    high: Bytes
    key: int
    start: Cycles
    end: Cycles


def overlapping_pairs(rectangles: Iterable[Rectangle]) -> Iterator[tuple[int, int]]:
    """Yield the keys of each two that overlap, the one that starts earlier first.

    The rectangles alive at a cycle are kept in two lists: one whose members are disjoint, so that
    those a new one meets are found by bisection, and one of those that met a member of it when they
    started. Where overlaps are rare the second is short, and the sweep takes ``n log n`` steps.
    """
    items = sorted(rectangles, key=attrgetter("start", "key"))
    ending = sorted(items, key=attrgetter("end", "key"))
    alive = _Alive()
    ended = 0
    for item in items:
        while ending[ended].end <= item.start:
            alive.remove(ending[ended])
            ended += 1
        met = alive.met_by(item)
        for earlier in met:
            yield earlier.key, item.key
        alive.add(item, met)


class _Alive:
    """The rectangles alive at one cycle."""

    def __init__(self) -> None:
        self._disjoint: list[Rectangle] = []
        self._others: dict[int, Rectangle] = {}

    def met_by(self, item: Rectangle) -> list[Rectangle]:
        """Return those that share bytes with a new one, in order of bytes, then of key."""
        met = self._disjoint_met_by(item)
        if self._others:
            met += [other for other in self._others.values() if _meet(other, item)]
            met.sort()
        return met

    def add(self, item: Rectangle, met: list[Rectangle]) -> None:
        """Add one that starts and meets these."""
        if all(other.key in self._others for other in met):
            insort(self._disjoint, item)
        else:
            self._others[item.key] = item

    def remove(self, item: Rectangle) -> None:
        """Remove one that ends; what only it kept out of the disjoint list moves there."""
        if self._others.pop(item.key, None) is not None:
            return
        del self._disjoint[bisect_left(self._disjoint, item)]
        freed = [other for other in self._others.values() if _meet(other, item)]
        for other in freed:
            del self._others[other.key]
            self.add(other, self._disjoint_met_by(other))

    def _disjoint_met_by(self, item: Rectangle) -> list[Rectangle]:
        last = position = bisect_left(self._disjoint, item)
        while last < len(self._disjoint) and self._disjoint[last].low < item.high:
            last += 1
        if position > 0 and self._disjoint[position - 1].high > item.low:
            position -= 1
        return self._disjoint[position:last]


def _meet(one: Rectangle, other: Rectangle) -> bool:
    return one.low < other.high and other.low < one.high


def inside_memory(case: Case) -> Iterator[Violation]:
    """Bytes lie below the memory's size, outside reserved ranges, at aligned offsets.

    A residency inside a DRAM tensor is bound by its place instead; its tensor is checked.
    """
    for residency in case.plan.residencies:
        if case.home[residency.index] is None:
            memory = case.machine.memories[residency.memory]
            who = case.residency(residency.index)
            for defect in _defects(memory, residency.offset, residency.bytes):
                message = f"{who}: {defect} at cycle {residency.start}"
                yield Violation("inside_memory", (who, memory.name), message)
    for tensor, address in zip(case.problem.tensors, case.plan.tensors, strict=True):
        memory = case.machine.memories[tensor.memory]
        who = f"tensor {tensor.index} ({tensor.name})"
        for defect in _defects(memory, address, tensor.bytes):
            yield Violation("inside_memory", (who, memory.name), f"{who}: {defect}")


def exact_size(case: Case) -> Iterator[Violation]:
    """A residency has the bytes of its slice."""
    for residency in case.plan.residencies:
        if residency.slice is None:
            continue
        size = case.problem.slices[residency.slice].bytes
        if residency.bytes != size:
            who, what = case.residency(residency.index), case.slice(residency.slice)
            message = f"{who} has {residency.bytes} B, expected {size} B of {what}"
            yield Violation("exact_size", (who, what), message)


def _defects(memory: Memory, offset: Bytes, size: Bytes) -> Iterator[str]:
    end = offset + size
    if memory.size is not None and end > memory.size:
        yield f"{end} B > {memory.size} B of {memory.name}"
    if offset % memory.alignment:
        yield f"offset {offset} B is no multiple of {memory.alignment} B in {memory.name}"
    for taken in memory.reserved:
        if offset < taken.end and taken.start < end:
            yield (
                f"bytes [{offset}, {end}) meet the reserved [{taken.start}, {taken.end}) of "
                f"{memory.name}"
            )


ENOUGH = 10_000
"""Pairs looked at beyond those that the problem permits; so many are all forbidden ones."""


def shared_bytes(case: Case) -> Iterator[Violation]:
    """Residencies alive in the same cycle occupy disjoint bytes, unless one replaces the other.

    ``no_shared_bytes`` forbids the pairs that the problem does not permit. ``in_place`` says of the
    others, where a task reads the one and writes the other: same offset, only while the task runs,
    and only when nothing else reads the old value after the task has started.
    """
    uses = _uses_of_each(case)
    permitted = sum(len(task.in_place) for task in case.problem.tasks)
    for one, other in islice(_pairs(case), permitted + ENOUGH):
        for old, new in ((one, other), (other, one)):
            placement = _task_in_place(case, old, new)
            if placement is not None:
                for reason in _why_not_in_place(case, old, new, placement, uses.get(old, [])):
                    yield _violation("in_place", case, old, new, f", {reason}")
                break
        else:
            yield _violation("no_shared_bytes", case, one, other, "")


def _pairs(case: Case) -> Iterator[tuple[ResidencyIdx, ResidencyIdx]]:
    """Yield the residencies that share bytes of a memory at some cycle."""
    per_memory: list[list[Rectangle]] = [[] for _ in case.machine.memories]
    for residency, home in zip(case.plan.residencies, case.home, strict=True):
        if home is None:
            end = residency.offset + residency.bytes
            rectangle = Rectangle(
                residency.offset, end, residency.index, residency.start, residency.end
            )
            per_memory[residency.memory].append(rectangle)
    for rectangles in per_memory:
        yield from overlapping_pairs(rectangles)
    yield from overlapping_boxes(case)


def _task_in_place(case: Case, old: ResidencyIdx, new: ResidencyIdx) -> Placement | None:
    """Return the task that reads all of ``old`` and may write ``new`` in its place, if any."""
    residency = case.plan.residencies[new]
    if residency.filled_by_task is None:
        return None
    placement = case.plan.placements[residency.filled_by_task]
    task, held = case.problem.tasks[placement.task], case.plan.residencies[old].slice
    if held not in task.reads or placement.reads[task.reads.index(held)] != old:
        return None
    if new not in placement.writes or (held, residency.slice) not in task.in_place:
        return None
    return placement


def _uses_of_each(case: Case) -> dict[ResidencyIdx, list[Use]]:
    uses: dict[ResidencyIdx, list[Use]] = {}
    for use in (*case.task_uses, *case.transfer_uses):
        uses.setdefault(use.residency, []).append(use)
    return uses


def _why_not_in_place(
    case: Case, old: ResidencyIdx, new: ResidencyIdx, placement: Placement, uses: list[Use]
) -> Iterator[str]:
    before, after = case.plan.residencies[old], case.plan.residencies[new]
    task = case.problem.tasks[placement.task]
    who = case.task(task.index)
    if before.offset != after.offset:
        yield f"in place at offset {after.offset} B, expected {before.offset} B"
    first, last = _shared_cycles(before, after)
    if first < placement.start or last > placement.end:
        yield f"expected only while {who} runs, in [{placement.start}, {placement.end})"
    for use in uses:
        own = use.kind == "task" and use.number == task.index
        if own and use.slice != before.slice:
            yield f"but {who} also reads {case.slice(use.slice)} there"
        elif not own and use.end > placement.start:
            yield (
                f"but {case.user(use)} reads the old value until cycle {use.end} > "
                f"{placement.start}, the start of {who}"
            )


def _shared_cycles(one: Residency, other: Residency) -> tuple[int, int]:
    return max(one.start, other.start), min(one.end, other.end)


def _violation(
    rule: str, case: Case, one: ResidencyIdx, other: ResidencyIdx, detail: str
) -> Violation:
    a, b = case.plan.residencies[one], case.plan.residencies[other]
    low, high = max(a.offset, b.offset), min(a.offset + a.bytes, b.offset + b.bytes)
    first, last = _shared_cycles(a, b)
    what = f"share {high - low} B [{low}, {high})"
    if case.home[one] is not None:
        what = "share elements of a tensor"
    names = case.residency(one), case.residency(other)
    message = f"{names[0]} and {names[1]} {what} during cycles [{first}, {last}){detail}"
    return Violation(rule, names, message)


def at_its_place(case: Case) -> Iterator[Violation]:
    """Whatever has a place in a tensor of this DRAM lies there."""
    for residency, home in zip(case.plan.residencies, case.home, strict=True):
        if home is None or residency.slice is None:
            continue
        address, _ = case.where(residency.slice, residency.index)
        if residency.offset != address:
            who = case.residency(residency.index)
            tensor = case.problem.tensors[home]
            yield Violation(
                "at_its_place",
                (who, f"tensor {home} ({tensor.name})"),
                f"{who} lies at address {residency.offset}, expected {address}, its place in "
                f"tensor {tensor.name} at {case.plan.tensors[home]}",
            )


def dram_tensors(case: Case) -> Iterator[Violation]:
    """DRAM tensors share no bytes with each other, nor with anything that has no place in them."""
    for memory in case.machine.memories:
        ranges = sorted(
            (address, address + tensor.bytes, tensor.index)
            for tensor, address in zip(case.problem.tensors, case.plan.tensors, strict=True)
            if tensor.memory == memory.index
        )
        if ranges:
            yield from _tensors_that_overlap(case, memory, ranges)
            yield from _residencies_inside(case, memory, ranges)


def _tensors_that_overlap(
    case: Case, memory: Memory, ranges: list[tuple[Bytes, Bytes, int]]
) -> Iterator[Violation]:
    last: tuple[Bytes, Bytes, int] | None = None
    for start, end, index in ranges:
        if last is not None and start < last[1]:
            first = f"tensor {last[2]} ({case.problem.tensors[last[2]].name})"
            second = f"tensor {index} ({case.problem.tensors[index].name})"
            yield Violation(
                "dram_tensors",
                (first, second, memory.name),
                f"{second} begins at byte {start} < {last[1]} of {memory.name}, the end of {first}",
            )
        if last is None or end > last[1]:
            last = (start, end, index)


def _residencies_inside(
    case: Case, memory: Memory, ranges: list[tuple[Bytes, Bytes, int]]
) -> Iterator[Violation]:
    """Find residencies without a place whose bytes some tensor has."""
    starts = [start for start, _, _ in ranges]
    for residency in case.plan.residencies:
        if residency.memory != memory.index or case.home[residency.index] is not None:
            continue
        nearest = bisect_right(starts, residency.offset + residency.bytes - 1) - 1
        if nearest >= 0 and ranges[nearest][1] > residency.offset:
            start, end, index = ranges[nearest]
            who = case.residency(residency.index)
            tensor = f"tensor {index} ({case.problem.tensors[index].name})"
            yield Violation(
                "dram_tensors",
                (who, tensor, memory.name),
                f"{who} lies at [{residency.offset}, {residency.offset + residency.bytes}), "
                f"but {tensor} has "
                f"[{start}, {end}) of {memory.name}",
            )
