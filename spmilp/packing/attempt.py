"""The search with restarts: short runs that learn where it is hard, and long ones that finish."""

from collections.abc import Iterator

import numpy as np

from spmilp.packing.orders import Keys, order_by
from spmilp.packing.search.arrays import Given, Ints, Memo
from spmilp.packing.search.run import Outcome, Part, Run

ORDERS = (
    ("length", "area", "crowd"),
    ("crowd", "area", "length"),
    ("crowd", "length", "area"),
)
"""The rotation of MiniMalloc (its WAT, TAW and TWA)."""

FIRST_LIMIT = 2
"""Nodes per item of a short run."""
GROWTH = 1.02
"""By how much each rotation's short runs are longer."""
NOISE = 0.3
"""Spread of the keys from the second rotation on."""
FORGETS_AFTER = 1_200_000
"""Nodes after which weights are forgotten and short runs are short again."""
FIRST_LONG = 64
"""The first long run has as many nodes as this many short ones."""
LONG_SHARE = 0.25
"""Nodes of long runs, in nodes of short ones."""


class Attempt:
    """One part of an instance at one capacity; the work can be cut into slices.

    Short runs with a low limit learn from their failures which sections are hard: restarts with
    such weights shorten the long tail of run times (Gomes, Selman, Kautz: AAAI 1998). Every now and
    then a long run takes its share of nodes with what was learnt; long runs double their limit, so
    that one of them ends with a packing or a proof. What was learnt may mislead and is forgotten
    after many nodes, as if with another seed. All runs share what they know to fail.
    """

    def __init__(
        self,
        *,
        given: Given,
        part: Part,
        keys: Keys,
        latest: Ints,
        capacity: int,
        rules: int,
        seed: int,
        memo: Memo,
    ) -> None:
        self._given = given
        self._part = part
        self._keys = keys
        self._latest = latest
        self._capacity = capacity
        self._rules = rules
        self._random = np.random.default_rng(seed)
        self._weight = np.zeros(given.units.size, dtype=np.int64)
        self._memo = memo
        self._slices = self._work()
        self.outcome = Outcome.PAUSED
        self.offsets: Ints | None = None
        self.nodes = 0
        self.restarts = 0
        self.memo_hits = 0

    def advance(self, nodes: int) -> Outcome:
        """Work on for about ``nodes`` nodes, or until it is decided."""
        target = self.nodes + nodes
        while self.outcome is Outcome.PAUSED and self.nodes < target:
            next(self._slices)
        return self.outcome

    def _work(self) -> Iterator[None]:
        first = float(FIRST_LIMIT * self._part.items.size)
        long_limit = FIRST_LONG * first
        long_share = 0.0
        noise = 0.0
        limit = first
        forgets_at = FORGETS_AFTER
        while True:
            if self.nodes >= forgets_at:
                limit = first
                self._weight[:] = 0
                forgets_at += FORGETS_AFTER
            before = self.nodes
            for _ in ORDERS:
                yield from self._run(noise, int(limit), self._weight)
            limit *= GROWTH
            noise = NOISE
            long_share += LONG_SHARE * (self.nodes - before)
            if long_share >= long_limit:
                # The long run keeps its own weights, the copy it starts with.
                yield from self._run(noise, int(long_limit), self._weight.copy())
                long_share -= long_limit
                long_limit *= 2

    def _run(self, noise: float, limit: int, weight: Ints) -> Iterator[None]:
        """Start a run and carry it on to its limit, slice by slice."""
        order = order_by(self._keys, ORDERS[self.restarts % len(ORDERS)], noise, self._random)
        self.restarts += 1
        run = Run(
            given=self._given,
            part=self._part,
            order=order[np.isin(order, self._part.items)] if self._is_partial else order,
            weight=weight,
            latest=self._latest,
            capacity=self._capacity,
            rules=self._rules,
            memo=self._memo,
        )
        while run.nodes < limit and self.outcome is Outcome.PAUSED:
            before, hits = run.nodes, run.memo_hits
            self.outcome = run.advance(min(limit - run.nodes, SLICE))
            self.nodes += run.nodes - before
            self.memo_hits += run.memo_hits - hits
            if self.outcome is Outcome.PACKED:
                self.offsets = run.offsets
            yield

    @property
    def _is_partial(self) -> bool:
        return self._part.items.size < self._given.units.size


SLICE = 20_000
"""Nodes between two looks at the clock."""


def parts_of(given: Given) -> tuple[Part, ...]:
    """Cut an instance where no item ties the two sides together."""
    sections = given.member_start.size - 1
    spanning = np.zeros(sections + 1, dtype=np.int64)
    np.add.at(spanning, given.hull_from + 1, 1)
    np.subtract.at(spanning, given.hull_until, 1)
    cuts = np.flatnonzero(np.cumsum(spanning) == 0)
    cuts = cuts[(cuts > 0) & (cuts < sections)]
    number = np.searchsorted(cuts, given.hull_from, side="right")
    bounds = [0, *cuts.tolist(), sections]
    return tuple(
        Part(items=items, section_from=bounds[k], section_until=bounds[k + 1])
        for k in np.unique(number).tolist()
        for items in (np.flatnonzero(number == k),)
    )
