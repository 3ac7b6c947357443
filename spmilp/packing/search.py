"""One run of the search with one order of preference; it can be paused and resumed."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from spmilp.packing import rules as r
from spmilp.packing.arrays import Agenda, Frames, Ints, Memo, Settings, State, Tables
from spmilp.packing.heuristics import Keys, order_by
from spmilp.packing.kernel import search

STEPS_PER_ITEM = 50
"""Elementary steps for each item of a part when one is placed, about."""


class Outcome(Enum):
    """How a run has ended, or that it has not."""

    PACKED = r.PACKED
    EXHAUSTED = r.EXHAUSTED
    PAUSED = r.PAUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Items and sections of one sub-problem that time separates from the others."""

    items: Ints
    section_from: int
    section_until: int


def memo_of(states: int) -> Memo:
    """Return an empty memo; ``states`` is a power of two."""
    return Memo(
        key=np.zeros(states, dtype=np.uint64),
        check=np.zeros(states, dtype=np.uint64),
        bound=np.zeros(states, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether a part of an instance fits at one capacity.

    Parameters
    ----------
    tables, part
        The instance, and the part of it to pack.
    latest, capacity
        Highest offset of each item of the instance, and the capacity, in units.
    rules
        Prunings that are on: a sum of switches of :mod:`spmilp.packing.rules`.
    memo
        Failed states; questions about one capacity of one instance may share it.
    """

    tables: Tables
    part: Part
    latest: Ints
    capacity: int
    rules: int
    memo: Memo


class Run:
    """A search that can be continued.

    Parameters
    ----------
    order
        Items of the part, the most preferred first.
    weight
        How often each item of the instance was in a section that did not fit; the run adds to it.
    """

    def __init__(self, question: Question, order: Ints, weight: Ints) -> None:
        tables, items, latest = question.tables, question.part.items, question.latest
        rules = question.rules
        if rules & r.STACKED and bool((latest != question.capacity - tables.units)[items].any()):
            # Exchanging two items could leave the upper one above its latest offset.
            rules -= r.STACKED
        self._question = question
        self._settings = Settings(question.capacity, rules)
        self._state = _first_state(question, order, weight)
        self._frames = _first_frames(question.part)
        self._agenda = Agenda(*(np.zeros(items.size + 2, np.int64) for _ in Agenda._fields))
        self._fits = bool((self._state.low <= latest)[items].all())

    @property
    def nodes(self) -> int:
        """Items placed so far, all branches counted."""
        return int(self._state.counters[r.NODES])

    @property
    def memo_hits(self) -> int:
        """States that were known to fail."""
        return int(self._state.counters[r.MEMO_HITS])

    @property
    def offsets(self) -> Ints:
        """Offset in units of each item of the instance; -1 outside the part."""
        return self._state.offset

    def advance(self, nodes: int) -> Outcome:
        """Search on for at most ``nodes`` more nodes."""
        if not self._fits:
            return Outcome.EXHAUSTED
        limit = self.nodes + nodes
        steps = STEPS_PER_ITEM * self._question.part.items.size
        for_python = min(nodes, search.steps_for_python(nodes * steps) // steps)
        outcome = self._search(for_python, steps) if for_python > 0 else Outcome.PAUSED
        if outcome is Outcome.PAUSED and self.nodes < limit:
            outcome = self._search(limit - self.nodes, steps)
        return outcome

    def _search(self, nodes: int, steps: int) -> Outcome:
        # The hashes wrap around; plain Python would warn of it.
        with np.errstate(over="ignore"):
            code = search.in_about(nodes * steps)(
                self._question.tables,
                self._state,
                self._frames,
                self._agenda,
                self._question.memo,
                self._settings,
                self.nodes + nodes,
            )
        return Outcome(code)


def _first_state(question: Question, order: Ints, weight: Ints) -> State:
    tables, part = question.tables, question.part
    items = tables.units.size
    sections = tables.member_start.size - 1
    conflicts = tables.pair_start[part.items + 1] - tables.pair_start[part.items]
    trail = int(conflicts.sum()) + items + 1
    state = State(
        rank=np.zeros(items, dtype=np.int64),
        weight=weight,
        latest=question.latest,
        low=tables.lowest.copy(),
        barred=np.zeros(items, dtype=np.int64),
        offset=np.full(items, -1, dtype=np.int64),
        order=part.items.copy(),
        position=np.zeros(items, dtype=np.int64),
        remaining=np.zeros(sections, dtype=np.int64),
        alive=np.diff(tables.member_start),
        witness=np.zeros(sections, dtype=np.int64),
        member=tables.member.copy(),
        member_incidence=tables.member_incidence.copy(),
        incidence_position=tables.incidence_position.copy(),
        spanning=np.zeros(sections + 1, dtype=np.int64),
        trail_item=np.zeros(trail, dtype=np.int64),
        trail_low=np.zeros(trail, dtype=np.int64),
        counters=np.zeros(r.COUNTERS, dtype=np.int64),
    )
    state.rank[order] = np.arange(order.size)
    state.position[part.items] = np.arange(part.items.size)
    state.counters[r.AGENDA_HEAD] = -1
    return state


def _first_frames(part: Part) -> Frames:
    size = part.items.size + 2
    types = {name: np.uint64 if name in ("key", "check") else np.int64 for name in Frames._fields}
    columns: dict[str, Any] = {name: np.zeros(size, dtype) for name, dtype in types.items()}
    frames = Frames(**columns)
    frames.last[0] = part.items.size
    frames.section_from[0] = part.section_from
    frames.section_until[0] = part.section_until
    frames.back_to[0] = -1
    return frames


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
