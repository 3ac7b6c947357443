"""The log of ``spmilp solve``: on stderr, in a file, as lines of JSON on stdout."""

import json
from pathlib import Path
from typing import Any

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


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


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


def test_the_log_file_has_the_same_rows_or_lines_of_json(run: Run, problem: Path) -> None:
    ended = run("solve", problem, "-o", "out", "--log-file", "logs/solve.log")
    assert Path("logs/solve.log").read_text() == ended.err
    assert run("solve", problem, "-o", "out", "--log-file", "logs/solve.jsonl", "-q").err == ""
    found = objects(Path("logs/solve.jsonl").read_text())
    assert [each["event"] for each in found] == ["stage", "stage", "stage", "progress", "end"]
    assert [found[-2][name] for name in ("incumbent", "bound")] == [196, 150]
    assert found[-1]["status"] == "feasible"


def test_lines_of_json_end_with_the_answer(run: Run, problem: Path) -> None:
    ended = run("solve", problem, "-o", "out", "--json-lines")
    whole = run("solve", problem, "-o", "out", "--json").json
    assert (ended.code, ended.err) == (0, "")
    *events, last = objects(ended.out)
    assert [each["event"] for each in events] == ["stage", "stage", "stage", "progress", "end"]
    assert last.pop("event") == "answer"
    assert set(last) == set(whole)
    assert last["objective"] == whole["objective"]


def test_a_log_file_that_cannot_be_made_is_an_error_before_anything_is_solved(
    run: Run, problem: Path
) -> None:
    Path("taken").write_text("")
    ended = run("solve", problem, "-o", "out", "--log-file", "taken/solve.log")
    assert ended.code == 3
    assert "taken/solve.log: the log cannot be written" in ended.err
    assert not Path("out").exists()


def test_a_log_that_can_be_written_no_longer_costs_nothing_else(run: Run, problem: Path) -> None:
    ended = run("solve", problem, "-o", "out", "--log-file", "/dev/full")
    assert ended.code == 0
    assert "warning: the log goes on no longer: " in ended.err
    assert run("check", "out").code == 0


def test_names_from_files_command_no_terminal(run: Run, problem: Path) -> None:
    strange = problem.with_name("\x1b[31mred.json")
    problem.rename(strange)
    ended = run("solve", strange, "-o", "out")
    assert "\x1b" not in ended.err
    assert "\\u001b[31mred.json" in ended.err
