"""``spmilp check``, ``explain`` and ``export`` as a user runs them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from checker.worked_example import PLAN, PROBLEM, with_machine
from spmilp.errors import ExitCode
from spmilp.plan.file import plan_bytes, write_pair
from spmilp.problem.file import write_problem
from spmilp.problem.problem import Problem
from spmilp.result import read
from tests.acceptance.doors import MODELS, Run
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


EXAMPLE = MODELS.parent / "docs" / "example" / "resnet8"


def test_json_has_cycles_that_add_up(run: Run) -> None:
    found = run("explain", EXAMPLE / "plan.json", "--json").json
    makespan = found["makespan"]
    assert sum(found["chain"]["cycles"].values()) == makespan
    assert sum(row["cycles"] for row in found["bindings"]) == makespan
    for core in found["cores"]:
        assert core["busy"] + sum(core["idle"].values()) == makespan
    assert sum(row["bytes"] for row in found["excess"]) == read(EXAMPLE).dram_traffic - 91_072


def test_groups_are_shown_with_their_work_and_what_bounds_them(run: Run) -> None:
    ended = run("explain", MODELS / "resnet8_int8.onnx", "--groups")

    assert (ended.code, ended.err) == (0, "")
    for text in ("12,501,632 MAC", "13 fused groups", "9 Conv", "compute", "dram", "roofline"):
        assert text in ended.out


def test_figures_of_groups_add_up(run: Run) -> None:
    found = run(
        "explain", MODELS / "ds_cnn_int8.onnx", "-m", "epiphany3", "--groups", "--json"
    ).json

    assert (found["network"], found["machine"]) == ("ds_cnn_int8", "epiphany3")
    assert found["macs"] == sum(group["macs"] for group in found["groups"])
    slowest = max(found["compute_cycles"], found["dram_cycles"])
    assert found["roofline_cycles"] - 1 <= slowest <= found["roofline_cycles"]
    assert all(group["tiles"] >= 1 for group in found["groups"])


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
