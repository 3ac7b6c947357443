"""Who touched which bytes of one memory last."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from spmilp.units import Bytes

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
