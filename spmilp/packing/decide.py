"""From an instance to the arrays of the search."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.interruptible import Background, interruptibly
from spmilp.packing.arrays import Ints, Shorts, Tables
from spmilp.packing.heuristics import Keys, keys_of
from spmilp.packing.instance import (
    Instance,
    blocked_offsets,
    count_conflicts,
    list_conflicts,
    obstacles_by_section,
)
from spmilp.packing.kernel import fill_lowest
from spmilp.packing.result import Clock, PackingOptions
from spmilp.packing.search import SLICE, Outcome, Part, Question, RestartSearch, memo_of

MOST_CONFLICTS = 40_000_000
"""Directed pairs up to which the search is tried; it keeps them all in memory."""


def tables_of(instance: Instance) -> Tables | None:
    """Return the search's arrays, or ``None`` when the instance has too many conflicts for it."""
    pairs = _conflicts(instance)
    if pairs is None:
        return None
    lengths = instance.run_until - instance.run_from
    incidence_start = np.cumsum(lengths) - lengths
    member_start, member, member_incidence, incidence_position = _members(instance)
    blocked_start, blocked_from, blocked_until = blocked_offsets(instance)
    obstacle_start, obstacle_from, obstacle_until = obstacles_by_section(instance)
    free = (np.diff(blocked_start) == 0) & (np.diff(instance.run_start) == 1)
    tables = Tables(
        pair_start=pairs[0],
        pair_item=pairs[1],
        pair_extent=pairs[2],
        run_start=instance.run_start,
        run_from=instance.run_from,
        run_until=instance.run_until,
        run_units=instance.run_units,
        member_start=member_start,
        member=member,
        member_incidence=member_incidence,
        incidence_position=incidence_position,
        incidence_start=incidence_start,
        hull_from=instance.run_from[instance.run_start[:-1]],
        hull_until=instance.run_until[instance.run_start[1:] - 1],
        units=instance.units,
        lift=_lifts(instance, *pairs),
        alignment=instance.alignment,
        lowest=np.zeros(instance.count, dtype=np.int64),
        blocked_start=blocked_start,
        blocked_from=blocked_from,
        blocked_until=blocked_until,
        obstacle_start=obstacle_start,
        obstacle_from=obstacle_from,
        obstacle_until=obstacle_until,
        exchange_class=_classes(instance, free & (instance.alignment == 1), ()),
        twin_class=_classes(instance, free, (instance.bytes, instance.alignment_bytes)),
    )
    fill_lowest.in_about(instance.count + tables.blocked_from.size)(tables)
    return tables


def _conflicts(instance: Instance) -> tuple[Ints, Shorts, Ints] | None:
    """Return pointers, the conflicting items of each item, and how far above it each has to lie.

    The last is empty where that is always the item's units. ``None`` when there are too many.
    """
    runs = (instance.run_start, instance.run_from, instance.run_until, instance.run_units)
    degree = np.zeros(instance.count, dtype=np.int64)
    steps = instance.count**2
    count_conflicts.in_about(steps)(*runs, degree, MOST_CONFLICTS)
    if int(degree.sum()) > MOST_CONFLICTS:
        return None
    varying = (instance.run_units != np.repeat(instance.units, np.diff(instance.run_start))).any()
    pointer = np.concatenate(([0], np.cumsum(degree)))
    other = np.empty(pointer[-1], dtype=np.int32)
    extent = np.empty(pointer[-1] if varying else 0, dtype=np.int64)
    list_conflicts.in_about(steps)(*runs, pointer[:-1].copy(), other, extent)
    return pointer, other, extent


def _lifts(instance: Instance, pointer: Ints, other: Shorts, extent: Ints) -> Ints:
    """Return the least by which each item raises one that lies on it."""
    if extent.size == 0:
        return instance.units
    lift = instance.units.copy()
    np.minimum.at(lift, np.repeat(np.arange(instance.count), np.diff(pointer)), extent)
    return lift


def _members(instance: Instance) -> tuple[Ints, Shorts, Shorts, Shorts]:
    """Return all (item, section) incidences by section: pointers, items, incidences, and back."""
    lengths = instance.run_until - instance.run_from
    owner = np.repeat(np.arange(instance.count), np.diff(instance.run_start))
    item = np.repeat(owner, lengths)
    starts = np.cumsum(lengths) - lengths
    section = np.arange(item.size) - np.repeat(starts - instance.run_from, lengths)
    order = np.argsort(section, kind="stable")
    position = np.empty(order.size, dtype=np.int32)
    position[order] = np.arange(order.size)
    pointer = np.zeros(instance.sections + 1, dtype=np.int64)
    np.cumsum(np.bincount(section, minlength=instance.sections), out=pointer[1:])
    return pointer, item[order].astype(np.int32), order.astype(np.int32), position


def _classes(instance: Instance, eligible: NDArray[np.bool_], also: tuple[Ints, ...]) -> Ints:
    """Number the classes of eligible items alike in their sections and in ``also``; else -1."""
    first = instance.run_start[:-1]
    columns = (instance.run_from[first], instance.run_until[first], *also)
    numbers: dict[tuple[int, ...], int] = {}
    rows = zip(*(column.tolist() for column in columns), strict=True)
    number = np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int64)
    return np.where(eligible, number, -1)


Expressions: TypeAlias = dict[int, Any]
"""An affine expression of OR-Tools for each item's offset."""
NO_LIMIT = 1e9
"""OR-Tools' deterministic time of a call that ends when it is stopped."""


def solve_by_cliques(
    question: Question,
    *,
    deterministic_time: float,
    seconds: float | None,
    seed: int,
    announce: Callable[[Any], None] | None = None,
) -> tuple[Outcome, Ints | None]:
    """Return the outcome and offsets in units, both as the search does.

    Parameters
    ----------
    deterministic_time
        OR-Tools' limit that does not depend on the machine's speed; about seconds.
    seconds
        Wall seconds; ``None`` for no limit.
    announce
        Called with the solver before it starts, so that another thread can stop it.
    """
    # Importing OR-Tools takes longer than most packings do.
    from ortools.sat.python import cp_model

    tables, items = question.tables, question.part.items.tolist()
    domains = {i: _offsets_in_steps(tables, i, int(question.latest[i])) for i in items}
    if not all(domains.values()):
        return Outcome.EXHAUSTED, None
    model = cp_model.CpModel()
    offset = {
        i: int(tables.alignment[i])
        * model.new_int_var_from_domain(cp_model.Domain.from_intervals(domains[i]), f"offset_{i}")
        for i in items
    }
    _sections_are_disjoint(model, question, offset)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_time
    solver.parameters.catch_sigint_signal = False
    if seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.0, seconds)
    if announce is not None:
        announce(solver)
    status = _status_of(solver, model)
    if status == cp_model.INFEASIBLE:
        return Outcome.EXHAUSTED, None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Outcome.PAUSED, None
    offsets = np.full(tables.units.size, -1, dtype=np.int64)
    for i in items:
        offsets[i] = solver.value(offset[i])
    return Outcome.PACKED, offsets


def _status_of(solver: Any, model: Any) -> Any:
    """Solve; an interrupt stops the solver and passes on at once."""
    try:
        return interruptibly(solver.solve, model)
    except KeyboardInterrupt:
        solver.stop_search()
        raise


def _offsets_in_steps(tables: Tables, item: int, latest: int) -> list[list[int]]:
    """Return closed intervals of the offsets an item may have, divided by its alignment."""
    step = int(tables.alignment[item])
    free: list[list[int]] = []
    first = 0
    for k in range(tables.blocked_start[item], tables.blocked_start[item + 1]):
        last = (min(int(tables.blocked_from[k]), latest + 1) - 1) // step
        if first <= last:
            free.append([first, last])
        first = max(first, -(-int(tables.blocked_until[k]) // step))
    if first <= latest // step:
        free.append([first, latest // step])
    return free


def _sections_are_disjoint(model: Any, question: Question, offset: Expressions) -> None:
    """Add one ``no_overlap`` for the items, and the obstacles, of each section."""
    tables, part = question.tables, question.part
    run_of_incidence = (
        np.searchsorted(tables.incidence_start, tables.member_incidence, side="right") - 1
    )
    runs: dict[int, Any] = {}
    for section in range(part.section_from, part.section_until):
        intervals = []
        for k in range(tables.member_start[section], tables.member_start[section + 1]):
            item, run = int(tables.member[k]), int(run_of_incidence[k])
            if run not in runs:
                runs[run] = model.new_fixed_size_interval_var(
                    offset[item], int(tables.run_units[run]), f"run_{run}"
                )
            intervals.append(runs[run])
        for k in range(tables.obstacle_start[section], tables.obstacle_start[section + 1]):
            start, end = int(tables.obstacle_from[k]), int(tables.obstacle_until[k])
            intervals.append(model.new_fixed_size_interval_var(start, end - start, f"obstacle_{k}"))
        if len(intervals) > 1:
            model.add_no_overlap(intervals)


class BackgroundCliques:
    """One call of CP-SAT under way; it and the compiled search run without the interpreter lock."""

    def __init__(self, question: Question, clock: Clock, seed: int) -> None:
        self._solver: list[Any] = []
        self._call = Background(
            lambda: solve_by_cliques(
                question,
                deterministic_time=NO_LIMIT,
                seconds=clock.seconds_left,
                seed=seed,
                announce=self._solver.append,
            )
        )

    def answer(self) -> tuple[Outcome, Ints | None]:
        """Return what is known by now."""
        return self._call.answer() if self._call.ended.is_set() else (Outcome.PAUSED, None)

    def stop(self) -> None:
        """Ask the solver to stop and wait for it."""
        for solver in self._solver:
            solver.stop_search()
        self._call.ended.wait()


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
