"""COSMA as a solver: bytes as few as its setting allows, plans that pass, refusals with numbers."""

from dataclasses import replace

import pytest

from benchmarks.exact.cosma.networks import random_network
from benchmarks.exact.cosma.setting import (
    compulsory_bytes,
    largest_operator,
    least_peak,
    problem_of,
)
from spmilp.checker.check import check
from spmilp.policies.cosma import Cosma, Network, Operator
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.traffic.solver import Residency
from tests.policies.small_instances import small_instance


def traffic_of(problem: Problem) -> int:
    plan = Cosma().solve(problem, SolveOptions()).plan
    assert plan is not None
    assert check(problem, plan) == ()
    assert plan.solver == "cosma"
    return plan.claim.dram_traffic


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_beyond_the_compulsory_moves_at_the_least_peak_of_any_order(seed: int) -> None:
    network = random_network(12, seed)

    assert traffic_of(problem_of(network, least_peak(network))) == compulsory_bytes(network)


@pytest.mark.parametrize("seed", [1, 4])
def test_no_fewer_bytes_are_known_where_only_the_largest_operator_fits(seed: int) -> None:
    network = random_network(10, seed)
    problem = problem_of(network, largest_operator(network))
    other = Residency().solve(problem, SolveOptions()).plan

    assert other is not None
    assert traffic_of(problem) == other.claim.dram_traffic


def test_an_input_that_is_read_again_is_dropped_and_loaded_without_a_store() -> None:
    """Between its two readers there is no room for the input, which lies in DRAM all the time."""
    network = Network(
        name="input again",
        sizes=(640, 64, 640, 64, 64),
        operators=(
            Operator(name="first", reads=(0,), writes=1),
            Operator(name="large", reads=(1,), writes=2),
            Operator(name="small", reads=(2,), writes=3),
            Operator(name="again", reads=(0, 3), writes=4),
        ),
        outputs=frozenset({4}),
    )

    assert traffic_of(problem_of(network, 768)) == 640 + 640 + 64


@pytest.mark.parametrize(
    ("name", "objective", "reason"),
    [
        ("dense-8t-2c-bus-exact-traffic", Quantity.DRAM_TRAFFIC, "1 core; this one has 2"),
        ("residual-6t-1c-tight-balanced", Quantity.MAKESPAN, "objective is makespan"),
    ],
)
def test_what_it_does_not_take_is_refused(name: str, objective: Quantity, reason: str) -> None:
    problem = replace(small_instance(name), objective=Objective.of(objective))

    result = Cosma().solve(problem, SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert reason in result.reason
