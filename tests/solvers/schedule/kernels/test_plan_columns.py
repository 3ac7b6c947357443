"""A schedule's columns are those of its plan, and say as much of its times."""

from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.generated import generated_problem
from spmilp.bounds.best import Bound
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.justify.shortening import JustifiedPlan
from spmilp.solvers.schedule.kernels.extract import columns_of
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns, columns_of_plan
from spmilp.solvers.schedule.kernels.records import Rows
from spmilp.solvers.schedule.portfolio import plan_from, schedules_by
from tests.solvers.fans import fan_problem
from tests.solvers.tiny_problems import tiny_problem

NO_BOUND = Bound("none", Quantity.MAKESPAN, 0)


def _problems() -> Iterator[Problem]:
    """Yield problems of which some have scratch, staging, multicasts or remote reads."""
    yield from (tiny_problem(number) for number in range(80))
    yield from (fan_problem(number) for number in range(20))
    yield generated_problem(90, 4, 1)


def _schedules() -> Iterator[tuple[Problem, PlanColumns, Plan]]:
    for problem in _problems():
        for found in schedules_by(problem):
            plan = plan_from(problem, found, NO_BOUND, "list")
            yield problem, columns_of(problem, found.state), plan


@pytest.mark.full
def test_a_schedule_has_the_columns_of_its_plan_but_for_addresses_in_dram() -> None:
    with_scratch = with_multicasts = 0
    for problem, columns, plan in _schedules():
        of_plan = columns_of_plan(plan)
        drams = [dram.index for dram in problem.machine.drams]
        counts = ~np.isin(columns.memory, drams)
        np.testing.assert_array_equal(columns.offset[counts], of_plan.offset[counts])
        for name, one, other in zip(PlanColumns._fields, columns, of_plan, strict=True):
            if name != "offset":
                rows = zip(one, other, strict=True) if isinstance(one, Rows) else [(one, other)]
                for mine, theirs in rows:
                    np.testing.assert_array_equal(mine, theirs, err_msg=name)
        with_scratch += any(one.scratch is not None for one in plan.placements)
        with_multicasts += any(len(move.destinations) > 1 for move in plan.transfers)
    assert with_scratch > 1
    assert with_multicasts > 1


@pytest.mark.full
def test_columns_are_justified_as_the_plan_is() -> None:
    asked = 0
    for problem, columns, plan in _schedules():
        if all(dram.size is None for dram in problem.machine.drams):
            by_columns, by_plan = (
                JustifiedPlan.of(problem, columns),
                JustifiedPlan.of(problem, plan),
            )
            assert by_columns.makespan == by_plan.makespan
            assert by_columns.plan(plan) == by_plan.plan(plan)
            asked += 1
    assert asked > 30
