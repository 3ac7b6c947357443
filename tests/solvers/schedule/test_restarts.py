"""Perturbed restarts: valid plans, never worse than the list scheduler, the same each time."""

from dataclasses import replace

import pytest

from spmilp.checker.check import check
from spmilp.plan.plan import Plan
from spmilp.problem.objective import OF_ONE_INFERENCE, Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.restarts import PerturbedRestarts
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.chains import chain, star

PROBLEM = chain(star(4, 1000), layers=4, strips=6)


def searched(problem: Problem, steps: int, seed: int = 0) -> Plan:
    plan = PerturbedRestarts(steps).solve(problem, SolveOptions(seed=seed)).plan
    assert check(problem, plan) == ()
    return plan


def listed(problem: Problem) -> Plan:
    plan = ListScheduler().solve(problem, SolveOptions()).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("quantity", list(OF_ONE_INFERENCE))
def test_each_quantity_can_be_what_is_sought(quantity: Quantity) -> None:
    problem = replace(chain(star(3, 900), layers=3, strips=5), objective=Objective.of(quantity))

    found = searched(problem, 40).claim.of(quantity)

    assert found <= listed(problem).claim.of(quantity)


def test_it_finds_shorter_plans_than_the_list_scheduler_where_there_are_some() -> None:
    assert searched(PROBLEM, 200).claim.makespan < listed(PROBLEM).claim.makespan
