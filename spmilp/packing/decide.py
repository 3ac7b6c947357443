"""One instance, any capacity: search and CP-SAT alternate until there are offsets or a proof.

CP-SAT is strong where the search is weak and the other way round. This is the only file of the
package that imports OR-Tools.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spmilp.packing.arrays import Ints, Tables
from spmilp.packing.heuristics import Keys, keys_of, order_by
from spmilp.packing.instance import Instance
from spmilp.packing.result import LIMITS, Clock, PackingOptions
from spmilp.packing.search import Outcome, Question, Run, questions_of, tables_of
from spmilp.processes import interruptibly

ORDERS = (
    ("length", "area", "occupancy"),
    ("occupancy", "area", "length"),
    ("occupancy", "length", "area"),
)
"""The rotation of MiniMalloc (its WAT, TAW and TWA)."""


def solve_by_cp_sat(
    question: Question, *, deterministic_time: float, seconds: float | None, seed: int
) -> tuple[Outcome, Ints | None]:
    """Return the outcome and offsets in units, both as the search does.

    One ``no_overlap`` stands for the items, and the obstacles, of each section.
    ``deterministic_time`` is OR-Tools' limit that does not depend on the machine's speed, about
    seconds; ``seconds`` are on the wall, ``None`` for no limit.
    """
    # Importing OR-Tools takes longer than most packings do.
    from ortools.sat.python import cp_model

    tables, items = question.tables, question.items.tolist()
    outline = tables.outline
    model = cp_model.CpModel()
    offset: dict[int, Any] = {}
    stacks: dict[int, list[Any]] = defaultdict(list)
    for item in items:
        step, latest = int(outline.alignment[item]), int(question.latest[item])
        blocked = slice(outline.blocked_start[item], outline.blocked_start[item + 1])
        ends = (outline.blocked_from[blocked], outline.blocked_until[blocked])
        steps = [(-(-a // step), -(-b // step) - 1) for a, b in np.stack(ends, axis=1).tolist()]
        barred = cp_model.Domain.from_intervals([[a, b] for a, b in steps if a <= b])
        free = cp_model.Domain(0, latest // step).intersection_with(barred.complement())
        if free.is_empty():
            return Outcome.EXHAUSTED, None
        offset[item] = step * model.new_int_var_from_domain(free, f"offset_{item}")
        for run in range(outline.run_start[item], outline.run_start[item + 1]):
            extent = int(outline.run_units[run])
            interval = model.new_fixed_size_interval_var(offset[item], extent, f"run_{run}")
            for section in range(outline.run_from[run], outline.run_until[run]):
                stacks[section].append(interval)
    for section, stack in stacks.items():
        for k in range(tables.obstacle_start[section], tables.obstacle_start[section + 1]):
            start, end = int(tables.obstacle_from[k]), int(tables.obstacle_until[k])
            stack.append(model.new_fixed_size_interval_var(start, end - start, f"obstacle_{k}"))
        model.add_no_overlap(stack)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_time
    solver.parameters.catch_sigint_signal = False
    if seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.0, seconds)
    try:
        status = interruptibly(solver.solve, model)
    except KeyboardInterrupt:
        solver.stop_search()
        raise
    if status == cp_model.INFEASIBLE:
        return Outcome.EXHAUSTED, None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Outcome.PAUSED, None
    offsets = np.full(outline.units.size, -1, dtype=np.int64)
    for i in items:
        offsets[i] = solver.value(offset[i])
    return Outcome.PACKED, offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is known about one capacity.

    ``offsets`` are in units, of the free items, when packed; ``part`` has free items that cannot be
    packed together, when exhausted; ``source`` is what decided it.
    """

    outcome: Outcome
    offsets: Ints | None = None
    part: Ints | None = None
    source: str = ""


class PartSearch:
    """Everything tried on one part of an instance at one capacity.

    Short runs with a low limit learn from their failures which sections are hard: restarts with
    such weights shorten the long tail of run times (Gomes, Selman, Kautz: AAAI 1998). Every now and
    then a long run takes its share of nodes with what was learnt; long runs double their limit, so
    that one of them ends with a packing or a proof. What was learnt may mislead and is forgotten
    after many nodes, as if with another seed. All runs share the states that are known to fail.
    """

    def __init__(self, asked: Question, keys: Keys, options: PackingOptions, clock: Clock) -> None:
        self._question, self._keys, self._options, self._clock = asked, keys, options, clock
        self._random = np.random.default_rng(options.seed)
        self._nodes = self._started = 0
        self._slices = self._restarts()
        self._next_cp_sat, self._cp_sat_time = LIMITS.first_nodes, LIMITS.first_time
        self.items = asked.items
        self.outcome = Outcome.PAUSED
        self.offsets: Ints | None = None
        self.source = ""

    def advance(self) -> None:
        """Search on for about a slice of nodes, then let CP-SAT work where it is its turn."""
        if self._clock.is_up:
            return
        left = self._clock.nodes_left
        target = self._nodes + (LIMITS.slice if left is None else min(LIMITS.slice, left))
        while self.outcome is Outcome.PAUSED and self._nodes < target:
            next(self._slices)
        is_turn = self._options.cliques and self._nodes >= self._next_cp_sat
        if self.outcome is Outcome.PAUSED and is_turn:
            seconds, seed = self._clock.seconds_left, self._options.seed
            found = solve_by_cp_sat(
                self._question, deterministic_time=self._cp_sat_time, seconds=seconds, seed=seed
            )
            self._conclude(*found, "cliques")
            self._next_cp_sat *= 2
            self._cp_sat_time *= 2

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
            outcome = run.advance(min(limit - before, LIMITS.slice))
            self._nodes += run.nodes - before
            self._clock.nodes += run.nodes - before
            self._conclude(outcome, run.offsets, "search")
            yield

    def _conclude(self, outcome: Outcome, offsets: Ints | None, source: str) -> None:
        if outcome is not Outcome.PAUSED:
            self.outcome, self.source = outcome, source
            self.offsets = offsets if outcome is Outcome.PACKED else None


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
                PartSearch(question, keys, self._options, self._clock)
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
                    return Verdict(outcome=Outcome.EXHAUSTED, part=one.items, source=one.source)
            spent += LIMITS.slice
        if any(one.outcome is Outcome.PAUSED for one in searches):
            return Verdict(outcome=Outcome.PAUSED)
        del self._searches[capacity]
        offsets = np.zeros(self._instance.count, dtype=np.int64)
        for one in searches:
            if one.offsets is not None:
                offsets[one.items] = one.offsets[one.items]
        source = "cliques" if any(one.source == "cliques" for one in searches) else "search"
        return Verdict(outcome=Outcome.PACKED, offsets=offsets, source=source)
