"""Pairs that must lie apart count in the bound, and nothing is lost or demanded without need."""

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

import spmilp.packing.groups
from spmilp.packing import Item, PackingProblem, PackingStatus, check_packing, minimise, pack
from spmilp.packing.instance import height_bound, instance_of
from spmilp.packing.result import LIMITS
from tests.packing.oracle import can_be_packed
from tests.packing.random_problems import plain_problem, rich_problem


def with_pairs(problem: PackingProblem, random: Random, share: float) -> PackingProblem:
    pairs = combinations(range(len(problem.items)), 2)
    return replace(problem, apart=tuple(pair for pair in pairs if random.random() < share))


def conflict(problem: PackingProblem, i: int, j: int) -> bool:
    ((start, end),), ((other_start, other_end),) = (problem.items[k].lifetimes for k in (i, j))
    return (i, j) in problem.apart or (start < other_end and other_start < end)


def heaviest_by_enumeration(problem: PackingProblem) -> int:
    """Return the most bytes of items of which each two conflict; each has one lifetime."""
    count = len(problem.items)
    return max(
        sum(problem.items[i].size for i in some)
        for size in range(1, count + 1)
        for some in combinations(range(count), size)
        if all(conflict(problem, i, j) for i, j in combinations(some, 2))
    )


def test_buffers_that_are_all_apart_lie_one_above_the_other() -> None:
    items = tuple(Item(size=10 + i, lifetimes=((i, i + 2),)) for i in range(16))
    problem = PackingProblem(
        items=items, capacity=None, apart=tuple(combinations(range(16), 2)), reserved=((0, 7),)
    )
    assert height_bound(instance_of(problem)) == 7 + sum(range(10, 26))

    least = minimise(problem)
    assert (least.status, least.height, least.statistics.nodes) == (
        PackingStatus.OPTIMAL,
        7 + sum(range(10, 26)),
        0,
    )
    refused = pack(replace(problem, capacity=286))
    assert refused.status is PackingStatus.INFEASIBLE
    assert refused.conflict == tuple(range(16))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(30))
def test_the_bound_is_the_heaviest_clique_and_no_packing_is_lower(seed: int) -> None:
    random = Random(f"cliques {seed}")
    problem = with_pairs(plain_problem(random, most_items=9), random, random.random())
    bound, least = height_bound(instance_of(problem)), minimise(problem)

    assert bound == heaviest_by_enumeration(problem)
    assert least.height is not None
    assert least.offsets is not None
    assert bound <= least.height == least.bound
    assert check_packing(problem, least.offsets) == []
    assert not can_be_packed(replace(problem, capacity=least.height - 1))


@pytest.mark.full
def test_with_alignments_fixed_and_reserved_bytes_the_bound_stays_below_every_packing() -> None:
    bounded = 0
    for seed in range(80):
        random = Random(f"rich cliques {seed}")
        problem = with_pairs(rich_problem(random, most_items=6), random, 0.6)
        problem = replace(problem, together=problem.together[:1])
        try:
            bound = height_bound(instance_of(problem))
        except ValueError:
            continue
        bounded += bound > height_bound(instance_of(replace(problem, apart=())))
        assert not can_be_packed(replace(problem, capacity=bound - 1))
        least = minimise(problem)
        if least.height is not None:
            assert can_be_packed(replace(problem, capacity=least.height))
            assert not can_be_packed(replace(problem, capacity=least.height - 1))
    assert bounded > 10


@pytest.mark.full
def test_pairs_of_too_many_still_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(LIMITS, in_cliques=3, longest=1)
    monkeypatch.setattr(spmilp.packing.groups, "LIMITS", limits)
    for seed in range(20):
        random = Random(f"sets {seed}")
        problem = with_pairs(plain_problem(random), random, 0.5)
        least = minimise(problem)
        assert least.height is not None
        assert least.offsets is not None
        assert check_packing(problem, least.offsets) == []
        assert can_be_packed(replace(problem, capacity=least.height))
        assert not can_be_packed(replace(problem, capacity=least.height - 1))
