"""Local search as a solver: valid plans, never worse than the list scheduler, well-behaved."""

import os
import signal
from dataclasses import replace
from threading import Timer
from time import monotonic
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.local_search.run import RunOptions
from spmilp.solvers.local_search.solver import LocalSearch
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems

STEPS = 40


def search(problem: Problem, steps: int = STEPS, **options: Any) -> SolverResult:
    solver = LocalSearch(RunOptions(steps=steps, patience=15))
    return solver.solve(problem, SolveOptions(**options))


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problem=problems())
def test_every_plan_passes_the_checker_and_none_is_worse_than_the_list_schedulers(
    problem: Problem,
) -> None:
    result = search(problem)
    by_list = ListScheduler().solve(problem, SolveOptions())

    assert result.bound == by_list.bound
    if by_list.plan is not None:
        assert result.plan is not None
        assert check(problem, result.plan) == ()
        assert result.plan.claim.makespan <= by_list.plan.claim.makespan
    if result.plan is None:
        assert result.status in (SolveStatus.INFEASIBLE, SolveStatus.UNKNOWN)
        assert result.reason


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


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = chain(star(4, 1000), layers=3, strips=6)

    assert search(problem, seed=3) == search(problem, seed=3)


def test_several_workers_find_a_valid_plan() -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)

    result = search(problem, workers=3)

    assert result.plan is not None
    assert check(problem, result.plan) == ()


def test_improvements_are_told_as_they_come_and_the_last_is_the_plan() -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)
    told: list[Progress] = []

    result = search(problem, 200, on_progress=told.append)

    values = [one.incumbent for one in told if one.incumbent is not None]
    assert result.plan is not None
    assert values[-1] == result.plan.claim.makespan
    assert len(values) == len(told)
    assert values == sorted(values, reverse=True)


def test_a_gap_that_is_allowed_ends_the_search() -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)
    told: list[Progress] = []

    search(problem, gap=0.99, on_progress=told.append)

    assert len({one.incumbent for one in told}) == 1
    assert told[-1].bound > 0


def test_a_time_limit_is_kept() -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)
    search(problem, 1)
    started = monotonic()

    result = search(problem, 10**9, time_limit=1.0)

    assert monotonic() - started < 3.0
    assert result.plan is not None


def test_an_interrupt_ends_it_with_the_best_plan(interruptible: None) -> None:
    problem = chain(star(4, 1000), layers=4, strips=6)
    search(problem, 1)
    timers: list[Timer] = []

    def interrupt_soon(progress: Progress) -> None:
        if not timers:
            timers.append(Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)))
            timers[0].start()

    result = search(problem, 10**9, on_progress=interrupt_soon)

    assert result.plan is not None
    assert check(problem, result.plan) == ()


def test_a_problem_that_cannot_fit_is_infeasible_with_a_reason() -> None:
    result = search(chain(star(2, 256), layers=2, strips=2))

    assert result.status is SolveStatus.INFEASIBLE
    assert result.reason
