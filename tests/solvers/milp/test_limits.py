"""Limits, interrupts, refusals: what the solver says when it cannot say more."""

from dataclasses import replace
from time import monotonic

import pytest

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.milp.messages import Limits
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.search import why_impossible
from spmilp.solvers.milp.solver import MilpSolver
from spmilp.solvers.milp.structure import structure_of
from spmilp.solvers.milp.tables import MilpTables
from tests.solvers.chains import chain, star
from tests.solvers.tiny_problems import tiny_problem

SLOW = tiny_problem(80)
"""Two scratchpads with much to bring back: more than HiGHS solves in seconds."""


def test_at_the_time_limit_there_is_a_checked_plan_and_a_bound_below_it() -> None:
    began = monotonic()

    result = MilpSolver().solve(SLOW, SolveOptions(time_limit=2.0))

    assert monotonic() - began < 8.0
    assert result.plan is not None
    assert check(SLOW, result.plan) == ()
    assert result.status is SolveStatus.FEASIBLE
    assert best_bound(SLOW).value <= result.bound < result.plan.claim.makespan
    assert dict(result.plan.options)["tie_breakers"] == "open"


def test_a_problem_beyond_the_limit_is_refused_with_both_numbers() -> None:
    began = monotonic()

    result = MilpSolver().solve(chain(star(cores=8, spm=4096), 20, 32), SolveOptions())

    assert monotonic() - began < 5.0
    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert "integer variables > 20000; use the solver cpsat" in result.reason


def test_a_model_beyond_the_limit_is_refused_before_it_is_built() -> None:
    result = MilpSolver(MilpOptions(most_whole=100)).solve(SLOW, SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert "> 100" in result.reason


def test_tie_breakers_whose_models_are_too_large_leave_the_proof_of_the_first() -> None:
    problem = tiny_problem(35)
    everything = MilpSolver().solve(problem, SolveOptions())

    result = MilpSolver(MilpOptions(most_whole=200)).solve(problem, SolveOptions())

    assert result.plan is not None
    assert (result.status, result.bound) == (SolveStatus.OPTIMAL, everything.bound)
    assert dict(result.plan.options)["tie_breakers"] == "open"


@pytest.mark.parametrize("name", ["gurobi", "SCIP_PY"])
def test_a_solver_that_is_not_installed_is_named(name: str) -> None:
    with pytest.raises(SpmilpError, match=f"the solver {name} is not installed; install it, or"):
        MilpSolver(MilpOptions(backend=name)).solve(tiny_problem(3), SolveOptions())


def test_a_solver_that_pulp_does_not_know_is_refused_with_those_that_it_knows() -> None:
    with pytest.raises(SpmilpError, match=r"PuLP knows no solver named 'abacus'; it knows .*highs"):
        MilpSolver(MilpOptions(backend="abacus")).solve(tiny_problem(3), SolveOptions())


def test_infeasible_comes_with_the_memory_and_the_bytes_short() -> None:
    problem = tiny_problem(1)
    tables = MilpTables(problem)
    structure = structure_of(tables, {}, relaxed=True, addressed=False)
    limits = Limits(seconds=10.0, threads=1, seed=0)

    reason = why_impossible(tables, structure, MilpOptions(), "HiGHS", limits)

    assert reason.startswith("no plan exists: spm0 is 8 B short for all operands and results")


def test_a_hint_that_claims_too_much_does_not_keep_it_from_the_optimum() -> None:
    problem = tiny_problem(16)
    best = MilpSolver().solve(problem, SolveOptions()).plan
    assert best is not None
    broken = replace(best, claim=replace(best.claim, makespan=1))

    result = MilpSolver().solve(problem, SolveOptions(), hint=broken)

    assert result.status is SolveStatus.OPTIMAL
    assert result.plan is not None
    assert result.plan.claim.makespan == result.bound == best.claim.makespan
