"""One instance, any capacity: search and CP-SAT alternate until there are offsets or a proof."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spmilp.packing.cliques import BackgroundCliques, solve_by_cliques
from spmilp.packing.instance import Instance
from spmilp.packing.orders import Keys, keys_of
from spmilp.packing.restarts import SLICE, RestartSearch
from spmilp.packing.result import Clock, PackingOptions
from spmilp.packing.search.arrays import Ints, Tables
from spmilp.packing.search.run import Outcome, Part, Question, memo_of
from spmilp.packing.tables import tables_of

FIRST_NODES = 1_000_000
"""Nodes of the search before CP-SAT works for the first time; two or three seconds."""
FIRST_TIME = 0.05
"""OR-Tools' deterministic time then; one or two seconds. Both double each time."""
MEMO_STATES = 2**20
"""Failed states that are remembered at one capacity; memory is used as they come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is known about one capacity.

    Parameters
    ----------
    offsets
        In units, of the free items, when packed.
    part
        Free items that cannot be packed together, when exhausted.
    source
        What decided it.
    """

    outcome: Outcome
    offsets: Ints | None = None
    part: Ints | None = None
    source: str = ""


class PartSearch:
    """Everything tried on one part of an instance at one capacity."""

    def __init__(
        self, question: Question, keys: Keys, options: PackingOptions, clock: Clock
    ) -> None:
        self._question = question
        self._options = options
        self._clock = clock
        self._search = RestartSearch(question, keys, options.seed)
        self._next_cliques = FIRST_NODES
        self._cliques_time = FIRST_TIME
        self._background: BackgroundCliques | None = None
        self.outcome = Outcome.PAUSED
        self.offsets: Ints | None = None
        self.source = ""

    @property
    def part(self) -> Part:
        """The part of the instance."""
        return self._question.part

    def advance(self, nodes: int) -> None:
        """Work on for about ``nodes`` nodes; the work of CP-SAT is not counted."""
        target = self._search.nodes + nodes
        while self.outcome is Outcome.PAUSED and self._search.nodes < target:
            if self._clock.is_up:
                return
            self._advance_search(min(SLICE, target - self._search.nodes))
            if self.outcome is Outcome.PAUSED and self._options.cliques:
                self._let_cliques_work()

    def stop(self) -> None:
        """End what still runs in the background."""
        if self._background is not None:
            self._background.stop()
            self._background = None

    def _advance_search(self, nodes: int) -> None:
        left = self._clock.nodes_left
        search = self._search
        before = (search.nodes, search.restarts, search.memo_hits)
        outcome = search.advance(nodes if left is None else min(nodes, left))
        self._clock.nodes += search.nodes - before[0]
        self._clock.restarts += search.restarts - before[1]
        self._clock.memo_hits += search.memo_hits - before[2]
        self._conclude(outcome, search.offsets, "search")

    def _let_cliques_work(self) -> None:
        if self._background is not None:
            self._conclude(*self._background.answer(), "cliques")
        elif self._search.nodes < self._next_cliques:
            return
        elif self._options.workers > 1:
            self._background = BackgroundCliques(self._question, self._clock, self._options.seed)
        else:
            outcome, offsets = solve_by_cliques(
                self._question,
                deterministic_time=self._cliques_time,
                seconds=self._clock.seconds_left,
                seed=self._options.seed,
            )
            self._conclude(outcome, offsets, "cliques")
            self._next_cliques *= 2
            self._cliques_time *= 2

    def _conclude(self, outcome: Outcome, offsets: Ints | None, source: str) -> None:
        if outcome is not Outcome.PAUSED and self.outcome is Outcome.PAUSED:
            self.outcome, self.offsets, self.source = outcome, offsets, source
            self.stop()


class Decider:
    """Decides whether an instance fits, at one capacity or several, and keeps what it tried."""

    def __init__(self, instance: Instance, options: PackingOptions, clock: Clock) -> None:
        self._instance = instance
        self._options = options
        self._clock = clock
        self._searches: dict[int, tuple[PartSearch, ...]] = {}

    @cached_property
    def tables(self) -> Tables | None:
        """The search's arrays; ``None`` when the instance is too large for it."""
        return tables_of(self._instance)

    @cached_property
    def _keys(self) -> Keys:
        return keys_of(self._instance)

    def decide(self, capacity: int, nodes: int | None = None) -> Verdict:
        """Work on one capacity, in bytes, for about ``nodes`` nodes on each part, or to the end."""
        if self.tables is None:
            return Verdict(outcome=Outcome.PAUSED)
        searches = self._searches_at(capacity, self.tables)
        spent = 0
        while not self._clock.is_up and (nodes is None or spent < nodes):
            undecided = [search for search in searches if search.outcome is Outcome.PAUSED]
            if not undecided:
                break
            # Short slices: a part that is impossible ends the matter, however hard another is.
            for search in undecided:
                search.advance(SLICE)
                if search.outcome is Outcome.EXHAUSTED:
                    self.forget(capacity)
                    return Verdict(
                        outcome=Outcome.EXHAUSTED, part=search.part.items, source=search.source
                    )
            spent += SLICE
        if any(search.outcome is Outcome.PAUSED for search in searches):
            return Verdict(outcome=Outcome.PAUSED)
        return self._joined(searches)

    def forget(self, capacity: int) -> None:
        """Stop and drop what was tried at a capacity."""
        for search in self._searches.pop(capacity, ()):
            search.stop()

    def forget_all(self) -> None:
        """Stop and drop everything."""
        for capacity in tuple(self._searches):
            self.forget(capacity)

    def _searches_at(self, capacity: int, tables: Tables) -> tuple[PartSearch, ...]:
        if capacity not in self._searches:
            memo = memo_of(MEMO_STATES)
            self._searches[capacity] = tuple(
                PartSearch(
                    Question(
                        tables=tables,
                        part=part,
                        latest=self._instance.latest(capacity),
                        capacity=self._instance.capacity_units(capacity),
                        rules=self._options.rules,
                        memo=memo,
                    ),
                    self._keys,
                    self._options,
                    self._clock,
                )
                for part in parts_of(tables)
            )
        return self._searches[capacity]

    def _joined(self, searches: tuple[PartSearch, ...]) -> Verdict:
        offsets = np.zeros(self._instance.count, dtype=np.int64)
        for search in searches:
            if search.offsets is not None:
                offsets[search.part.items] = search.offsets[search.part.items]
        source = "cliques" if any(search.source == "cliques" for search in searches) else "search"
        return Verdict(outcome=Outcome.PACKED, offsets=offsets, source=source)


def parts_of(tables: Tables) -> tuple[Part, ...]:
    """Cut an instance where no item ties the two sides together."""
    sections = tables.member_start.size - 1
    spanning = np.zeros(sections + 1, dtype=np.int64)
    np.add.at(spanning, tables.hull_from + 1, 1)
    np.subtract.at(spanning, tables.hull_until, 1)
    cuts = np.flatnonzero(np.cumsum(spanning) == 0)
    cuts = cuts[(cuts > 0) & (cuts < sections)]
    number = np.searchsorted(cuts, tables.hull_from, side="right")
    bounds = [0, *cuts.tolist(), sections]
    return tuple(
        Part(items=items, section_from=bounds[k], section_until=bounds[k + 1])
        for k in sorted(set(number.tolist()))
        for items in (np.flatnonzero(number == k),)
    )
