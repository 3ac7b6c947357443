"""Stream: sets of cores, allocations of whole layers, and both orders."""

import pytest

from spmilp.plan.plan import Plan
from spmilp.policies.stream import Stream, core_sets
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.orders import operators_of
from tests.policies.small_instances import small_instance
from tests.solvers.chains import chain, star

CHAIN = chain(star(4, 8192), layers=3, strips=8)


def plan_with(problem: Problem, generations: int, seed: int = 0) -> Plan:
    plan = Stream(generations).solve(problem, SolveOptions(seed=seed)).plan
    assert plan is not None
    return plan


def test_each_layer_lies_on_one_set_of_cores() -> None:
    plan = plan_with(CHAIN, generations=5)
    layers, sets = operators_of(CHAIN).tolist(), core_sets(CHAIN)
    for layer in range(3):
        used = {one.core for one in plan.placements if layers[one.task] == layer}
        assert used in [set(cores) for cores in sets]


@pytest.mark.full
def test_more_generations_are_never_worse_and_sometimes_better() -> None:
    problem = small_instance("mlp-24t-4c-ring-tight-balanced")
    first, last = (plan_with(problem, count, seed=5).claim.makespan for count in (0, 16))
    assert last < first


def test_a_limit_that_is_over_leaves_the_first_allocation() -> None:
    plan = Stream().solve(CHAIN, SolveOptions(time_limit=0.0)).plan

    assert plan is not None
    assert dict(plan.options)["allocations"] == "1"
