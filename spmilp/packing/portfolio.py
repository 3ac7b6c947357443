"""Find offsets inside a capacity, or the least height; with a proof if possible."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from spmilp.packing.arrays import Ints
from spmilp.packing.check import check_packing
from spmilp.packing.decide import Decider, Verdict
from spmilp.packing.heuristics import HEURISTICS, first_answers
from spmilp.packing.instance import height_bound, instance_of, next_height, section_bounds
from spmilp.packing.items import PackingProblem
from spmilp.packing.result import LIMITS, Clock, Packing, PackingOptions, PackingStatus
from spmilp.packing.search import Outcome

DEFAULT_OPTIONS = PackingOptions()


def pack(problem: PackingProblem, options: PackingOptions = DEFAULT_OPTIONS) -> Packing:
    """Find offsets inside ``problem.capacity``, or prove that there are none.

    Raises
    ------
    ValueError
        If there is no capacity, or items are bound together in contradicting ways.
    """
    if problem.capacity is None:
        raise ValueError("the problem has no capacity to pack into; give one, or minimise")
    call = _Call(problem, options)
    if call.is_refused:
        return call.infeasible(call.clash, "bound")
    for name, offsets in first_answers(call.instance):
        if call.instance.height(offsets) <= problem.capacity:
            return call.packed(offsets, name)
    verdict = Decider(call.instance, options, call.clock).decide(problem.capacity)
    if verdict.offsets is not None:
        return call.packed(verdict.offsets, verdict.source)
    if verdict.outcome is Outcome.EXHAUSTED:
        return call.disproved(problem.capacity, verdict)
    return call.answer(PackingStatus.UNKNOWN)


def minimise(problem: PackingProblem, options: PackingOptions = DEFAULT_OPTIONS) -> Packing:
    """Find the lowest packing, within ``problem.capacity`` where there is one.

    The answer is ``optimal`` when its height equals the proven bound. A ``KeyboardInterrupt`` ends
    the search early; what was found until then is returned.

    Raises
    ------
    ValueError
        If items are bound together in contradicting ways.
    """
    call = _Call(problem, options)
    return call.infeasible(call.clash, "bound") if call.is_refused else _Minimiser(call).run()


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
    call = _Call(problem, options)
    if call.instance.count > LIMITS.items_for_gaps:
        raise ValueError(
            f"heuristic {name}: {call.instance.count:,} buffers, expected at most "
            f"{LIMITS.items_for_gaps:,}; pack without it"
        )
    if call.is_refused:
        return call.infeasible(call.clash, "bound")
    offsets = HEURISTICS[name](call.instance, call.clock, options.seed)
    if problem.capacity is None or call.instance.height(offsets) <= problem.capacity:
        return call.packed(offsets, name)
    return call.answer(PackingStatus.UNKNOWN, name)


class _Call:
    """A problem with its options, clock and bound, and the answers that there can be.

    Attributes
    ----------
    clash
        Items that cannot be at the offsets at which they are fixed.
    """

    def __init__(self, problem: PackingProblem, options: PackingOptions) -> None:
        self.problem, self.options, self.capacity = problem, options, problem.capacity
        self.clock = Clock(options)
        self.instance = instance_of(problem)
        self.bound = height_bound(self.instance)
        groups = self.instance.groups
        self._fixed = np.flatnonzero(groups.offset[groups.of_item] >= 0).tolist()
        self.clash = self._clash()

    @property
    def is_refused(self) -> bool:
        """Whether the bound, or items that are fixed, leave no packing inside the capacity."""
        return self.clash is not None or (self.capacity is not None and self.bound > self.capacity)

    def answer(
        self,
        status: PackingStatus,
        source: str = "",
        *,
        offsets: tuple[int, ...] | None = None,
        height: int | None = None,
        conflict: tuple[int, ...] | None = None,
    ) -> Packing:
        """Return an answer with the bound and what was spent."""
        return Packing(
            status=status,
            offsets=offsets,
            height=height,
            bound=self.bound,
            conflict=conflict,
            statistics=self.clock.statistics(source),
        )

    def packed(self, offsets: Ints, source: str) -> Packing:
        """Return the offsets of all items, from those of free ones in units."""
        height = self.instance.height(offsets)
        groups = self.instance.groups
        of_group = groups.offset.copy()
        of_group[self.instance.group] = offsets * self.instance.unit
        return self.answer(
            PackingStatus.OPTIMAL if height <= self.bound else PackingStatus.FEASIBLE,
            source if self.instance.count or not self._fixed else "given",
            offsets=tuple(of_group[groups.of_item].tolist()),
            height=height,
        )

    def disproved(self, height: int, verdict: Verdict) -> Packing:
        """Return the proof that no packing has a height, and which items are behind it."""
        self.bound = max(self.bound, next_height(self.instance, height + 1))
        groups = self.instance.group
        part = groups if verdict.part is None else groups[verdict.part]
        suspects = sorted({*self.instance.items_of(part), *self._fixed})
        return self.infeasible(suspects, verdict.source)

    def infeasible(self, suspects: Sequence[int] | None, source: str) -> Packing:
        """Return the proof, narrowed down to few items where that is asked for."""
        conflict = None
        if self.options.conflict and self.capacity is not None:
            conflict = self._infeasible_subset(suspects or self._items_behind_the_bound())
        elif self.options.conflict and suspects is not None:
            conflict = tuple(suspects)
        return self.answer(PackingStatus.INFEASIBLE, source, conflict=conflict)

    def _clash(self) -> tuple[int, ...] | None:
        """Return the items of a rule that those break which are fixed."""
        if not self._fixed:
            return None
        groups = self.instance.groups
        offsets = groups.offset[groups.of_item[self._fixed]].tolist()
        violations = check_packing(self.problem.part(self._fixed), offsets)
        return tuple(self._fixed[i] for i in violations[0].items) if violations else None

    def _items_behind_the_bound(self) -> tuple[int, ...]:
        """Return the items of the section with the highest bound, or of the largest group."""
        instance = self.instance
        bounds = section_bounds(instance)
        if int(instance.bytes.max(initial=0)) > bounds.max(initial=0):
            return instance.items_of(instance.group[np.argmax(instance.bytes)])
        section = int(np.argmax(bounds))
        lives = (instance.section_from <= section) & (section < instance.section_until)
        return instance.items_of(instance.groups.owner[lives])

    def _infeasible_subset(self, suspects: Sequence[int]) -> tuple[int, ...]:
        """Return a subset of items, which are known to conflict, that is proven to conflict.

        Runs of items, ever shorter ones, are left out as long as the rest is proven to have no
        packing within few nodes. Small items and those at the edges in time go first.
        """
        items = self.problem.items
        few = PackingOptions(
            seed=self.options.seed,
            rules=self.options.rules,
            node_limit=LIMITS.nodes_per_proof,
            cliques=False,
            conflict=False,
        )

        def conflict(some: Sequence[int]) -> bool:
            return pack(self.problem.part(some), few).status is PackingStatus.INFEASIBLE

        by_time = sorted(suspects, key=lambda i: items[i].lifetimes[0])
        kept = self._shortened(by_time, conflict)
        by_size = sorted(kept, key=lambda i: items[i].size)
        return tuple(sorted(self._shortened(by_size, conflict)))

    def _shortened(self, items: list[int], conflict: Callable[[Sequence[int]], bool]) -> list[int]:
        length = len(items) // 2
        proofs = 0
        while length >= 1:
            start = 0
            while start < len(items) and proofs < LIMITS.proofs and not self.clock.is_up:
                rest = items[:start] + items[start + length :]
                proofs += 1
                if rest and conflict(rest):
                    items = rest
                else:
                    start += length
            length //= 2
        return items


class _Minimiser:
    """Closes the gap between a packing and the bound from both sides."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._decider = Decider(call.instance, call.options, call.clock)
        self._disproved: Verdict | None = None
        height = call.instance.height
        self._source, self._offsets = min(
            first_answers(call.instance), key=lambda answer: height(answer[1])
        )
        self._height = height(self._offsets)

    def run(self) -> Packing:
        """Decide heights until none is left between, a limit is reached, or an interrupt comes."""
        call = self._call
        with suppress(KeyboardInterrupt):
            self._close_the_gap()
        if self._disproved is not None and call.is_refused:
            return call.disproved(call.bound - 1, self._disproved)
        if call.capacity is not None and self._height > call.capacity:
            return call.answer(PackingStatus.UNKNOWN)
        return call.packed(self._offsets, self._source)

    def _close_the_gap(self) -> None:
        budget = LIMITS.first_budget
        call = self._call
        highest = self._height if call.capacity is None else call.capacity
        while call.bound < self._height and call.bound <= highest and not call.clock.is_up:
            if self._decider.tables is None:
                break
            if not self._closes_in(budget):
                budget *= 2

    def _closes_in(self, budget: int) -> bool:
        """Try the bound itself, the middle, and just below the packing; whether one was decided.

        All three each time: where heights are many, as with large alignments, the bound alone
        would rise by one of them after another.
        """
        call = self._call
        below = self._height - 1
        if call.capacity is not None:
            below = min(below, call.capacity)
        decided = False
        for height in dict.fromkeys((call.bound, (call.bound + below) // 2, below)):
            if not call.bound <= height < self._height:
                continue
            verdict = self._decider.decide(height, budget)
            if verdict.offsets is not None:
                self._offsets, self._source = verdict.offsets, verdict.source
                self._height = call.instance.height(verdict.offsets)
            elif verdict.outcome is Outcome.EXHAUSTED:
                call.bound = next_height(call.instance, height + 1)
                self._disproved = verdict
            decided |= verdict.outcome is not Outcome.PAUSED
        return decided
