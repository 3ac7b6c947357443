"""How the solver behaves: never worse, always valid, deterministic, interruptible."""

from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest

from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.problem.file import read_problem
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.clock import Pace
from spmilp.solvers.improve.solver import LnsSolver
from spmilp.solvers.schedule.solver import ListScheduler

MODELS = Path(__file__).parents[3] / "models"
INSTANCES = Path(__file__).parents[3] / "instances" / "problems"
BRIEFLY = SolveOptions(time_limit=2.0)


@pytest.fixture(scope="module")
def network() -> Problem:
    return problem_of(MODELS / "resnet8_int8.onnx", "edge16")


def test_a_network_gets_shorter_than_by_the_list_scheduler_alone(network: Problem) -> None:
    start = ListScheduler().solve(network, SolveOptions()).plan

    plan = LnsSolver().solve(network, replace(BRIEFLY, pace=Pace(process_time))).plan

    assert check(network, plan) == ()
    assert plan.claim.makespan < start.claim.makespan


def test_another_first_objective_leaves_the_start_as_it_is(network: Problem) -> None:
    problem = replace(network, objective=Objective.of(Quantity.DRAM_TRAFFIC))

    result = LnsSolver().solve(problem, BRIEFLY)

    expected = ListScheduler().solve(problem, BRIEFLY).plan
    assert result.plan.claim.dram_traffic == expected.claim.dram_traffic


def test_a_bad_hint_does_not_stand_in_the_way_of_a_plan_that_is_proven_best() -> None:
    problem = read_problem(INSTANCES / "layers-20t-3c.json")
    best = LnsSolver().solve(problem, SolveOptions())
    assert best.status is SolveStatus.OPTIMAL
    late = tuple(
        replace(one, start=one.start + 1_000, end=one.end + 1_000) for one in best.plan.placements
    )
    makespan = best.plan.claim.makespan + 1_000
    hint = replace(best.plan, placements=late, claim=replace(best.plan.claim, makespan=makespan))
    assert check(problem, hint) == ()

    found = LnsSolver().solve(problem, SolveOptions(), hint)
    assert found.status is SolveStatus.OPTIMAL
    assert found.plan.claim.makespan == best.plan.claim.makespan
