"""``spmilp compare`` on problem files."""

from pathlib import Path

import pytest

from checker.worked_example import PROBLEM
from spmilp.errors import ExitCode
from spmilp.problem.file import write_problem
from tests.acceptance.doors import Run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "example.json"
    write_problem(PROBLEM, found)
    return found


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
