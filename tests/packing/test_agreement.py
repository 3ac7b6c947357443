"""At the least height and one byte below it, search and second opinion say the same."""

from dataclasses import replace
from random import Random

import pytest

from spmilp.packing import Item, PackingProblem, minimise
from spmilp.packing.instance import height_bound, instance_of
from spmilp.packing.search import Outcome
from tests.packing.oracle import can_be_packed
from tests.packing.random_problems import full_problem, plain_problem, rich_problem
from tests.packing.searching import agreement_on, search_alone


@pytest.mark.full
@pytest.mark.parametrize("block", range(4))
def test_plain_problems_are_decided_as_by_a_second_opinion(block: int) -> None:
    found = [agreement_on(plain_problem(random), random) for random in _randoms("plain", block, 30)]
    assert [agreement.wrong for agreement in found if agreement.wrong] == []
    assert sum(agreement.given_up for agreement in found) == 0
    assert sum(agreement.restarted for agreement in found) > 0


@pytest.mark.full
@pytest.mark.parametrize("block", range(6))
def test_problems_with_everything_are_decided_as_by_a_second_opinion(block: int) -> None:
    found = [agreement_on(rich_problem(random), random) for random in _randoms("rich", block, 30)]
    assert [agreement.wrong for agreement in found if agreement.wrong] == []
    assert sum(agreement.given_up for agreement in found) == 0


@pytest.mark.full
def test_proofs_beyond_the_live_bytes_are_confirmed() -> None:
    above = 0
    for seed in range(16):
        problem = full_problem(Random(f"full {seed}"))
        least = minimise(problem)
        height = least.height or 0
        assert least.bound == height
        assert search_alone(replace(problem, capacity=height)).outcome is Outcome.PACKED
        below = replace(problem, capacity=height - 1)
        assert search_alone(below).outcome is Outcome.EXHAUSTED
        if height > height_bound(instance_of(problem)):
            assert not can_be_packed(below)
            above += 1
    assert above >= 2


def test_an_item_may_lie_on_a_part_of_another_that_is_smaller_than_the_whole() -> None:
    """Two are updates in place: what lies on them later is lifted by the smaller one alone."""
    problem = PackingProblem(
        items=(
            Item(size=2, lifetimes=((0, 1), (3, 5)), alignment=2),
            Item(size=6, lifetimes=((1, 3),)),
            Item(size=4, lifetimes=((6, 7),)),
            Item(size=5, lifetimes=((0, 2), (5, 6), (7, 8)), alignment=2),
            Item(size=3, lifetimes=((0, 1), (2, 4), (6, 7)), alignment=2),
        ),
        capacity=13,
        together=((1, 4), (0, 2)),
    )
    assert search_alone(problem).outcome is Outcome.PACKED


def _randoms(kind: str, block: int, count: int) -> list[Random]:
    return [Random(f"{kind} {block} {number}") for number in range(count)]
