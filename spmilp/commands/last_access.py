"""The last writer and the later readers of a memory's bytes, and of a tensor's elements."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from spmilp.units import Box, Bytes

NOBODY = -1


class Intervals:
    """The bytes of a memory in disjoint intervals, each with its last writer and later readers.

    Activities come in an order in which each precedes whatever must follow it. Of the readers in
    one list only the last is kept: the list puts the others before it. A write makes one interval
    of all that it covers, so that the number of intervals grows with what lies in the memory at
    one time and not with the length of the plan.
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

    def write(self, activity: int, low: Bytes, high: Bytes) -> Iterator[int]:
        """Note a write; yield the readers that it must come after, or the writer where none is."""
        first, end = self._cut(low), self._cut(high)
        for at in range(first, end):
            if self._readers[at]:
                yield from self._readers[at].values()
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
        self._overlapping: dict[Box, list[Box]] = {box: [box] for box in distinct}
        for one, other in _overlapping_pairs(distinct):
            self._overlapping[one].append(other)
            self._overlapping[other].append(one)
        self._writer = dict.fromkeys(distinct, NOBODY)
        self._readers: dict[Box, dict[int, int]] = {box: {} for box in distinct}

    def read(self, activity: int, of_list: int, box: Box) -> Iterator[int]:
        """Note a read; yield the writers that it must come after."""
        for other in self._overlapping[box]:
            if self._writer[other] != NOBODY:
                yield self._writer[other]
        self._readers[box][of_list] = activity

    def write(self, activity: int, box: Box) -> Iterator[int]:
        """Note a write; yield the readers and writers that it must come after."""
        for other in self._overlapping[box]:
            yield from self._readers[other].values()
            if self._writer[other] != NOBODY:
                yield self._writer[other]
        self._writer[box] = activity
        self._readers[box] = {}


def _overlapping_pairs(boxes: list[Box]) -> Iterator[tuple[Box, Box]]:
    """Sweep along the axis that has the most different beginnings."""
    axes = range(len(boxes[0])) if boxes else range(0)
    axis = max(axes, key=lambda a: (len({box[a] for box in boxes}), -a), default=None)
    if axis is None:
        return
    alive: list[Box] = []
    for box in sorted(boxes, key=lambda each: (each[axis], each)):
        alive = [other for other in alive if other[axis][1] > box[axis][0]]
        for other in alive:
            if all(a < d and c < b for (a, b), (c, d) in zip(other, box, strict=True)):
                yield other, box
        alive.append(box)
