"""What holds for every tiny problem; each number is one, always the same."""

from functools import cache
from random import Random

import pytest

from spmilp.bounds.best import all_bounds
from spmilp.checker.check import check
from spmilp.plan.measures import measure
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from tests.oracle.small import permuted
from tests.oracle.solver import BruteForce
from tests.solvers.tiny_problems import tiny_problem

pytestmark = pytest.mark.full

TOO_LARGE = {136, 155, 168}
"""Problems whose search would take seconds."""
NUMBERS = [number for number in range(100, 170) if number not in TOO_LARGE]
MOST_STATES = 2000


@cache
def result(number: int) -> SolverResult:
    return BruteForce(MOST_STATES).solve(tiny_problem(number), SolveOptions())


@pytest.mark.parametrize("number", NUMBERS)
def test_plans_are_valid_and_no_bound_exceeds_them(number: int) -> None:
    problem, found = tiny_problem(number), result(number)

    if found.plan is None:
        assert found.status is not SolveStatus.OPTIMAL
        assert found.reason
        return
    plan = found.plan
    assert check(problem, plan) == ()
    measures = measure(problem, plan.placements, plan.residencies, plan.transfers)
    assert found.bound <= measures.of(problem.objective.first)
    for bound in all_bounds(problem):
        assert bound.value <= measures.of(bound.quantity), bound


@pytest.mark.parametrize("number", NUMBERS[::3])
def test_the_order_of_the_tasks_does_not_matter(number: int) -> None:
    problem, found = tiny_problem(number), result(number)
    order = list(range(len(problem.tasks)))
    Random(number).shuffle(order)

    other = BruteForce(4 * MOST_STATES).solve(permuted(problem, order), SolveOptions())

    assert found.status is not SolveStatus.UNKNOWN
    assert other.status is found.status
    assert other.bound == found.bound


def test_the_numbers_cover_every_objective_and_both_answers() -> None:
    seen = {(tiny_problem(n).objective.first, result(n).status) for n in NUMBERS}

    for quantity in Quantity:
        assert (quantity, SolveStatus.OPTIMAL) in seen
        assert (quantity, SolveStatus.INFEASIBLE) in seen


def test_a_limit_without_a_plan_is_no_proof() -> None:
    number = next(n for n in NUMBERS if result(n).status is SolveStatus.OPTIMAL)

    stopped = BruteForce(most_states=1).solve(tiny_problem(number), SolveOptions())

    assert stopped.status is SolveStatus.UNKNOWN
    assert stopped.plan is None
    assert "the limit came after" in stopped.reason
    assert stopped.bound <= result(number).bound


def test_it_tells_when_it_has_proven_something() -> None:
    number = next(n for n in NUMBERS if result(n).status is SolveStatus.OPTIMAL)
    told: list[Progress] = []

    BruteForce().solve(tiny_problem(number), SolveOptions(on_progress=told.append))

    assert [(each.incumbent, each.bound) for each in told] == [(result(number).bound,) * 2]
