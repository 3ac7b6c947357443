"""The log of ``spmilp solve``: on stderr, and beside the plan."""

import json
from pathlib import Path

import pytest

from checker.worked_example import PROBLEM
from cli.fakes import FakeSolver, answer
from spmilp.problem.file import write_problem
from spmilp.report.search_log import HEADING
from tests.acceptance.doors import Run


@pytest.fixture
def problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let the solver be one that answers at once; return a problem's file."""
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: FakeSolver(answer()))
    write_problem(PROBLEM, tmp_path / "example.json")
    return tmp_path / "example.json"


def test_stages_and_what_gets_better_are_rows_on_stderr(run: Run, problem: Path) -> None:
    ended = run("solve", problem, "-o", "out")
    lines = ended.err.splitlines()
    assert ended.code == 0
    assert lines[0] == HEADING
    assert [line.split("s  ", 1)[1] for line in lines[1:4]] == [
        f"reading {problem}",
        "solving",
        "checking the plan",
    ]
    assert lines[-2].split()[-3:] == ["196", "150", "23.5%"]
    assert lines[-1].endswith("s  feasible")


@pytest.mark.parametrize("option", ["--quiet", "-q", "--json"])
def test_nothing_is_logged_where_it_is_not_wanted(run: Run, problem: Path, option: str) -> None:
    ended = run("solve", problem, "-o", "out", option)
    assert (ended.code, ended.err) == (0, "")


def test_the_log_is_kept_beside_the_plan_as_lines_of_json(run: Run, problem: Path) -> None:
    assert run("solve", problem, "-o", "out", "-q").code == 0
    found = [json.loads(line) for line in Path("out/log.jsonl").read_text().splitlines()]
    assert [each["event"] for each in found] == ["stage", "stage", "stage", "progress", "end"]
    assert [found[-2][name] for name in ("incumbent", "bound")] == [196, 150]
    assert found[-1]["status"] == "feasible"


def test_names_from_files_command_no_terminal(run: Run, problem: Path) -> None:
    strange = problem.with_name("\x1b[31mred.json")
    problem.rename(strange)
    ended = run("solve", strange, "-o", "out")
    assert "\x1b" not in ended.err
    assert "\\u001b[31mred.json" in ended.err
