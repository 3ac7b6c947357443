"""COSMA's setting: one core, one scratchpad, whole tensors, any order."""

from functools import cache

import pytest

from benchmarks.exact.cosma.networks import model_network, random_network
from benchmarks.exact.cosma.setting import largest_operator, least_peak, problem_of, solve
from spmilp.checker.check import check
from spmilp.policies.cosma import Network
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.traffic.solver import Residency

pytestmark = pytest.mark.full


@cache
def densenet() -> Network:
    return model_network("onnx:light_densenet121")


@pytest.mark.parametrize(("share", "extra"), [(0, 401_408), (1, 200_704), (2, 0)])
def test_densenet_moves_as_few_bytes_as_proven(share: int, extra: int) -> None:
    """At M_R, M_H and M_P; an exact COSMA model needs as many (``benchmarks.exact.cosma``)."""
    network = densenet()
    least, peak = largest_operator(network), least_peak(network)
    problem = problem_of(network, (least * (2 - share) + peak * share) // 2)
    found = Residency().solve(problem, SolveOptions())

    assert found.plan is not None
    assert check(problem, found.plan) == ()
    assert found.status is SolveStatus.OPTIMAL
    assert found.plan.claim.dram_traffic == network.compulsory + extra


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0, 1])
def test_random_networks_need_no_more_than_the_exact_model(seed: int, share: int) -> None:
    network = random_network(12, seed)
    least, peak = largest_operator(network), least_peak(network)
    budget = least + share * (peak - least)
    theirs = solve(network, budget, seconds=20.0)
    ours = Residency().solve(problem_of(network, budget), SolveOptions()).plan

    assert ours is not None
    extra = ours.claim.dram_traffic - network.compulsory
    assert theirs.status == "optimal"
    assert theirs.extra is not None
    assert extra <= theirs.extra
    if share == 1:
        assert extra == 0
