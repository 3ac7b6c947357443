"""Problems made without a model are valid, tight, and as large as asked for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.generated import generated_problem
from spmilp.checker.check import check
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.solver import ListScheduler


@settings(max_examples=25)
@given(tasks=st.integers(1, 300), cores=st.integers(1, 40), seed=st.integers(0, 5))
def test_a_generated_problem_has_the_tasks_and_cores_that_were_asked_for(
    tasks: int, cores: int, seed: int
) -> None:
    problem = generated_problem(tasks, cores, seed)

    assert (len(problem.tasks), len(problem.machine.cores)) == (tasks, cores)


def test_the_same_arguments_give_the_same_problem() -> None:
    assert generated_problem(120, 4, 7) == generated_problem(120, 4, 7)
    assert generated_problem(120, 4, 7) != generated_problem(120, 4, 8)


@pytest.mark.parametrize(("tasks", "cores"), [(60, 1), (400, 4), (300, 30)])
def test_plans_of_generated_problems_pass_the_checker(tasks: int, cores: int) -> None:
    problem = generated_problem(tasks, cores)

    result = ListScheduler(("locality", "critical_path")).solve(problem, SolveOptions())

    assert result.plan is not None
    assert check(problem, result.plan) == ()


@pytest.mark.parametrize(("tasks", "cores"), [(0, 4), (10, 0)])
def test_nothing_is_no_problem(tasks: int, cores: int) -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        generated_problem(tasks, cores)
