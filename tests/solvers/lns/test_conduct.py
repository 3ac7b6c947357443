"""How the solver behaves: never worse, always valid, deterministic, interruptible."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from threading import Timer, get_ident

import pytest
from hypothesis import HealthCheck, given, settings

from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.solver import LnsSolver
from tests.solvers.random_problems import problems

MODELS = Path(__file__).parents[3] / "models"
BRIEFLY = SolveOptions(time_limit=2.0)


@pytest.fixture(scope="module")
def network() -> Problem:
    return problem_of(MODELS / "resnet8_int8.onnx", "edge16")


@settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(problem=problems(most_tasks=8))
def test_no_plan_is_longer_than_the_list_schedulers_and_each_is_valid(problem: Problem) -> None:
    start = ListScheduler().solve(problem, SolveOptions())

    result = LnsSolver().solve(problem, SolveOptions())

    assert (result.plan is None) == (start.plan is None)
    if result.plan is not None and start.plan is not None:
        assert check(problem, result.plan) == ()
        assert result.bound <= result.plan.claim.makespan <= start.plan.claim.makespan


def test_a_network_gets_shorter_than_by_the_list_scheduler_alone(network: Problem) -> None:
    start = ListScheduler().solve(network, SolveOptions()).plan

    plan = LnsSolver().solve(network, BRIEFLY).plan

    assert start is not None
    assert plan is not None
    assert check(network, plan) == ()
    assert plan.claim.makespan < start.claim.makespan


def test_without_a_time_limit_the_same_seed_gives_the_same_plan(network: Problem) -> None:
    one, other = (LnsSolver().solve(network, SolveOptions(seed=3)).plan for _ in range(2))

    assert one == other


def test_a_hint_is_improved_and_never_replaced_by_something_worse(network: Problem) -> None:
    hint = LnsSolver().solve(network, BRIEFLY).plan
    assert hint is not None

    plan = LnsSolver().solve(network, replace(BRIEFLY, time_limit=0.1), hint).plan

    assert plan is not None
    assert check(network, plan) == ()
    assert plan.claim.makespan <= hint.claim.makespan


def test_a_hint_that_is_not_valid_is_left_aside(network: Problem) -> None:
    hint = ListScheduler().solve(network, SolveOptions()).plan
    assert hint is not None
    broken = replace(hint, placements=(replace(hint.placements[0], core=1), *hint.placements[1:]))

    plan = LnsSolver().solve(network, BRIEFLY, broken).plan

    assert plan is not None
    assert check(network, plan) == ()


def test_another_first_objective_leaves_the_start_as_it_is(network: Problem) -> None:
    problem = replace(network, objective=Objective.of(Quantity.DRAM_TRAFFIC))

    result = LnsSolver().solve(problem, BRIEFLY)

    expected = ListScheduler().solve(problem, BRIEFLY).plan
    assert result.plan is not None
    assert expected is not None
    assert result.plan.claim.dram_traffic == expected.claim.dram_traffic


def test_progress_only_ever_gets_better(network: Problem) -> None:
    told: list[Progress] = []

    plan = LnsSolver().solve(network, replace(BRIEFLY, on_progress=told.append)).plan

    values = [one.incumbent for one in told if one.incumbent is not None]
    assert plan is not None
    assert values == sorted(values, reverse=True)
    assert values[-1] == plan.claim.makespan


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_search_with_a_valid_plan(network: Problem) -> None:
    timer: list[Timer] = []

    def interrupt_soon(_: Progress) -> None:
        if not timer:
            timer.append(Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)))
            timer[0].start()

    options = SolveOptions(time_limit=60.0, on_progress=interrupt_soon)
    plan = LnsSolver().solve(network, options).plan

    assert plan is not None
    assert check(network, plan) == ()


def test_two_workers_find_a_valid_plan_that_is_no_worse_than_the_hint(network: Problem) -> None:
    hint = ListScheduler().solve(network, SolveOptions()).plan
    assert hint is not None

    plan = LnsSolver().solve(network, replace(BRIEFLY, workers=2), hint).plan

    assert plan is not None
    assert check(network, plan) == ()
    assert plan.claim.makespan < hint.claim.makespan


def test_progress_is_told_by_the_thread_that_asked(network: Problem) -> None:
    told: list[int] = []
    options = replace(BRIEFLY, workers=2, on_progress=lambda _: told.append(get_ident()))

    LnsSolver().solve(network, options)

    assert set(told) == {get_ident()}
