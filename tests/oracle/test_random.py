"""What holds for every tiny problem; each number is one, always the same."""

from functools import cache
from random import Random

import pytest

from spmilp.bounds.best import all_bounds
from spmilp.checker.check import check
from spmilp.plan.measures import measure
from spmilp.problem.objective import OF_ONE_INFERENCE
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from tests.oracle.small import permuted
from tests.oracle.solver import BruteForce
from tests.solvers.tiny_problems import tiny_problem

pytestmark = pytest.mark.full

NUMBERS = (
    *(100, 102, 103, 104, 105, 106, 107, 108, 110, 111, 112, 113, 114, 115, 116, 117, 119, 120),
    *(121, 122, 123, 125, 127, 128, 130, 131, 132),
)
"""Problems that a few thousand states decide; every objective and both answers occur."""


@cache
def result(number: int) -> SolverResult:
    return BruteForce().solve(tiny_problem(number), SolveOptions())


@pytest.mark.parametrize("number", NUMBERS)
def test_plans_are_valid_and_no_bound_exceeds_them(number: int) -> None:
    problem, found = tiny_problem(number), result(number)

    if found.plan is None:
        assert found.status is SolveStatus.INFEASIBLE
        return
    plan = found.plan
    assert check(problem, plan) == ()
    measures = measure(problem, plan.placements, plan.residencies, plan.transfers)
    assert found.bound == measures.of(problem.objective.first)
    for bound in all_bounds(problem):
        assert bound.value <= measures.of(bound.quantity), bound


@pytest.mark.parametrize("number", NUMBERS[::3])
def test_the_order_of_the_tasks_does_not_matter(number: int) -> None:
    problem, found = tiny_problem(number), result(number)
    order = list(range(len(problem.tasks)))
    Random(number).shuffle(order)

    other = BruteForce().solve(permuted(problem, order), SolveOptions())

    assert (other.status, other.bound) == (found.status, found.bound)


def test_the_numbers_cover_every_objective_and_both_answers() -> None:
    seen = {(tiny_problem(n).objective.first, result(n).status) for n in NUMBERS}

    for quantity in OF_ONE_INFERENCE:
        assert (quantity, SolveStatus.OPTIMAL) in seen
    assert SolveStatus.INFEASIBLE in {status for _, status in seen}


def test_a_limit_is_no_proof() -> None:
    stopped = BruteForce(most_states=1).solve(tiny_problem(103), SolveOptions())

    assert (stopped.status, stopped.plan) == (SolveStatus.UNKNOWN, None)
