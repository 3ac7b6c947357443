"""COSMA's setting: one core, one scratchpad, whole tensors, any order; its model as a reference."""

from functools import cache

import pytest

from benchmarks.exact.cosma.networks import model_network, random_network
from benchmarks.exact.cosma.setting import (
    compulsory_bytes,
    largest_operator,
    least_peak,
    problem_of,
    solve,
)
from spmilp.checker.check import check
from spmilp.policies.cosma import Network
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.cpsat.solver import CpSatSolver
from spmilp.solvers.traffic.solver import Residency
from tests.solvers.fork import WAITING


def test_the_model_spills_and_retrieves_what_finds_no_room() -> None:
    assert largest_operator(WAITING) == 30 + 20 + 5
    assert least_peak(WAITING) == 30 + 20 + 20

    tight = solve(WAITING, 55, seconds=10.0)
    ample = solve(WAITING, 70, seconds=10.0)

    assert (tight.status, tight.extra, tight.bound) == ("optimal", 60, 60)
    assert (ample.status, ample.extra, ample.bound) == ("optimal", 0, 0)


def cases() -> list[object]:
    """Return the solver, operators, seed and share of each comparison; large ones are full."""
    exact = [(CpSatSolver(), 5, seed, share) for seed in range(8) for share in (0, 1)]
    large = [(Residency(), 12, seed, share) for seed in range(6) for share in (0, 1)]
    return [*exact, *(pytest.param(*case, marks=pytest.mark.full) for case in large)]


@pytest.mark.parametrize(("solver", "operators", "seed", "share"), cases())
def test_no_more_bytes_move_than_in_the_model(
    solver: Solver, operators: int, seed: int, share: int
) -> None:
    network = random_network(operators, seed)
    least, peak = largest_operator(network), least_peak(network)
    budget = least + share * (peak - least)
    theirs = solve(network, budget, seconds=20.0)
    limit = 20.0 if isinstance(solver, CpSatSolver) else None
    ours = solver.solve(problem_of(network, budget), SolveOptions(time_limit=limit))

    extra = ours.plan.claim.dram_traffic - compulsory_bytes(network)
    assert theirs.extra is None or extra <= theirs.extra
    if isinstance(solver, CpSatSolver):
        assert ours.status is SolveStatus.OPTIMAL
    elif share == 1:
        assert extra == 0


@cache
def densenet() -> Network:
    return model_network("onnx:light_densenet121")


@pytest.mark.full
@pytest.mark.parametrize(("share", "extra"), [(0, 401_408), (1, 200_704), (2, 0)])
def test_densenet_moves_as_few_bytes_as_proven(share: int, extra: int) -> None:
    """At M_R, M_H and M_P; an exact COSMA model needs as many (``benchmarks.exact.cosma``)."""
    network = densenet()
    least, peak = largest_operator(network), least_peak(network)
    problem = problem_of(network, (least * (2 - share) + peak * share) // 2)
    found = Residency().solve(problem, SolveOptions())

    assert check(problem, found.plan) == ()
    assert found.status is SolveStatus.OPTIMAL
    assert found.plan.claim.dram_traffic == compulsory_bytes(network) + extra
