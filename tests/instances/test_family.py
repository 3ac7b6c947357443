"""The committed instances: they read, are made again alike, and cover what they promise."""

from pathlib import Path

import pytest
from bare import bare_problems
from best_known import read_table
from family import SPECS
from make_instances import made

from spmilp.problem.file import problem_bytes, read_problem
from spmilp.problem.problem import Problem

PROBLEMS = Path(__file__).parents[2] / "instances" / "problems"


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return {path.stem: read_problem(path) for path in sorted(PROBLEMS.glob("*.json"))}


@pytest.mark.parametrize("piece", ["residual", "gru", "dense"])
@pytest.mark.full
def test_the_script_makes_the_same_bytes(piece: str) -> None:
    for name, problem in made(spec for spec in SPECS if spec.name == piece):
        assert problem_bytes(problem) == (PROBLEMS / f"{name}.json").read_bytes(), name


def test_problems_without_data_are_the_same_too() -> None:
    for name, problem in bare_problems().items():
        assert problem_bytes(problem) == (PROBLEMS / f"{name}.json").read_bytes(), name


def test_the_table_has_a_row_for_each_instance_and_says_nothing_else(
    problems: dict[str, Problem],
) -> None:
    rows = read_table()

    assert sorted(rows) == sorted(problems)
    for name, row in rows.items():
        assert row.tasks == len(problems[name].tasks)
        assert row.quantity == problems[name].objective.first.value
        assert row.objective is not None
        assert row.bound <= row.objective
        assert (row.status == "optimal") == (row.bound == row.objective)
        assert row.bound_by
        assert row.found_by
