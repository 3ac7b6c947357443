"""Primal gap and primal integral, worked out by hand."""

import pytest

from spmilp.bench.tables import incumbents, primal_gap, primal_integral
from spmilp.comparison.run import Moment


def history(*pairs: tuple[float, int | None]) -> list[Moment]:
    return [Moment(seconds=seconds, objective=value, bound=0) for seconds, value in pairs]


def test_the_gap_is_a_share_of_the_larger_one() -> None:
    assert primal_gap(None, 100) == 1
    assert primal_gap(100, 100) == 0
    assert primal_gap(125, 100) == pytest.approx(0.2)
    assert primal_gap(0, 0) == 0
    assert primal_gap(7, 0) == 1


def test_the_integral_adds_up_the_steps() -> None:
    # No plan for 2 s (gap 1), 200 for 3 s (gap 1/2), 125 for 1 s (gap 1/5), then the best.
    steps = [(2.0, 200), (5.0, 125), (6.0, 100)]
    assert primal_integral(steps, 100, 10.0) == pytest.approx(2 + 1.5 + 0.2)


def test_the_last_plan_holds_until_the_horizon() -> None:
    assert primal_integral([(1.0, 200)], 100, 9.0) == pytest.approx(1 + 8 * 0.5)


def test_what_comes_after_the_horizon_changes_nothing() -> None:
    steps = [(1.0, 200), (30.0, 100)]
    assert primal_integral(steps, 100, 5.0) == pytest.approx(1 + 4 * 0.5)
    assert primal_integral([(30.0, 100)], 100, 5.0) == 5


def test_without_a_plan_the_integral_is_the_horizon() -> None:
    assert primal_integral([], 100, 12.0) == 12
    assert primal_integral([], None, 12.0) == 12


def test_only_better_plans_are_steps() -> None:
    told = history((0.5, None), (1.0, 300), (2.0, 300), (3.0, 250), (4.0, 280), (5.0, 200))
    assert incumbents(told, 200) == [(1.0, 300), (3.0, 250), (5.0, 200)]


def test_nothing_counts_as_better_than_the_accepted_plan() -> None:
    assert incumbents(history((1.0, 150), (2.0, 200)), 200) == [(1.0, 200)]


def test_what_was_told_of_a_plan_that_was_not_accepted_does_not_count() -> None:
    assert incumbents(history((1.0, 150)), None) == []
