"""The table of best known results takes improvements and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest
import update_best_known
from best_known import ContradictionError, Outcome, Row, improved, read_table, write_table

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


def test_a_better_bound_alone_keeps_who_found_the_plan() -> None:
    row = improved(
        improved(EMPTY, FIRST),
        replace(FIRST, solver="cpsat", bound_source="cpsat", objective=120, bound=100),
    )

    assert (row.objective, row.bound, row.status) == (100, 100, "optimal")
    assert (row.found_by, row.bound_by) == ("list", "cpsat")


def test_a_plan_below_the_bound_is_a_contradiction() -> None:
    row = improved(EMPTY, FIRST)

    with pytest.raises(ContradictionError, match="bound 60 of list: work > objective 59"):
        improved(row, replace(FIRST, objective=59, bound=0))
    with pytest.raises(ContradictionError, match="proven infeasible"):
        improved(row, replace(FIRST, objective=None, infeasible=True))


def test_a_table_reads_as_it_was_written(tmp_path: Path) -> None:
    rows = {"one": improved(EMPTY, FIRST), "two": replace(EMPTY, instance="two", tasks=3)}

    write_table(rows.values(), tmp_path / "table.csv")

    assert read_table(tmp_path / "table.csv") == rows


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
