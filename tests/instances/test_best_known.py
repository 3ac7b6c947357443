"""The table of best known results takes improvements and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest
import update_best_known
from best_known import ContradictionError, Outcome, Row, improved

from spmilp.checker.check import check
from spmilp.problem.file import read_problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.solver import ListScheduler

PROBLEMS = Path(__file__).parents[2] / "instances" / "problems"
EMPTY = Row(instance="one", tasks=7, quantity="makespan")
FIRST = Outcome(
    solver="list", objective=100, bound=60, bound_source="work", infeasible=False, seconds=1.23
)


def test_a_worse_plan_and_a_weaker_bound_change_nothing() -> None:
    row = improved(EMPTY, FIRST)

    assert row == replace(
        EMPTY, objective=100, bound=60, status="feasible",
        found_by="list", bound_by="list: work", seconds=1.2,
    )  # fmt: skip
    assert improved(row, replace(FIRST, objective=101, bound=59, solver="other")) is row
    assert improved(row, replace(FIRST, objective=None, solver="other")) is row


def test_a_plan_below_the_bound_is_a_contradiction() -> None:
    row = improved(EMPTY, FIRST)

    with pytest.raises(ContradictionError, match="bound 60 of list: work > objective 59"):
        improved(row, replace(FIRST, objective=59, bound=0))
    with pytest.raises(ContradictionError, match="proven infeasible"):
        improved(row, replace(FIRST, objective=None, infeasible=True))


def test_a_plan_that_the_checker_rejects_has_no_objective(
    capsys: pytest.CaptureFixture[str],
) -> None:
    problem = read_problem(next(PROBLEMS.glob("residual-6t*.json")))
    plan = ListScheduler().solve(problem, SolveOptions()).plan
    assert plan is not None
    assert check(problem, plan) == ()
    assert update_best_known.checked(problem, plan) == plan.claim.makespan

    late = replace(plan.placements[0], start=0, end=plan.placements[0].end)
    broken = replace(plan, placements=(late, *plan.placements[1:]))

    assert update_best_known.checked(problem, broken) is None
    assert "exact_cycles" in capsys.readouterr().err
