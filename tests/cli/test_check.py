"""``spmilp check`` finds the problem, and what is wrong."""

import re
from pathlib import Path

import pytest

from checker.worked_example import PLAN, PROBLEM, with_machine
from spmilp.plan.file import plan_bytes, write_pair
from spmilp.problem.file import write_problem
from tests.acceptance.doors import Run
from tests.checker.mutations.subjects import stream_on_mesh


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    write_problem(PROBLEM, folder / "problem.json")
    (folder / "plan.json").write_bytes(plan_bytes(PLAN, PROBLEM))
    return folder / "plan.json"


@pytest.mark.parametrize("left", ["", ', "problem_sha256": ""'])
def test_a_plan_that_names_no_problem_is_told(left: str, run: Run, plan_file: Path) -> None:
    text, count = re.subn(r',\s*"problem_sha256": "\w+"', left, plan_file.read_text())
    plan_file.write_text(text)
    assert count == 1
    ended = run("check", plan_file)

    assert ended.code == 0
    assert ended.err.startswith(f"warning: {plan_file}: meta.problem_sha256 is missing or empty")
    assert run("check", plan_file, "--json").json["names_problem"] is False


def test_command_lists_with_too_many_events_have_their_exit_code(run: Run, tmp_path: Path) -> None:
    problem = with_machine(events=3)
    write_problem(problem, tmp_path / "problem.json")
    (tmp_path / "plan.json").write_bytes(plan_bytes(PLAN, problem))

    ended = run("check", tmp_path / "plan.json", "--commands")

    assert ended.code == 8
    assert "7 events" in ended.err
    assert "has 3:" in ended.err


def test_a_stream_is_checked_and_simulated(run: Run, tmp_path: Path) -> None:
    subject = stream_on_mesh()
    write_pair(subject.problem, subject.plan, tmp_path)

    assert "a stream, period 180, latency 362" in run("check", tmp_path).out
    said = run("check", tmp_path, "--commands").out
    assert "of 18 inferences in a loop" in said
    assert "no race, no deadlock" in said
    assert "cycles, planned 180" in run("simulate", tmp_path).out
    assert run("export", tmp_path, "--format", "dma").code == 0
