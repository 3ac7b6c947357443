"""Which of several equal cores or channels serves what: a colouring of intervals."""

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush

from spmilp.units import Cycles


def least_free_numbers(intervals: Iterable[tuple[int, Cycles, Cycles]]) -> list[int]:
    """Give each interval ``(owner, start, end)`` the least number free among its owner's.

    Taken by start, intervals of one owner of which at most ``c`` overlap get the numbers below
    ``c``, and no two that overlap get the same.
    """
    rows = list(intervals)
    numbers = [0] * len(rows)
    busy: dict[int, list[tuple[Cycles, int]]] = defaultdict(list)
    idle: dict[int, list[int]] = defaultdict(list)
    for index in sorted(range(len(rows)), key=lambda i: (rows[i][1], i)):
        owner, start, end = rows[index]
        running, free = busy[owner], idle[owner]
        while running and running[0][0] <= start:
            heappush(free, heappop(running)[1])
        # Without a free number those in use are all below their count.
        number = heappop(free) if free else len(running)
        heappush(running, (end, number))
        numbers[index] = number
    return numbers
