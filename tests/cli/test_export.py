"""``spmilp export`` as a user runs it."""

from dataclasses import replace
from pathlib import Path

import pytest

from checker.worked_example import PLAN, PROBLEM, with_machine
from spmilp.errors import ExitCode
from spmilp.plan.file import plan_bytes
from spmilp.problem.file import write_problem
from spmilp.problem.problem import Problem
from tests.acceptance.doors import MODELS, Run


def written(problem: Problem, folder: Path) -> Path:
    """Return the file of the plan by hand, on the machine of a problem."""
    write_problem(problem, folder / "problem.json")
    (folder / "plan.json").write_bytes(plan_bytes(replace(PLAN, problem_sha256=""), problem))
    return folder / "plan.json"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return written(PROBLEM, tmp_path)


@pytest.fixture
def plan_of_few_events(tmp_path: Path) -> Path:
    return written(with_machine(events=1, event_maximum=1), tmp_path)


def test_without_a_format_all_that_can_take_the_plan_are_written_beside_it(
    run: Run, plan_of_few_events: Path
) -> None:
    ended = run("export", plan_of_few_events, "--json")
    assert ended.code == 0, ended.err
    folder = plan_of_few_events.parent / "export"
    assert (folder / "dma.csv").exists()
    assert [each["format"] for each in ended.json["left_out"]] == ["commands", "npe"]
    assert str(folder / "trace.json") in ended.json["files"]


def test_a_format_that_was_asked_for_and_cannot_take_the_plan_is_said(
    run: Run, plan_of_few_events: Path
) -> None:
    ended = run("export", plan_of_few_events, "-f", "csv,commands", "-o", "out")
    assert ended.code == ExitCode.EXPORT_IMPOSSIBLE
    assert "the plan needs 16 events" in ended.err


def test_what_the_tables_take_is_printed(run: Run, tmp_path: Path) -> None:
    model = MODELS / "ds_cnn_int8.onnx"
    solved = run("solve", model, "-m", "gap8", "--solver", "list", "--tiles", "first", "-o", "out")
    assert "of constants" in solved.out
    packed = run("export", "out/plan.json", "--model", model, "-f", "c", "--json").json["footprint"]
    line = f"{packed['flash']['tables']:,} B of tables"
    assert line in solved.out
    assert line in (tmp_path / "out" / "export" / "spmilp_plan.h").read_text()
