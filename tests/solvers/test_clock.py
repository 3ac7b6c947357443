"""Time limits with a clock that is told the time: forecasts, reserves, shares."""

from collections.abc import Callable

import pytest

from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock, Pace, Step
from spmilp.solvers.common.context import SearchContext, rows_of
from spmilp.solvers.schedule.restarts import PerturbedRestarts
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.chains import chain, star

PROBLEM = chain(star(2, 2_048), layers=2, strips=2)


class Now:
    """The time, which passes only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_step_takes_as_long_for_each_unit_as_it_did_before() -> None:
    now = Now()
    pace = Pace(now)
    with pace.measured(Step.CHECK, 1_000):
        now.seconds += 2.0
    assert pace.seconds(Step.CHECK, 500) == pytest.approx(1.0)


def test_what_is_reserved_is_no_part_of_the_time_and_may_be_corrected() -> None:
    now = Now()
    clock = Clock(10.0, Pace(now))
    clock.reserve(4.0)
    now.seconds = 5.0
    assert clock.seconds_left() == pytest.approx(1.0)
    assert not clock.has_seconds(1.5)
    clock.reserve(2.0)
    assert clock.has_seconds(1.5)
    clock.reserve(20.0)
    assert clock.is_over()


def test_the_search_leaves_time_to_finish_a_plan_of_the_size_of_the_hint() -> None:
    hint = ListScheduler().solve(PROBLEM, SolveOptions()).plan
    assert hint is not None
    pace = Pace(Now())
    pace.note(Step.CHECK, rows_of(hint), 5.0)
    options = SolveOptions(time_limit=60.0, pace=pace)
    left = SearchContext(PROBLEM, options, hint).clock.seconds_left()
    assert left == pytest.approx(60.0 - pace.seconds_to_finish(rows_of(hint)))
    # Of a member's own time nothing is taken away twice.
    member = SearchContext(PROBLEM, options, hint).member(left, hint)
    assert member.clock.seconds_left() == left


@pytest.mark.parametrize("make", [ListScheduler, PerturbedRestarts])
def test_one_schedule_is_made_however_short_the_time(
    make: Callable[[], ListScheduler | PerturbedRestarts],
) -> None:
    result = make().solve(PROBLEM, SolveOptions(time_limit=0.0))
    assert result.plan is not None
    assert result.violations(PROBLEM) == ()
