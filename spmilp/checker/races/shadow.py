"""Who touched the bytes of a memory, or the elements of a DRAM tensor, while the lists run."""

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from spmilp.checker.races.accesses import Access
from spmilp.checker.races.execution import Spot
from spmilp.commands.commands import Move, Run
from spmilp.units import Box, Bytes, Cycles


@dataclass(frozen=True, slots=True)
class Touch:
    """An access by a task or transfer: who, where in the lists, and when in the plan."""

    command: Run | Move
    spot: Spot
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
