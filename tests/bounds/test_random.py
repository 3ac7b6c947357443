"""No bound exceeds the optimum, which brute force proves, nor any plan at all."""

import pytest
from hypothesis import HealthCheck, given, settings

from spmilp.bounds.best import all_bounds
from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import PrecedenceGraph, critical_paths, paths_of
from spmilp.plan.measures import measure
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.solver import ListScheduler
from tests.oracle.solver import BruteForce
from tests.solvers.random_problems import problems
from tests.solvers.tiny_problems import tiny_problem

pytestmark = pytest.mark.full

MOST_STATES = 500
BLOCK = 30


@pytest.mark.parametrize("first", range(300, 360, BLOCK))
def test_no_bound_exceeds_a_plan_of_a_tiny_problem(first: int) -> None:
    compared = 0
    for number in range(first, first + BLOCK):
        problem = tiny_problem(number)
        plan = BruteForce(MOST_STATES).solve(problem, SolveOptions()).plan
        if plan is None:
            continue
        measures = measure(problem, plan.placements, plan.residencies, plan.transfers)
        compared += 1
        for bound in all_bounds(problem):
            assert bound.value <= measures.of(bound.quantity), (number, bound)
    assert compared >= 9


def test_tasks_of_plans_keep_to_their_heads_and_tails() -> None:
    planned = 0

    @settings(
        max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(problem=problems())
    def keep(problem: Problem) -> None:
        nonlocal planned
        plan = ListScheduler().solve(problem, SolveOptions()).plan
        movement = Movement(problem)
        paths = paths_of(problem, movement)
        single = critical_paths(PrecedenceGraph(problem, movement))

        assert all(a >= b for a, b in zip(paths.head, single.head, strict=True))
        assert all(a >= b for a, b in zip(paths.tail, single.tail, strict=True))
        if plan is None:
            return
        planned += 1
        for placement, head, tail in zip(plan.placements, paths.head, paths.tail, strict=True):
            assert head <= placement.start
            assert placement.start + tail <= plan.claim.makespan
        measures = measure(problem, plan.placements, plan.residencies, plan.transfers)
        assert all(bound.value <= measures.of(bound.quantity) for bound in all_bounds(problem))

    keep()
    assert planned >= 50
