"""Local search as a solver: valid plans, never worse than the list scheduler, well-behaved."""

from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.local_search.run import RunOptions
from spmilp.solvers.local_search.solver import LocalSearch
from tests.solvers.chains import chain, star

STEPS = 40


def search(problem: Problem, steps: int = STEPS, **options: Any) -> SolverResult:
    solver = LocalSearch(RunOptions(steps=steps, patience=15))
    return solver.solve(problem, SolveOptions(**options))


@pytest.mark.parametrize("quantity", list(Quantity))
def test_each_quantity_can_be_what_is_sought(quantity: Quantity) -> None:
    problem = replace(chain(star(3, 900), layers=3, strips=5), objective=Objective.of(quantity))

    found, listed = search(problem).plan, ListScheduler().solve(problem, SolveOptions()).plan

    assert found is not None
    assert listed is not None
    assert check(problem, found) == ()
    assert claimed(found.claim).of(quantity) <= claimed(listed.claim).of(quantity)


def test_it_finds_shorter_plans_than_the_list_scheduler_where_there_are_some() -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)

    found, listed = search(problem, 200).plan, ListScheduler().solve(problem, SolveOptions()).plan

    assert found is not None
    assert listed is not None
    assert found.claim.makespan < listed.claim.makespan


def test_several_workers_find_a_valid_plan() -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)

    result = search(problem, workers=3)

    assert result.plan is not None
    assert check(problem, result.plan) == ()


def test_a_time_limit_is_kept() -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)
    search(problem, 1)
    started = monotonic()

    result = search(problem, 10**9, time_limit=1.0)

    assert monotonic() - started < 3.0
    assert result.plan is not None
