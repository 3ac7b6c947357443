"""When a DMA engine had no channel left, and a link not enough of its rate."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from spmilp.analysis.subject import Subject
from spmilp.commands.order import Activity
from spmilp.plan.plan import Transfer
from spmilp.units import Cycles


class Freed(NamedTuple):
    """The cycle from which on enough of a resource is free, and the activity whose end freed it."""

    at: Cycles
    by: Activity


class Load:
    """What is taken of one resource over time, as a step function.

    Parameters
    ----------
    uses
        ``(activity, start, end, amount)`` of everything that takes some of it.
    """

    def __init__(self, uses: Iterable[tuple[Activity, Cycles, Cycles, int]]) -> None:
        changes: defaultdict[Cycles, int] = defaultdict(int)
        self._ended: dict[Cycles, Activity] = {}
        for activity, start, end, amount in uses:
            changes[start] += amount
            changes[end] -= amount
            self._ended.setdefault(end, activity)
        self._cycles = sorted(changes)
        self._levels: list[int] = []
        self._above: dict[int, list[int]] = {}
        level = 0
        for cycle in self._cycles:
            level += changes[cycle]
            self._levels.append(level)

    def free_since(self, start: Cycles, most: int, not_before: Cycles) -> Freed | None:
        """Find since when no more than ``most`` of it was taken, up to ``start``.

        Returns
        -------
        Freed or None
            ``None`` if that has been so since ``not_before``.
        """
        position = bisect_left(self._cycles, start)
        latest = self._last_above(most)[position] if position else 0
        if not latest or self._cycles[latest] <= not_before:
            return None
        cycle = self._cycles[latest]
        return Freed(cycle, self._ended[cycle])

    def _last_above(self, most: int) -> list[int]:
        """For each position, the last up to it before which more than ``most`` was taken; or 0."""
        if most not in self._above:
            levels = [0, *self._levels]
            marks = (at if level > most else 0 for at, level in enumerate(levels))
            self._above[most] = list(accumulate(marks, max))
        return self._above[most]


class Resources:
    """The loads of all engines and links under one plan."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        machine = subject.problem.machine
        first = len(subject.plan.placements)
        of_engines: list[list[tuple[Activity, Cycles, Cycles, int]]] = [[] for _ in machine.engines]
        of_links: list[list[tuple[Activity, Cycles, Cycles, int]]] = [[] for _ in machine.links]
        for move in subject.plan.transfers:
            activity, held = first + move.index, subject.held_rates[move.index]
            of_engines[move.engine].append((activity, move.start, move.end, 1))
            for link in move.route:
                of_links[link].append((activity, move.start, move.end, held))
        self._engines = [Load(uses) for uses in of_engines]
        self._links = [Load(uses) for uses in of_links]

    def channel_free(self, move: Transfer, not_before: Cycles) -> Freed | None:
        """Find since when the engine of a transfer has had a channel for it."""
        channels = self._subject.problem.machine.engines[move.engine].channels
        return self._engines[move.engine].free_since(move.start, channels - 1, not_before)

    def link_free(self, move: Transfer, link: int, not_before: Cycles) -> Freed | None:
        """Find since when a link of a transfer's route has had the rate that it holds."""
        most = self._subject.link_rates[link] - self._subject.held_rates[move.index]
        return self._links[link].free_since(move.start, most, not_before)
