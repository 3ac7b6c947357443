"""One instance, any capacity: search and CP-SAT take turns until there are offsets or a proof."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spmilp.packing.attempt import Attempt, parts_of
from spmilp.packing.beside import CliquesBeside
from spmilp.packing.cliques import solve_by_cliques
from spmilp.packing.clock import Clock
from spmilp.packing.given import given_of
from spmilp.packing.instance import Instance
from spmilp.packing.orders import Keys, keys_of
from spmilp.packing.result import PackingOptions
from spmilp.packing.search.arrays import Given, Ints, Memo
from spmilp.packing.search.run import Outcome, Part, memo_of

FIRST_NODES = 1_000_000
"""Nodes of the search before CP-SAT has its first turn; two or three seconds."""
FIRST_TURN = 0.05
"""OR-Tools' deterministic time for that turn; one or two seconds. Both double from turn to turn."""
MEMO_STATES = 2**20
"""Failed states that are remembered at one capacity; memory is used as they come."""
SLICE = 20_000
"""Nodes between two looks at the clock."""


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


class PartWork:
    """Everything tried on one part of an instance at one capacity."""

    def __init__(
        self,
        *,
        given: Given,
        part: Part,
        keys: Keys,
        latest: Ints,
        capacity: int,
        memo: Memo,
        options: PackingOptions,
        clock: Clock,
    ) -> None:
        self.part = part
        self._given = given
        self._latest = latest
        self._options = options
        self._clock = clock
        self._attempt = Attempt(
            given=given,
            part=part,
            keys=keys,
            latest=latest,
            capacity=capacity,
            rules=options.rules,
            seed=options.seed,
            memo=memo,
        )
        self._next_turn = FIRST_NODES
        self._turn_seconds = FIRST_TURN
        self._beside: CliquesBeside | None = None
        self.outcome = Outcome.PAUSED
        self.offsets: Ints | None = None
        self.source = ""

    def advance(self, nodes: int) -> None:
        """Work on for about ``nodes`` nodes, CP-SAT's turns not counted."""
        target = self._attempt.nodes + nodes
        while self.outcome is Outcome.PAUSED and self._attempt.nodes < target:
            if self._clock.is_up:
                return
            self._search(min(SLICE, target - self._attempt.nodes))
            if self.outcome is Outcome.PAUSED and self._options.cliques:
                self._let_cliques_work()

    def stop(self) -> None:
        """End what still runs beside."""
        if self._beside is not None:
            self._beside.stop()
            self._beside = None

    def _search(self, nodes: int) -> None:
        left = self._clock.nodes_left
        attempt = self._attempt
        before = (attempt.nodes, attempt.restarts, attempt.memo_hits)
        outcome = attempt.advance(nodes if left is None else min(nodes, left))
        self._clock.nodes += attempt.nodes - before[0]
        self._clock.restarts += attempt.restarts - before[1]
        self._clock.memo_hits += attempt.memo_hits - before[2]
        self._conclude(outcome, attempt.offsets, "search")

    def _let_cliques_work(self) -> None:
        if self._beside is not None:
            self._conclude(*self._beside.answer(), "cliques")
        elif self._attempt.nodes < self._next_turn:
            return
        elif self._options.workers > 1:
            self._beside = CliquesBeside(
                self._given, self._part_and_latest, self._clock, self._options.seed
            )
        else:
            outcome, offsets = solve_by_cliques(
                self._given,
                *self._part_and_latest,
                deterministic_time=self._turn_seconds,
                seconds=self._clock.seconds_left,
                seed=self._options.seed,
            )
            self._conclude(outcome, offsets, "cliques")
            self._next_turn *= 2
            self._turn_seconds *= 2

    @property
    def _part_and_latest(self) -> tuple[Part, Ints]:
        return self.part, self._latest

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
        self._works: dict[int, tuple[PartWork, ...]] = {}

    @cached_property
    def given(self) -> Given | None:
        """The search's arrays; ``None`` when the instance is too large for it."""
        return given_of(self._instance)

    @cached_property
    def _keys(self) -> Keys:
        return keys_of(self._instance)

    def decide(self, capacity: int, nodes: int | None = None) -> Verdict:
        """Work on one capacity, in bytes, for about ``nodes`` nodes on each part, or to the end."""
        if self.given is None:
            return Verdict(outcome=Outcome.PAUSED)
        works = self._works_at(capacity, self.given)
        share = SLICE
        spent = 0
        while not self._clock.is_up and (nodes is None or spent < nodes):
            open_works = [work for work in works if work.outcome is Outcome.PAUSED]
            if not open_works:
                break
            # Short turns: a part that is impossible ends the matter, however hard another is.
            for work in open_works:
                work.advance(share)
                if work.outcome is Outcome.EXHAUSTED:
                    self.forget(capacity)
                    return Verdict(
                        outcome=Outcome.EXHAUSTED, part=work.part.items, source=work.source
                    )
            spent += share
        if any(work.outcome is Outcome.PAUSED for work in works):
            return Verdict(outcome=Outcome.PAUSED)
        return self._joined(works)

    def forget(self, capacity: int) -> None:
        """Stop and drop what was tried at a capacity."""
        for work in self._works.pop(capacity, ()):
            work.stop()

    def forget_all(self) -> None:
        """Stop and drop everything."""
        for capacity in tuple(self._works):
            self.forget(capacity)

    def _works_at(self, capacity: int, given: Given) -> tuple[PartWork, ...]:
        if capacity not in self._works:
            memo = memo_of(MEMO_STATES)
            self._works[capacity] = tuple(
                PartWork(
                    given=given,
                    part=part,
                    keys=self._keys,
                    latest=self._instance.latest(capacity),
                    capacity=self._instance.capacity_units(capacity),
                    memo=memo,
                    options=self._options,
                    clock=self._clock,
                )
                for part in parts_of(given)
            )
        return self._works[capacity]

    def _joined(self, works: tuple[PartWork, ...]) -> Verdict:
        offsets = np.zeros(self._instance.count, dtype=np.int64)
        for work in works:
            if work.offsets is not None:
                offsets[work.part.items] = work.offsets[work.part.items]
        source = "cliques" if any(work.source == "cliques" for work in works) else "search"
        return Verdict(outcome=Outcome.PACKED, offsets=offsets, source=source)
