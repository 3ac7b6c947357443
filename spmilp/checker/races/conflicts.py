"""The rules ``race`` and ``task_order``: accesses that conflict are ordered, as in the plan."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import add

import numpy as np

from spmilp.checker.races.execution import Execution, ProgramPoint
from spmilp.checker.races.structure import command_name
from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.commands.commands import Move, Run
from spmilp.problem.strides import Layout, footprint
from spmilp.units import Box, Bytes, Cycles, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write of bytes, or of a box of a tensor where ``box`` is set.

    Bytes are ``[low, high)`` of the memory; for a box, from its first to its last.
    """

    residency: ResidencyIdx
    memory: MemoryIdx
    low: Bytes
    high: Bytes
    tensor: TensorIdx | None
    box: Box
    writes: bool


def accesses_of_task(case: Case, task: int) -> Iterator[Access]:
    """Yield what a task reads, then what it writes, scratch included."""
    placement, given = case.plan.placements[task], case.problem.tasks[task]
    for slice_, index in zip(given.reads, placement.reads, strict=True):
        yield _access(case, slice_, index, writes=False)
    for buffer, index in zip(given.writes, placement.writes, strict=True):
        yield _access(case, buffer, index, writes=True)
    if placement.scratch is not None:
        residency = case.plan.residencies[placement.scratch]
        end = residency.offset + residency.bytes
        yield Access(
            residency.index, residency.memory, residency.offset, end, None, (), writes=True
        )


def accesses_of_transfer(case: Case, transfer: int) -> Iterator[Access]:
    """Yield what a transfer reads, then what it writes."""
    move = case.plan.transfers[transfer]
    yield _access(case, move.slice, move.source, writes=False)
    for residency in move.destinations:
        yield _access(case, move.slice, residency, writes=True)


def boxes_touched(case: Case) -> dict[TensorIdx, list[Box]]:
    """Return the different boxes that anybody touches of each tensor that somebody writes."""
    written = {
        home
        for residency, home in zip(case.plan.residencies, case.home, strict=True)
        if home is not None
        and (residency.filled_by_task is not None or residency.filled_by_transfer is not None)
    }
    found: dict[TensorIdx, dict[Box, None]] = {tensor: {} for tensor in sorted(written)}
    pairs = [(move.slice, end) for move in case.plan.transfers for end in move.destinations]
    pairs += [(use.slice, use.residency) for use in (*case.task_uses, *case.transfer_uses)]
    for placement in case.plan.placements:
        pairs += zip(case.problem.tasks[placement.task].writes, placement.writes, strict=True)
    for slice_, index in pairs:
        home = case.home[index]
        if home in found:
            found[home][_access(case, slice_, index, writes=True).box] = None
    return {tensor: list(boxes) for tensor, boxes in found.items()}


def _access(case: Case, slice_: SliceIdx, residency: ResidencyIdx, *, writes: bool) -> Access:
    part, home = case.problem.slices[slice_], case.home[residency]
    memory = case.plan.residencies[residency].memory
    low, strides = case.where(slice_, residency)
    buffer = case.problem.buffers[part.buffer]
    high = low + footprint(part.extent, buffer.item, Layout(0, strides))
    box: Box = ()
    if home is not None and buffer.place is not None:
        first = map(add, buffer.place.start, part.start)
        box = tuple((start, start + n) for start, n in zip(first, part.extent, strict=True))
    return Access(residency, memory, low, high, home, box, writes)


@dataclass(frozen=True, slots=True)
class Touch:
    """An access by a task or transfer: who, where in the lists, and when in the plan."""

    command: Run | Move
    point: ProgramPoint
    start: Cycles
    end: Cycles
    access: Access


@dataclass(slots=True)
class Cell:
    """Bytes that were touched alike: who wrote them last, and who in each list read them since."""

    writer: Touch | None = None
    readers: dict[int, Touch] = field(default_factory=dict)


class ByteShadow:
    """The bytes of one memory: cells side by side, cut where an access begins or ends."""

    def __init__(self) -> None:
        self._starts: list[Bytes] = []
        self._cells: dict[Bytes, Cell] = {}

    def cells(self, low: Bytes, high: Bytes) -> list[Cell]:
        """Return the cells of ``[low, high)``; together they are exactly these bytes."""
        self._cut(low)
        self._cut(high)
        between = slice(bisect_left(self._starts, low), bisect_left(self._starts, high))
        return [self._cells[start] for start in self._starts[between]]

    def renew(self, low: Bytes, high: Bytes, writer: Touch) -> None:
        """Make one cell of bytes that have been written."""
        self._cut(low)
        self._cut(high)
        between = slice(bisect_left(self._starts, low) + 1, bisect_left(self._starts, high))
        for start in self._starts[between]:
            del self._cells[start]
        del self._starts[between]
        self._cells[low] = Cell(writer)

    def _cut(self, at: Bytes) -> None:
        """Let a cell begin at a byte; what lies behind the last cut is one cell."""
        if at in self._cells:
            return
        place = bisect_left(self._starts, at)
        left = self._cells[self._starts[place - 1]] if place else Cell()
        self._starts.insert(place, at)
        self._cells[at] = Cell(left.writer, dict(left.readers))


class BoxShadow:
    """The elements of one tensor: a cell for each different box that anybody touches."""

    def __init__(self, boxes: list[Box]) -> None:
        self._cells = {box: Cell() for box in boxes}
        self._boxes = list(self._cells)
        self._lows = np.array([[low for low, _ in box] for box in self._boxes], dtype=np.int64)
        self._highs = np.array([[high for _, high in box] for box in self._boxes], dtype=np.int64)
        self._met: dict[Box, list[Box]] = {}

    def own(self, box: Box) -> Cell:
        """Return the cell of a box."""
        return self._cells[box]

    def cells(self, box: Box) -> list[Cell]:
        """Return the cells of all boxes that share elements with a box, itself included."""
        if box not in self._met:
            low, high = np.array(box, dtype=np.int64).reshape(-1, 2).T
            meet = ((self._lows < high) & (low < self._highs)).all(axis=1)
            self._met[box] = [self._boxes[index] for index in np.flatnonzero(meet)]
        return [self._cells[other] for other in self._met[box]]

    def renew(self, box: Box, writer: Touch) -> None:
        """Note that a box has been written."""
        self._cells[box].writer = writer
        self._cells[box].readers.clear()


class Conflicts:
    """Looks at tasks and transfers as they start, and says with what they are not ordered.

    It is enough to compare an access with the last write of its bytes and the reads since: if these
    are ordered as in the plan, so are all before them. Tensors that nobody writes are left out.
    """

    def __init__(self, case: Case, execution: Execution) -> None:
        self._case = case
        self._execution = execution
        self._bytes = [ByteShadow() for _ in case.machine.memories]
        self._boxes = {tensor: BoxShadow(boxes) for tensor, boxes in boxes_touched(case).items()}
        self._tasks: dict[int, ProgramPoint] = {}

    def at_start(self, point: ProgramPoint, command: Run | Move) -> Iterator[Violation]:
        """Yield what is wrong when a task or transfer starts, and note its accesses."""
        if isinstance(command, Run):
            yield from self._task_order(command.task, point)
            self._tasks[command.task] = point
            accesses = accesses_of_task(self._case, command.task)
        else:
            accesses = accesses_of_transfer(self._case, command.transfer)
        for access in accesses:
            touch = self._touch(point, command, access)
            for cell in self._cells(access):
                yield from self._with_cell(touch, cell)
            self._note(touch)

    def _touch(self, point: ProgramPoint, command: Run | Move, access: Access) -> Touch:
        planned = (
            self._case.plan.placements[command.task]
            if isinstance(command, Run)
            else self._case.plan.transfers[command.transfer]
        )
        return Touch(command, point, planned.start, planned.end, access)

    def _task_order(self, task: int, now: ProgramPoint) -> Iterator[Violation]:
        for earlier in self._case.problem.tasks[task].after:
            done = self._tasks.get(earlier)
            if done is None or not self._execution.precedes(done, now):
                first, second = self._case.task(earlier), self._case.task(task)
                message = f"nothing keeps {second} from starting before {first} has ended"
                yield Violation("task_order", (second, first), message)

    def _cells(self, access: Access) -> list[Cell]:
        if access.tensor is None:
            return self._bytes[access.memory].cells(access.low, access.high)
        shadow = self._boxes.get(access.tensor)
        return [] if shadow is None else shadow.cells(access.box)

    def _note(self, touch: Touch) -> None:
        access = touch.access
        if access.tensor is None:
            where = self._bytes[access.memory]
            if access.writes:
                where.renew(access.low, access.high, touch)
            else:
                for cell in where.cells(access.low, access.high):
                    cell.readers[touch.point.list] = touch
        elif access.tensor in self._boxes:
            if access.writes:
                self._boxes[access.tensor].renew(access.box, touch)
            else:
                self._boxes[access.tensor].own(access.box).readers[touch.point.list] = touch

    def _with_cell(self, touch: Touch, cell: Cell) -> Iterator[Violation]:
        others = [] if cell.writer is None else [cell.writer]
        if touch.access.writes:
            others += cell.readers.values()
        for other in others:
            if other.point == touch.point:
                continue
            if not self._execution.precedes(other.point, touch.point):
                yield self._violation(other, touch, "and neither waits for the other")
            elif other.end > touch.start:
                why = (
                    f"in this order, but the plan ends the first at cycle {other.end} > "
                    f"{touch.start}, the start of the second"
                )
                yield self._violation(other, touch, why)

    def _violation(self, other: Touch, touch: Touch, why: str) -> Violation:
        memory = self._case.memory(touch.access.memory)
        names = command_name(self._case, other.command), command_name(self._case, touch.command)
        first, second = (self._describe(each.access) for each in (other, touch))
        message = f"{names[0]} {first} and {names[1]} {second} of {memory}, {why}"
        return Violation("race", (*names, memory), message)

    def _describe(self, access: Access) -> str:
        verb = "writes" if access.writes else "reads"
        part = "" if access.tensor is None else "elements in "
        return f"{verb} {part}[{access.low}, {access.high})"
