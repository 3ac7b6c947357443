"""Large tables are written some rows at a time, and nobody can tell from the file."""

from dataclasses import replace

import pytest

from benchmarks.generated import generated_problem
from spmilp.plan.write import plan_text
from spmilp.problem import documents
from spmilp.problem.write import problem_text
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.list_scheduler.solver import ListScheduler

PROBLEM = generated_problem(12, 2)
PLAN = ListScheduler(("locality", "critical_path")).solve(PROBLEM, SolveOptions()).plan


@pytest.mark.parametrize("rows", [1, 5, 1000])
def test_the_text_does_not_depend_on_how_many_rows_are_made_at_a_time(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PLAN is not None
    expected = problem_text(PROBLEM), plan_text(PLAN, PROBLEM)

    monkeypatch.setattr(documents, "ROWS_AT_A_TIME", rows)

    assert (problem_text(PROBLEM), plan_text(PLAN, PROBLEM)) == expected


def test_what_is_wrong_in_a_late_row_is_said_with_the_number_of_the_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert PLAN is not None
    residencies = list(PLAN.residencies)
    residencies[7] = replace(residencies[7], offset=-64)
    monkeypatch.setattr(documents, "ROWS_AT_A_TIME", 3)

    with pytest.raises(ValueError, match=r"residencies\.7\.offset"):
        plan_text(replace(PLAN, residencies=tuple(residencies)), PROBLEM)


def test_a_table_without_rows_is_an_empty_list() -> None:
    document = {"rows": documents.Rows(dict, ()), "more": 1}

    assert documents.as_text(document) == '{\n  "rows": [],\n  "more": 1\n}\n'
