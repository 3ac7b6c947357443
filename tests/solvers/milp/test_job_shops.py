"""Flexible job shops, whose optima are published: problems without data."""

import csv
from pathlib import Path

import pytest

from benchmarks.convert import read_job_shop
from spmilp.checker.check import check
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.solver import MilpSolver

SHOPS = Path(__file__).parents[4] / "shared" / "data" / "fjsp"


@pytest.mark.skipif(not SHOPS.exists(), reason="skipped: data not present")
@pytest.mark.parametrize("backend", ["highs", "cbc"])
@pytest.mark.parametrize("name", [f"fattahi{number}" for number in range(1, 6)])
def test_the_published_optimum_is_proven(name: str, backend: str) -> None:
    with (SHOPS / "best_known.csv").open() as file:
        optima = {row["instance"]: int(row["optimum"]) for row in csv.DictReader(file)}
    problem = read_job_shop(SHOPS / f"{name}.txt")

    result = MilpSolver(MilpOptions(backend=backend)).solve(problem, SolveOptions())

    assert result.plan is not None
    assert check(problem, result.plan) == ()
    assert result.status is SolveStatus.OPTIMAL
    assert (result.plan.claim.makespan, result.bound) == (optima[name], optima[name])
