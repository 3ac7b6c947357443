"""``spmilp compare`` on problem files."""

import csv
import io
from pathlib import Path

import pytest

from checker.worked_example import PROBLEM
from cli.running import Run
from spmilp.errors import ExitCode
from spmilp.problem.file import write_problem

TWO = "greedy:contiguous/layer_by_layer,list"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "example.json"
    write_problem(PROBLEM, found)
    return found


def test_the_same_table_is_printed_and_written(run: Run, file: Path) -> None:
    ended = run("compare", file, "--solvers", TWO, "-o", "table.csv")

    assert (ended.code, ended.err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(Path("table.csv").read_text())))
    assert [row["solver"] for row in rows] == TWO.split(",")
    for row in rows:
        assert int(row["bound"]) <= int(row["objective"])
        assert f"{int(row['objective']):,}" in ended.out


def test_json_holds_the_runs_and_the_summary(run: Run, file: Path) -> None:
    found = run("compare", file, "--solvers", "list", "--json").json

    (row,), (summary,) = found["runs"], found["summary"]
    assert row["solver"] == summary["solver"] == "list"
    assert row["ratio_to_best"] == 1.0
    assert summary["plans"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--solvers", "list,nothing"), "nothing"),
        (("--solvers", "list,list"), "different names"),
        (("--solvers", ","), "different names"),
        (("--machine", "mesh4x4"), "carries its machine"),
    ],
)
def test_wrong_usage_is_explained_and_nothing_is_written(
    run: Run, file: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = run("compare", file, *arguments, "-o", "table.csv")

    assert ended.code == ExitCode.USAGE
    assert said in ended.err
    assert not Path("table.csv").exists()


def test_one_instance_given_twice_is_refused(run: Run, file: Path) -> None:
    ended = run("compare", file, file)

    assert ended.code == ExitCode.USAGE
    assert "'example'" in ended.err
