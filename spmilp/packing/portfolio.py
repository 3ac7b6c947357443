"""An infeasible subset: few items that cannot be packed together, out of many."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from spmilp.packing.arrays import Ints
from spmilp.packing.check import check_packing
from spmilp.packing.decide import Decider, Verdict
from spmilp.packing.heuristics import (
    GREEDY,
    HILL_CLIMB,
    MOST_FOR_GAPS,
    PUBLISHED,
    best_fit_by_size,
    first_answers,
    height_of,
    hill_climb,
    keys_of,
    outline_of,
)
from spmilp.packing.instance import (
    Instance,
    clash_of_obstacles,
    height_bound,
    instance_of,
    next_height,
    section_bounds,
)
from spmilp.packing.items import PackingProblem
from spmilp.packing.result import Clock, Packing, PackingOptions, PackingStatistics, PackingStatus
from spmilp.packing.search import Outcome

NODES_PER_PROOF = 20_000
"""Nodes after which a smaller set counts as packable: a proof that is harder is of less use."""
PROOFS = 400
"""Sets that are tried at most."""


def items_of_section(instance: Instance, section: int) -> tuple[int, ...]:
    """Return the items that live in a section, fixed ones included."""
    groups = set(
        instance.groups.owner[
            (instance.section_from <= section) & (section < instance.section_until)
        ].tolist()
    )
    of_item = instance.groups.of_item.tolist()
    return tuple(item for item, group in enumerate(of_item) if group in groups)


def infeasible_subset(
    problem: PackingProblem, suspects: Sequence[int], options: PackingOptions, clock: Clock
) -> tuple[int, ...]:
    """Return a subset of ``suspects``, which are known to conflict, that is proven to conflict.

    Runs of items, ever shorter ones, are left out as long as the rest is proven to have no packing
    within few nodes. Small items and those at the edges in time go first.
    """
    few = PackingOptions(seed=options.seed, rules=options.rules, cliques=False, conflict=False)

    def conflict(items: Sequence[int]) -> bool:
        return _is_impossible(part_of(problem, items), few)

    by_time = sorted(suspects, key=lambda i: problem.items[i].lifetimes[0])
    kept = _shortened(by_time, conflict, clock)
    by_size = sorted(kept, key=lambda i: problem.items[i].size)
    return tuple(sorted(_shortened(by_size, conflict, clock)))


def _shortened(
    items: list[int], conflict: Callable[[Sequence[int]], bool], clock: Clock
) -> list[int]:
    length = len(items) // 2
    proofs = 0
    while length >= 1:
        start = 0
        while start < len(items) and proofs < PROOFS and not clock.is_up:
            rest = items[:start] + items[start + length :]
            proofs += 1
            if rest and conflict(rest):
                items = rest
            else:
                start += length
        length //= 2
    return items


def part_of(problem: PackingProblem, items: Sequence[int]) -> PackingProblem:
    """Return the problem of some of its items; pairs that lose one are dropped."""
    number = {item: i for i, item in enumerate(items)}

    def kept(pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple((number[a], number[b]) for a, b in pairs if a in number and b in number)

    return replace(
        problem,
        items=tuple(problem.items[item] for item in items),
        together=kept(problem.together),
        apart=kept(problem.apart),
    )


def _is_impossible(problem: PackingProblem, options: PackingOptions) -> bool:
    """Return whether it is proven within few nodes that there is no packing."""
    instance = instance_of(problem)
    capacity = problem.capacity
    if capacity is None:
        return False
    if height_bound(instance) > capacity or clash_of_obstacles(instance, capacity) is not None:
        return True
    if any(height_of(instance, offsets) <= capacity for _, offsets in first_answers(instance)):
        return False
    decider = Decider(instance, options, Clock(replace(options, node_limit=NODES_PER_PROOF)))
    return decider.decide(capacity, NODES_PER_PROOF).outcome is Outcome.EXHAUSTED


DEFAULT_OPTIONS = PackingOptions()
HEURISTICS = (*PUBLISHED, *GREEDY, HILL_CLIMB)
"""What :func:`pack_by` knows."""

FIRST_BUDGET = 40_000
"""Nodes at one height before another is tried; doubled when no height could be decided."""


def pack(problem: PackingProblem, options: PackingOptions = DEFAULT_OPTIONS) -> Packing:
    """Find offsets inside ``problem.capacity``, or prove that there are none.

    Raises
    ------
    ValueError
        If there is no capacity, or items are bound together in contradicting ways.
    """
    if problem.capacity is None:
        raise ValueError("the problem has no capacity to pack into; give one, or minimise")
    clock = Clock(options)
    instance = instance_of(problem)
    bound = height_bound(instance)
    clash = clash_of_obstacles(instance, problem.capacity)
    if clash is not None or bound > problem.capacity:
        return _infeasible(instance, bound, clash, options, clock, "bound")
    for name, offsets in first_answers(instance):
        if height_of(instance, offsets) <= problem.capacity:
            return _packed(instance, offsets, bound, clock, name)
    decider = Decider(instance, options, clock)
    verdict = decider.decide(problem.capacity)
    decider.forget_all()
    if verdict.offsets is not None:
        return _packed(instance, verdict.offsets, bound, clock, verdict.source)
    if verdict.outcome is Outcome.EXHAUSTED:
        above = next_height(instance, problem.capacity + 1)
        suspects = _items_of(instance, verdict)
        return _infeasible(instance, max(bound, above), suspects, options, clock, verdict.source)
    return Packing(
        status=PackingStatus.UNKNOWN,
        offsets=None,
        height=None,
        bound=bound,
        statistics=clock.statistics(""),
    )


def minimise(problem: PackingProblem, options: PackingOptions = DEFAULT_OPTIONS) -> Packing:
    """Find the lowest packing, within ``problem.capacity`` where there is one.

    The answer is ``optimal`` when its height equals the proven bound. A ``KeyboardInterrupt`` ends
    the search early; what was found until then is returned.

    Raises
    ------
    ValueError
        If items are bound together in contradicting ways.
    """
    clock = Clock(options)
    instance = instance_of(problem)
    bound = height_bound(instance)
    clash = clash_of_obstacles(instance, problem.capacity)
    if clash is not None:
        return _infeasible(instance, bound, clash, options, clock, "bound")
    return _Minimiser(instance, options, clock, bound).run()


def pack_by(
    name: str, problem: PackingProblem, options: PackingOptions = DEFAULT_OPTIONS
) -> Packing:
    """Return what one published heuristic makes of a problem, without any other search.

    Parameters
    ----------
    name
        One of :data:`HEURISTICS`.
    options
        Seed and limit of ``usmp:hill_climb``.

    Raises
    ------
    ValueError
        If there is no such heuristic, or there are too many items for it.
    """
    if name not in HEURISTICS:
        raise ValueError(f"heuristic {name}: there are {', '.join(HEURISTICS)}")
    clock = Clock(options)
    instance = instance_of(problem)
    if instance.count > MOST_FOR_GAPS:
        raise ValueError(
            f"heuristic {name}: {instance.count:,} buffers, expected at most {MOST_FOR_GAPS:,}; "
            "pack without it"
        )
    bound = height_bound(instance)
    clash = clash_of_obstacles(instance, problem.capacity)
    if clash is not None or (problem.capacity is not None and bound > problem.capacity):
        return _infeasible(instance, bound, clash, DEFAULT_OPTIONS, clock, "bound")
    if name in PUBLISHED:
        offsets = best_fit_by_size(outline_of(instance), keys_of(instance), name)
    elif name in GREEDY:
        offsets = GREEDY[name](instance)
    else:
        offsets = hill_climb(instance, clock, options.seed)
    if problem.capacity is None or height_of(instance, offsets) <= problem.capacity:
        return _packed(instance, offsets, bound, clock, name)
    return Packing(
        status=PackingStatus.UNKNOWN,
        offsets=None,
        height=None,
        bound=bound,
        statistics=clock.statistics(name),
    )


class _Minimiser:
    """Closes the gap between a packing and the bound from both sides."""

    def __init__(
        self, instance: Instance, options: PackingOptions, clock: Clock, bound: int
    ) -> None:
        self._instance = instance
        self._options = options
        self._clock = clock
        self._bound = bound
        self._decider = Decider(instance, options, clock)
        self._disproved: Verdict | None = None
        self._source, self._offsets = min(
            first_answers(instance), key=lambda answer: height_of(instance, answer[1])
        )
        self._height = height_of(instance, self._offsets)

    def run(self) -> Packing:
        """Decide heights until none is left between, a limit is reached, or an interrupt comes."""
        with suppress(KeyboardInterrupt):
            self._close_the_gap()
        self._decider.forget_all()
        capacity = self._instance.problem.capacity
        if capacity is not None and self._bound > capacity:
            return self._without_packing()
        if capacity is not None and self._height > capacity:
            return Packing(
                status=PackingStatus.UNKNOWN,
                offsets=None,
                height=None,
                bound=self._bound,
                statistics=self._clock.statistics(""),
            )
        return _packed(self._instance, self._offsets, self._bound, self._clock, self._source)

    def _without_packing(self) -> Packing:
        """Return the proof: the part that has no packing, or the bound from the beginning."""
        suspects, source = None, "bound"
        if self._disproved is not None:
            suspects = _items_of(self._instance, self._disproved)
            source = self._disproved.source
        return _infeasible(
            self._instance, self._bound, suspects, self._options, self._clock, source
        )

    def _close_the_gap(self) -> None:
        budget = FIRST_BUDGET
        capacity = self._instance.problem.capacity
        highest = self._height if capacity is None else capacity
        while self._bound < self._height and self._bound <= highest and not self._clock.is_up:
            if self._decider.tables is None:
                break
            if not self._closes_in(budget):
                budget *= 2

    def _closes_in(self, budget: int) -> bool:
        """Try the bound itself, the middle, and just below the packing; whether one was decided.

        All three each time: where heights are many, as with large alignments, the bound alone
        would rise by one of them after another.
        """
        below = self._height - 1
        if self._instance.problem.capacity is not None:
            below = min(below, self._instance.problem.capacity)
        decided = False
        heights = (self._bound, (self._bound + below) // 2, below)
        for height in dict.fromkeys(heights):
            if not self._bound <= height < self._height:
                continue
            verdict = self._decider.decide(height, budget)
            if verdict.offsets is not None:
                self._offsets, self._source = verdict.offsets, verdict.source
                self._height = height_of(self._instance, verdict.offsets)
            elif verdict.outcome is Outcome.EXHAUSTED:
                self._bound = next_height(self._instance, height + 1)
                self._disproved = verdict
            else:
                continue
            self._decider.forget(height)
            decided = True
        return decided


def _packed(instance: Instance, offsets: Ints, bound: int, clock: Clock, source: str) -> Packing:
    height = height_of(instance, offsets)
    groups = instance.groups
    of_group = groups.offset.copy()
    of_group[instance.group] = offsets * instance.unit
    return Packing(
        status=PackingStatus.OPTIMAL if height <= bound else PackingStatus.FEASIBLE,
        offsets=tuple(of_group[groups.of_item].tolist()),
        height=height,
        bound=bound,
        statistics=clock.statistics(source),
    )


def _infeasible(
    instance: Instance,
    bound: int,
    suspects: Sequence[int] | None,
    options: PackingOptions,
    clock: Clock,
    source: str,
) -> Packing:
    """Return the proof, narrowed down to few items where that is asked for."""
    conflict = None
    if options.conflict and instance.problem.capacity is None and suspects is not None:
        conflict = tuple(suspects)
    elif options.conflict and instance.problem.capacity is not None:
        if suspects is None:
            suspects = _items_behind_the_bound(instance)
        conflict = infeasible_subset(instance.problem, suspects, options, clock)
    return Packing(
        status=PackingStatus.INFEASIBLE,
        offsets=None,
        height=None,
        bound=bound,
        conflict=conflict,
        statistics=clock.statistics(source),
    )


def _items_behind_the_bound(instance: Instance) -> tuple[int, ...]:
    """Return the items of the section with the highest bound, or of the largest group."""
    bounds = section_bounds(instance)
    largest = int(instance.bytes.max(initial=0))
    if largest > bounds.max(initial=0):
        group = instance.group[int(np.argmax(instance.bytes))]
        return tuple(np.flatnonzero(instance.groups.of_item == group).tolist())
    return items_of_section(instance, int(np.argmax(bounds)))


def _items_of(instance: Instance, verdict: Verdict) -> tuple[int, ...]:
    """Return the items of the free groups in a part, and all that are fixed."""
    part = instance.group[verdict.part] if verdict.part is not None else instance.group
    fixed = np.flatnonzero(instance.groups.offset >= 0)
    wanted = np.isin(instance.groups.of_item, np.concatenate((part, fixed)))
    return tuple(np.flatnonzero(wanted).tolist())


def is_all_fixed(problem: PackingProblem) -> bool:
    """Return whether every item, and there is one, has an offset."""
    return bool(problem.items) and all(item.offset is not None for item in problem.items)


def pack_fixed(problem: PackingProblem) -> Packing:
    """Return the fixed offsets when they are valid, and else the items of the first violation.

    Raises
    ------
    ValueError
        If an item has no offset.
    """
    began = time.perf_counter()
    offsets = tuple(item.offset for item in problem.items if item.offset is not None)
    violations = check_packing(problem, offsets)
    height = max(o + item.size for o, item in zip(offsets, problem.items, strict=True))
    return Packing(
        status=PackingStatus.INFEASIBLE if violations else PackingStatus.OPTIMAL,
        offsets=None if violations else offsets,
        height=None if violations else height,
        bound=height,
        conflict=violations[0].items if violations else None,
        statistics=PackingStatistics(seconds=time.perf_counter() - began, source="given"),
    )
