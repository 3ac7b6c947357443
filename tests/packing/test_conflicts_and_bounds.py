"""Conflicts cannot be packed and name nobody without need; bounds never exceed the least height."""

from dataclasses import replace
from random import Random

import pytest

from spmilp.packing import Item, PackingProblem, PackingStatus, check_packing, minimise, pack
from spmilp.packing.heuristics import first_answers
from spmilp.packing.instance import height_bound, instance_of
from tests.packing.oracle import can_be_packed
from tests.packing.random_problems import plain_problem, rich_problem


@pytest.mark.full
@pytest.mark.parametrize("seed", range(40))
def test_a_conflict_cannot_be_packed_and_without_any_of_it_the_rest_can(seed: int) -> None:
    problem = plain_problem(Random(f"conflict {seed}"), most_items=9)
    height = minimise(problem).height or 0
    answer = pack(replace(problem, capacity=height - 1))

    assert answer.status is PackingStatus.INFEASIBLE
    assert answer.conflict is not None
    asked = replace(problem, capacity=height - 1)
    assert not can_be_packed(asked.part(answer.conflict))
    for left_out in answer.conflict:
        rest = tuple(i for i in answer.conflict if i != left_out)
        assert can_be_packed(asked.part(rest))


@pytest.mark.full
def test_a_conflict_with_reserved_ranges_and_fixed_items_cannot_be_packed() -> None:
    conflicts = 0
    for seed in range(60):
        problem = rich_problem(Random(f"rich conflict {seed}"))
        asked = replace(problem, capacity=6 + seed % 5)
        try:
            answer = pack(asked)
        except ValueError:
            continue
        if answer.status is PackingStatus.INFEASIBLE:
            assert answer.conflict is not None
            assert not can_be_packed(asked.part(answer.conflict))
            conflicts += 1
    assert conflicts >= 20


def test_the_items_of_a_conflict_are_few_among_many() -> None:
    """Three of which each two meet, and never all, stand among three hundred that fit."""
    core = [
        Item(size=5, lifetimes=((500, 501), (502, 503))),
        Item(size=5, lifetimes=((500, 502),)),
        Item(size=5, lifetimes=((501, 503),)),
    ]
    others = [Item(size=7, lifetimes=((3 * k, 3 * k + 6),)) for k in range(150)]
    others += [Item(size=3, lifetimes=((600 + k, 604 + k),)) for k in range(150)]
    answer = pack(PackingProblem(items=(*others, *core), capacity=14))
    assert answer.conflict == (300, 301, 302)


@pytest.mark.full
def test_bounds_are_below_the_least_height_and_heuristics_above() -> None:
    for seed in range(40):
        problem = rich_problem(Random(f"bounds {seed}"))
        try:
            instance = instance_of(problem)
        except ValueError:
            continue
        least = minimise(problem)
        if least.height is None:
            continue
        assert height_bound(instance) <= least.height
        for name, offsets in first_answers(instance):
            assert check_packing(problem, instance.offsets_of_items(offsets)) == [], name
            assert instance.height(offsets) >= least.height


def test_heights_far_apart_are_halved_and_not_counted_one_by_one() -> None:
    wide = tuple(Item(size=3, lifetimes=((0, 9),), alignment=2**20) for _ in range(2))
    others = tuple(Item(size=5, lifetimes=((i, i + 3),)) for i in range(6))
    answer = minimise(PackingProblem(items=wide + others, capacity=None))

    assert answer.status is PackingStatus.OPTIMAL
    assert answer.height == 2**20 + 3
    assert answer.nodes < 10_000
