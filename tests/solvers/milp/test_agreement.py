"""MILP and brute force find the same optima of tiny problems."""

from dataclasses import replace

import pytest

from spmilp.checker.check import check
from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import measure
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.solver import MilpSolver
from tests.oracle.solver import BruteForce
from tests.solvers.tiny_problems import tiny_problem

SEARCHED = (3, 7, 10, 16, 26, 36, 52, 59, 78, 94, 104, 109, 112, 138)
"""Problems whose list schedule is not known to be optimal by a simple bound."""


def values(problem: Problem, result: SolverResult) -> list[int]:
    """Return a plan's quantities in the objective's order."""
    assert result.plan is not None
    plan = result.plan
    found = measure(problem, plan.placements, plan.residencies, plan.transfers)
    return [found.of(quantity) for quantity in problem.objective.order]


@pytest.mark.parametrize("number", SEARCHED)
def test_all_four_quantities_are_those_of_the_brute_force(number: int) -> None:
    problem = tiny_problem(number)
    oracle = BruteForce().solve(problem, SolveOptions())

    result = MilpSolver().solve(problem, SolveOptions())

    assert result.plan is not None
    assert check(problem, result.plan) == ()
    assert result.status is SolveStatus.OPTIMAL
    assert dict(result.plan.options)["tie_breakers"] == "proven"
    assert values(problem, result) == values(problem, oracle)


@pytest.mark.parametrize("number", [16, 78, 104])
def test_a_dram_with_little_room_for_spills_counts(number: int) -> None:
    problem = tiny_problem(number)
    size = sum(tensor.bytes for tensor in problem.tensors) + 8
    memories = tuple(
        replace(memory, size=size) if memory.kind is MemoryKind.DRAM else memory
        for memory in problem.machine.memories
    )
    problem = replace(problem, machine=replace(problem.machine, memories=memories))

    result = MilpSolver().solve(problem, SolveOptions())

    oracle = BruteForce().solve(problem, SolveOptions())
    assert result.status is oracle.status is SolveStatus.OPTIMAL
    assert values(problem, result) == values(problem, oracle)


@pytest.mark.parametrize("number", [3, 7, 16, 26, 60])
def test_cbc_finds_the_same_as_highs(number: int) -> None:
    problem = tiny_problem(number)

    highs = MilpSolver().solve(problem, SolveOptions())
    cbc = MilpSolver(MilpOptions(backend="cbc")).solve(problem, SolveOptions())

    assert cbc.status is SolveStatus.OPTIMAL
    assert values(problem, cbc) == values(problem, highs)


@pytest.mark.parametrize("number", [14, 74, 84, 117, 132])
def test_what_the_brute_force_cannot_solve_the_milp_proves_infeasible(number: int) -> None:
    problem = tiny_problem(number)
    assert BruteForce().solve(problem, SolveOptions()).status is SolveStatus.INFEASIBLE

    result = MilpSolver().solve(problem, SolveOptions())

    assert result.status is SolveStatus.INFEASIBLE
    assert "no engine can bring" in result.reason
