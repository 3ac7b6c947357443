"""An infeasible subset: few items that cannot be packed together, out of many."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from spmilp.packing.bounds import clash_of_obstacles, height_bound
from spmilp.packing.decide import Decider
from spmilp.packing.heuristics import first_answers, height_of
from spmilp.packing.instance import Instance, instance_of
from spmilp.packing.items import PackingProblem
from spmilp.packing.result import Clock, PackingOptions
from spmilp.packing.search.run import Outcome

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
