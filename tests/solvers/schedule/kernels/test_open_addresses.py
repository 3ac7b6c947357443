"""All bytes of a schedule fit at all times; packed, such a schedule is a valid plan."""

from collections.abc import Iterator

import pytest

from benchmarks.generated import generated_problem
from spmilp.bounds.best import Bound
from spmilp.checker.check import check
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.justify.shortening import OpenSchedule
from spmilp.solvers.schedule.kernels.extract import can_be_open
from spmilp.solvers.schedule.portfolio import Found, plan_from, schedules_by
from tests.solvers.chains import chain, star
from tests.solvers.fans import fan_problem
from tests.solvers.tiny_problems import tiny_problem

NO_BOUND = Bound("none", Quantity.MAKESPAN, 0)


def _problems() -> Iterator[Problem]:
    yield from (tiny_problem(number) for number in range(80))
    yield from (fan_problem(number) for number in range(20))
    yield generated_problem(90, 4, 1)
    yield chain(star(2, 2048), layers=4, strips=5)


def _schedules() -> Iterator[tuple[Problem, Found]]:
    for problem in filter(can_be_open, _problems()):
        for found in schedules_by(problem):
            yield problem, found


@pytest.mark.full
def test_a_packed_schedule_is_a_valid_plan_that_is_no_longer_than_was_said() -> None:
    packed = tight = 0
    for problem, found in _schedules():
        opened = OpenSchedule(problem, found.columns, Clock(None))
        assert opened.makespan <= found.columns.end.max()
        plan = opened.packed(Clock(None))
        if plan is None:
            tight += 1
            continue
        packed += 1
        made = plan_from(problem, found, NO_BOUND, "list", plan.columns())
        assert made.claim.makespan == plan.makespan
        assert not check(problem, made)
    assert packed > 10 * tight
    assert packed > 100
