"""What is busy in a period: cores and channels for one thing at a time, links up to their rates."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spmilp.units import Cycles


class Busy(NamedTuple):
    """Cycles of an activity, from its start on, in which it holds an amount of a resource."""

    resource: int
    start: Cycles
    end: Cycles
    amount: int


class Reservations:
    """A modulo reservation table (Rau, MICRO 1994), as lists of intervals: periods are long.

    ``capacity`` is that of each resource; amounts and capacities have one unit.
    """

    def __init__(self, capacity: list[int], period: Cycles) -> None:
        self._capacity = capacity
        self._period = period
        self._held: list[list[tuple[Cycles, Cycles, int]]] = [[] for _ in capacity]
        self._longest = [0] * len(capacity)

    def hold(self, start: Cycles, some: Sequence[Busy]) -> None:
        """Reserve for an activity that starts at a cycle."""
        for busy in some:
            for turn in self._turns(start + busy.start, start + busy.end):
                insort(self._held[busy.resource], (*turn, busy.amount))
            length = busy.end - busy.start
            self._longest[busy.resource] = max(self._longest[busy.resource], length)

    def release(self, start: Cycles, some: Sequence[Busy]) -> None:
        """Take a reservation back."""
        for busy in some:
            for turn in self._turns(start + busy.start, start + busy.end):
                self._held[busy.resource].remove((*turn, busy.amount))

    def first_from(self, start: Cycles, some: Sequence[Busy]) -> Cycles | None:
        """Return the first cycle from ``start`` on at which all is free; ``None`` without any."""
        at = start
        while at < start + self._period:
            # It meets what is in its way until it starts where that ends.
            steps = [(end - at - one.start) % self._period for one, _, end in self._met(at, some)]
            if not steps:
                return at
            at += max(1, *steps)
        return None

    def last_until(self, start: Cycles, least: Cycles, some: Sequence[Busy]) -> Cycles:
        """Return the last cycle down to ``least``, itself free, at which all is free."""
        at = start
        while at > least:
            steps = [(at + one.end - begin) % self._period for one, begin, _ in self._met(at, some)]
            if not steps:
                return at
            at -= max(1, *steps)
        return least

    def _met(self, at: Cycles, some: Sequence[Busy]) -> Iterator[tuple[Busy, Cycles, Cycles]]:
        """Yield what is in the way of an activity at a cycle, one interval for each resource."""
        length = self._period
        for one in some:
            if one.end - one.start > length:
                yield one, at + one.end - 1, at + one.start + length - 1
                continue
            for turn in self._turns(at + one.start, at + one.end):
                found = self._overload(one, *turn)
                if found is not None:
                    yield one, *found
                    break

    def _overload(self, one: Busy, start: Cycles, end: Cycles) -> tuple[Cycles, Cycles] | None:
        """Return the interval to end first of those that leave too little for one more."""
        held = self._held[one.resource]
        room = self._capacity[one.resource] - one.amount
        # What begins more than the longest one before cannot reach it.
        first = bisect_left(held, (start - self._longest[one.resource],))
        there = [each for each in held[first : bisect_left(held, (end,))] if start < each[1]]
        for begins, _, _ in there:
            at = max(begins, start)
            together = [each for each in there if each[0] <= at < each[1]]
            if sum(amount for _, _, amount in together) > room:
                begin, until, _ = min(together, key=lambda each: each[1])
                return begin, until
        return None

    def _turns(self, start: Cycles, end: Cycles) -> Iterator[tuple[Cycles, Cycles]]:
        """Yield the cycles of the period that ``[start, end)`` covers, cut where it wraps."""
        first = start % self._period
        last = first + end - start
        if first < last:
            yield first, min(last, self._period)
        if last > self._period:
            yield 0, last - self._period
