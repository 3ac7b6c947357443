"""Published heuristics by name: tightest gaps, ties, limits, and what the command says."""

from random import Random

import pytest

from spmilp.packing import (
    Item,
    PackingOptions,
    PackingProblem,
    PackingStatus,
    check_packing,
    minimise,
    pack_by,
)
from spmilp.packing.heuristics import HEURISTICS
from spmilp.packing.result import LIMITS
from tests.packing.random_problems import full_problem


def problem_of(*rows: tuple[int, int, int], capacity: int | None = None) -> PackingProblem:
    items = tuple(Item(size=size, lifetimes=((start, end),)) for start, end, size in rows)
    return PackingProblem(items=items, capacity=capacity)


def test_each_item_takes_the_tightest_gap_by_decreasing_size() -> None:
    """In the second half there are gaps of 9 at 10 and of 6 at 27 for the last item."""
    rows = ((0, 2, 10), (0, 1, 9), (0, 2, 8), (0, 1, 6), (0, 2, 5), (1, 2, 4))

    assert pack_by("xla", problem_of(*rows)).offsets == (0, 10, 19, 27, 33, 27)


def test_equal_sizes_come_by_life_with_xla_and_as_they_are_with_tflite() -> None:
    problem = problem_of((0, 2, 4), (1, 9, 4))

    assert pack_by("xla", problem).offsets == (4, 0)
    assert pack_by("tflite", problem).offsets == (0, 4)


@pytest.mark.parametrize("name", HEURISTICS)
def test_packings_are_valid_and_not_lower_than_the_least(name: str) -> None:
    for seed in range(10):
        problem = full_problem(Random(seed), 12)
        found, least = pack_by(name, problem), minimise(problem)

        assert found.offsets is not None
        assert check_packing(problem, found.offsets) == []
        assert found.height is not None
        assert least.height is not None
        assert found.height >= least.height


def test_the_hill_is_climbed_down_from_the_first_order_and_the_same_for_the_same_seed() -> None:
    reached = []
    for seed in range(4):
        problem = full_problem(Random(seed), 40)
        height, least = (pack_by(one, problem).height for one in ("tflite", "usmp:hill_climb"))
        assert height is not None
        assert least is not None
        reached.append(least / height)
        options = PackingOptions(seed=seed)
        offsets = [pack_by("usmp:hill_climb", problem, options).offsets for _ in range(2)]
        assert offsets[0] == offsets[1]
    assert sum(reached) < 0.95 * len(reached)


def test_a_capacity_that_a_heuristic_misses_is_no_proof() -> None:
    problem = full_problem(Random(3), 40)
    height = pack_by("xla", problem).height
    least = minimise(problem).height
    assert height is not None
    assert least is not None
    assert least < height

    missed = pack_by("xla", PackingProblem(items=problem.items, capacity=height - 1))

    assert (missed.status, missed.offsets) == (PackingStatus.UNKNOWN, None)


def test_too_many_items_and_unknown_names_are_refused_with_numbers() -> None:
    many = problem_of(*[(0, 1, 1)] * (LIMITS.items_for_gaps + 1))

    with pytest.raises(ValueError, match="20,001 buffers, expected at most 20,000"):
        pack_by("xla", many)
    with pytest.raises(ValueError, match="heuristic nobody: there are xla, tflite"):
        pack_by("nobody", many)
