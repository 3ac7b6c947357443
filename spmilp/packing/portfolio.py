"""Find offsets inside a capacity, or the least height; with a proof if possible."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace

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

    Raises a ``ValueError`` if there is no capacity, or :func:`instance_of` refuses the problem.
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
        return call.packed(verdict.offsets, "search")
    if verdict.outcome is Outcome.EXHAUSTED:
        return call.disproved(problem.capacity, verdict)
    return call.answer(PackingStatus.UNKNOWN)


def minimise(
    problem: PackingProblem,
    options: PackingOptions = DEFAULT_OPTIONS,
    *,
    ends_at_interrupts: bool = True,
) -> Packing:
    """Find the lowest packing, within ``problem.capacity`` where there is one.

    The answer is ``optimal`` when its height equals the proven bound. A ``KeyboardInterrupt`` ends
    the search early, and what was found until then is returned; or it is raised, if wanted so.

    Raises a ``ValueError`` if :func:`instance_of` refuses the problem.
    """
    call = _Call(problem, options)
    if call.is_refused:
        return call.infeasible(call.clash, "bound")
    height_of, capacity = call.instance.height, problem.capacity
    source, offsets = min(first_answers(call.instance), key=lambda answer: height_of(answer[1]))
    decider, budget = Decider(call.instance, options, call.clock), LIMITS.first_budget
    disproved: Verdict | None = None
    with suppress(KeyboardInterrupt) if ends_at_interrupts else nullcontext():
        while heights := call.heights_below(height_of(offsets)):
            if call.clock.is_up or decider.tables is None:
                break
            decided = False
            for height in heights:
                if not call.bound <= height < height_of(offsets):
                    continue
                verdict = decider.decide(height, budget)
                if verdict.offsets is not None:
                    offsets, source = verdict.offsets, "search"
                elif verdict.outcome is Outcome.EXHAUSTED:
                    call.bound = next_height(call.instance, height + 1)
                    disproved = verdict
                decided |= verdict.outcome is not Outcome.PAUSED
            budget *= 1 if decided else 2
    if disproved is not None and call.is_refused:
        return call.disproved(call.bound - 1, disproved)
    if capacity is not None and height_of(offsets) > capacity:
        return call.answer(PackingStatus.UNKNOWN)
    return call.packed(offsets, source)


def pack_by(
    name: str, problem: PackingProblem, options: PackingOptions = DEFAULT_OPTIONS
) -> Packing:
    """Return what one of the published :data:`HEURISTICS` makes of a problem, by itself.

    ``options`` are seed and limit of ``usmp:hill_climb``. Raises a ``ValueError`` if there is no
    such heuristic, or there are too many items for it.
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

    Its ``clash`` are items that cannot be at the offsets at which they are fixed.
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

    def heights_below(self, best: int) -> tuple[int, ...]:
        """Return heights to decide: the bound, one just below the best packing, and the middle.

        All three each time: where heights are many, as with large alignments, the bound alone
        would rise by one of them after another.
        """
        highest = best if self.capacity is None else self.capacity
        if self.bound >= best or self.bound > highest:
            return ()
        below = min(best - 1, highest)
        return tuple(dict.fromkeys((self.bound, (self.bound + below) // 2, below)))

    def answer(self, status: PackingStatus, source: str = "") -> Packing:
        """Return an answer without offsets, with the bound and what was spent."""
        return Packing(
            status=status,
            offsets=None,
            height=None,
            bound=self.bound,
            nodes=self.clock.nodes,
            restarts=self.clock.restarts,
            seconds=self.clock.seconds,
            source=source,
        )

    def packed(self, offsets: Ints, source: str) -> Packing:
        """Return the offsets of all items, from those of free ones in units."""
        height, found = self.instance.height(offsets), self.instance.offsets_of_items(offsets)
        status = PackingStatus.OPTIMAL if height <= self.bound else PackingStatus.FEASIBLE
        name = source if self.instance.count or not self._fixed else "given"
        return replace(self.answer(status, name), offsets=found, height=height)

    def disproved(self, height: int, verdict: Verdict) -> Packing:
        """Return the proof that no packing has a height, and which items are behind it."""
        self.bound = max(self.bound, next_height(self.instance, height + 1))
        groups = self.instance.group
        part = groups if verdict.part is None else groups[verdict.part]
        suspects = sorted({*self.instance.items_of(part), *self._fixed})
        return self.infeasible(suspects, "search")

    def infeasible(self, suspects: Sequence[int] | None, source: str) -> Packing:
        """Return the proof, narrowed down to few items where that is asked for."""
        conflict = None
        if self.options.conflict and self.capacity is not None:
            conflict = self._infeasible_subset(suspects or self._items_behind_the_bound())
        elif self.options.conflict and suspects is not None:
            conflict = tuple(suspects)
        return replace(self.answer(PackingStatus.INFEASIBLE, source), conflict=conflict)

    def _clash(self) -> tuple[int, ...] | None:
        """Return the items of a rule that those break which are fixed."""
        if not self._fixed:
            return None
        groups, part = self.instance.groups, self.problem.part(self._fixed)
        of_group = groups.offset[groups.of_item[self._fixed]].tolist()
        offsets = [
            there if item.offset is None else item.offset
            for item, there in zip(part.items, of_group, strict=True)
        ]
        violations = check_packing(part, offsets)
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
        seed = self.options.seed
        few = PackingOptions(seed=seed, node_limit=LIMITS.nodes_per_proof, conflict=False)

        def conflict(some: Sequence[int]) -> bool:
            return pack(self.problem.part(some), few).status is PackingStatus.INFEASIBLE

        kept = self._shortened(sorted(suspects, key=lambda i: items[i].lifetimes[0]), conflict)
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
