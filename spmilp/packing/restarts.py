"""The search with restarts: short runs that learn where it is hard, and long ones that finish."""

from collections.abc import Iterator

import numpy as np

from spmilp.packing.orders import Keys, order_by
from spmilp.packing.search.arrays import Ints
from spmilp.packing.search.run import Outcome, Question, Run

ORDERS = (
    ("length", "area", "occupancy"),
    ("occupancy", "area", "length"),
    ("occupancy", "length", "area"),
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
SLICE = 20_000
"""Nodes between two looks at the clock."""


class RestartSearch:
    """The search on one question; the work can be cut into slices.

    Short runs with a low limit learn from their failures which sections are hard: restarts with
    such weights shorten the long tail of run times (Gomes, Selman, Kautz: AAAI 1998). Every now and
    then a long run takes its share of nodes with what was learnt; long runs double their limit, so
    that one of them ends with a packing or a proof. What was learnt may mislead and is forgotten
    after many nodes, as if with another seed. All runs share the states that are known to fail.
    """

    def __init__(self, question: Question, keys: Keys, seed: int) -> None:
        self._question = question
        self._keys = keys
        self._random = np.random.default_rng(seed)
        self._weight = np.zeros(question.tables.units.size, dtype=np.int64)
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
        first = float(FIRST_LIMIT * self._question.part.items.size)
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
        items = self._question.part.items
        order = order_by(self._keys, ORDERS[self.restarts % len(ORDERS)], noise, self._random)
        if items.size < order.size:
            order = order[np.isin(order, items)]
        self.restarts += 1
        run = Run(self._question, order, weight)
        while run.nodes < limit and self.outcome is Outcome.PAUSED:
            before, hits = run.nodes, run.memo_hits
            self.outcome = run.advance(min(limit - run.nodes, SLICE))
            self.nodes += run.nodes - before
            self.memo_hits += run.memo_hits - hits
            if self.outcome is Outcome.PACKED:
                self.offsets = run.offsets
            yield
