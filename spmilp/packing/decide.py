"""One instance, any capacity: runs of the search until there are offsets or a proof."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spmilp.packing.arrays import Ints, Tables
from spmilp.packing.heuristics import Keys, keys_of, order_by
from spmilp.packing.instance import Instance
from spmilp.packing.result import LIMITS, Clock, PackingOptions
from spmilp.packing.search import Outcome, Question, Run, questions_of, tables_of

ORDERS = (
    ("length", "area", "occupancy"),
    ("occupancy", "area", "length"),
    ("occupancy", "length", "area"),
)
"""The rotation of MiniMalloc (its WAT, TAW and TWA)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is known about one capacity.

    ``offsets`` are in units, of the free items, when packed; ``part`` has free items that cannot be
    packed together, when exhausted.
    """

    outcome: Outcome
    offsets: Ints | None = None
    part: Ints | None = None


class PartSearch:
    """Everything tried on one part of an instance at one capacity.

    Short runs with a low limit learn from their failures which sections are hard: restarts with
    such weights shorten the long tail of run times (Gomes, Selman, Kautz: AAAI 1998). Every now and
    then a long run takes its share of nodes with what was learnt; long runs double their limit, so
    that one of them ends with a packing or a proof. What was learnt may mislead and is forgotten
    after many nodes, as if with another seed. All runs share the states that are known to fail.
    """

    def __init__(self, asked: Question, keys: Keys, seed: int, clock: Clock) -> None:
        self._question, self._keys, self._clock = asked, keys, clock
        self._random = np.random.default_rng(seed)
        self._nodes = self._started = 0
        self._slices = self._restarts()
        self.items = asked.items
        self.outcome = Outcome.PAUSED
        self.offsets: Ints | None = None

    def advance(self) -> None:
        """Search on for about a slice of nodes."""
        if self._clock.is_up:
            return
        left = self._clock.nodes_left
        target = self._nodes + (LIMITS.slice if left is None else min(LIMITS.slice, left))
        while self.outcome is Outcome.PAUSED and self._nodes < target:
            next(self._slices)

    def _restarts(self) -> Iterator[None]:
        first = float(LIMITS.short_run * self.items.size)
        limit, long_limit = first, LIMITS.first_long_run * first
        long_share = noise = 0.0
        forgets_at = LIMITS.forgets_after
        weight = np.zeros(self._question.tables.outline.units.size, dtype=np.int64)
        while True:
            if self._nodes >= forgets_at:
                limit = first
                weight[:] = 0
                forgets_at += LIMITS.forgets_after
            before = self._nodes
            for _ in ORDERS:
                yield from self._run(noise, int(limit), weight)
            limit *= LIMITS.growth
            noise = LIMITS.noise
            long_share += LIMITS.long_share * (self._nodes - before)
            if long_share >= long_limit:
                # The long run keeps its own weights, the copy it starts with.
                yield from self._run(noise, int(long_limit), weight.copy())
                long_share -= long_limit
                long_limit *= 2

    def _run(self, noise: float, limit: int, weight: Ints) -> Iterator[None]:
        """Start a run and carry it on to its limit, slice by slice."""
        order = order_by(self._keys, ORDERS[self._started % len(ORDERS)], noise, self._random)
        if self.items.size < order.size:
            order = order[np.isin(order, self.items)]
        self._started += 1
        self._clock.restarts += 1
        run = Run(self._question, order, weight)
        while run.nodes < limit and self.outcome is Outcome.PAUSED:
            before = run.nodes
            self.outcome = run.advance(min(limit - before, LIMITS.slice))
            self._nodes += run.nodes - before
            self._clock.nodes += run.nodes - before
            self.offsets = run.offsets if self.outcome is Outcome.PACKED else None
            yield


class Decider:
    """Decides whether an instance fits, at one capacity or several, and keeps what it tried."""

    def __init__(self, instance: Instance, options: PackingOptions, clock: Clock) -> None:
        self._instance, self._options, self._clock = instance, options, clock
        self._searches: dict[int, tuple[PartSearch, ...]] = {}

    @cached_property
    def tables(self) -> Tables | None:
        """The search's arrays; ``None`` when the instance is too large for it."""
        return tables_of(self._instance)

    def decide(self, capacity: int, nodes: int | None = None) -> Verdict:
        """Work on one capacity, in bytes, for about ``nodes`` nodes on each part, or to the end.

        What was tried is dropped once the capacity is decided.
        """
        if self.tables is None:
            return Verdict(outcome=Outcome.PAUSED)
        if capacity not in self._searches:
            keys = keys_of(self._instance)
            self._searches[capacity] = tuple(
                PartSearch(question, keys, self._options.seed, self._clock)
                for question in questions_of(self._instance, self.tables, capacity)
            )
        searches, spent = self._searches[capacity], 0
        while not self._clock.is_up and (nodes is None or spent < nodes):
            undecided = [one for one in searches if one.outcome is Outcome.PAUSED]
            if not undecided:
                break
            # Short slices: a part that is impossible ends the matter, however hard another is.
            for one in undecided:
                one.advance()
                if one.outcome is Outcome.EXHAUSTED:
                    del self._searches[capacity]
                    return Verdict(outcome=Outcome.EXHAUSTED, part=one.items)
            spent += LIMITS.slice
        if any(one.outcome is Outcome.PAUSED for one in searches):
            return Verdict(outcome=Outcome.PAUSED)
        del self._searches[capacity]
        offsets = np.zeros(self._instance.count, dtype=np.int64)
        for one in searches:
            if one.offsets is not None:
                offsets[one.items] = one.offsets[one.items]
        return Verdict(outcome=Outcome.PACKED, offsets=offsets)
