"""The command line: results on stdout, JSON, exit codes, and messages that say what to do."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.doors import MACHINES, MODELS, PROBLEMS, ROOT, Run, assert_valid
from tests.runs.small import MACHINE

VERBS = (
    *("solve", "check", "replay", "report", "explain", "bound", "pack", "compare", "sweep"),
    *("export", "machines", "solvers", "calibrate"),
)
MODEL = MODELS / "autoencoder_int8.onnx"
PROBLEM = PROBLEMS / "gru-12t-2c-crossbar-ample-balanced.json"


@pytest.fixture
def plan(tiny: Path, tmp_path: Path) -> Path:
    """Return a copy of the plan by hand, in a folder with its problem."""
    shutil.copytree(tiny, tmp_path / "given")
    return tmp_path / "given" / "plan.json"


def spoiled(plan: Path, field: str, value: int, table: str = "solve", row: int = 0) -> None:
    """Put another number into a plan's file."""
    content: dict[str, Any] = json.loads(plan.read_text())
    (content["solve"] if table == "solve" else content[table][row])[field] = value
    plan.write_text(json.dumps(content))


def test_the_help_names_every_verb_and_the_exit_codes(run: Run) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert all(f" {verb} " in ended.out for verb in VERBS)
    assert "130, 143" in ended.out
    assert run("--version").out.startswith("spmilp ")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, run: Run) -> None:
    ended = run(verb, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"spmilp {verb}" in ended.out


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_that_is_not_there_is_wrong_usage(verb: str, run: Run) -> None:
    ended = run(verb, "--beauty")
    assert (ended.code, ended.out) == (2, "")
    assert "--beauty" in ended.err


def test_solve_writes_a_plan_and_prints_its_figures(run: Run, tmp_path: Path) -> None:
    ended = run("solve", MODEL, "--machine", "gap8", "--solver", "list", "-o", "out", "--quiet")
    assert ended.code == 0
    assert "makespan" in ended.out
    assert "gap" in ended.out
    assert_valid(tmp_path / "out")
    found = run("solve", MODEL, "-m", "gap8", "--solver", "list", "-o", "out", "--json").json
    assert found["checked"] is True
    assert found["status"] in ("optimal", "feasible")
    assert found["bound"] <= found["objective"]
    assert (
        found["objective"]
        == json.loads((tmp_path / "out/plan.json").read_text())["solve"]["makespan"]
    )


def test_solve_takes_a_problem_with_an_objective_and_logs(run: Run, tmp_path: Path) -> None:
    options = ("--solver", "list", "--objective", "dram_traffic", "--time-limit", "20s")
    ended = run("solve", PROBLEM, *options, "-o", "out")
    assert ended.code == 0
    assert "solving" in ended.err
    assert [json.loads(line)["event"] for line in (tmp_path / "out/log.jsonl").open()][-1] == "end"
    assert run("solve", PROBLEM, *options, "-o", "out", "--json").json["quantity"] == "dram_traffic"


def test_a_gap_that_is_not_reached_has_its_exit_code_only_when_strict(run: Run) -> None:
    options = ("--solver", "list", "--gap", "0.1%", "-o", "out", "--quiet")
    assert run("solve", PROBLEM, *options).code == 0
    assert run("solve", PROBLEM, *options, "--strict-gap").code == 6


def test_check_accepts_a_valid_plan_and_proves_its_commands(run: Run, plan: Path) -> None:
    ended = run("check", plan.parent)
    assert (ended.code, ended.err) == (0, "")
    found = run("check", plan, "--json", "--commands").json
    assert (found["valid"], found["names_problem"]) == (True, True)
    assert found["commands"]["waits"] > 0


def test_check_names_the_rule_and_both_numbers_of_an_invalid_plan(run: Run, plan: Path) -> None:
    content = json.loads(plan.read_text())
    makespan = content["solve"]["makespan"]
    late = max(range(4), key=lambda row: content["tasks"][row]["start"])
    spoiled(plan, "start", makespan, "tasks", late)
    ended = run("check", plan)
    if ended.code == 3:  # what follows from the row is written, too, and no longer agrees
        assert str(makespan) in ended.err
    else:
        assert ended.code == 7
        found = run("check", plan, "--json")
        assert (found.code, found.json["valid"]) == (7, False)
        assert all({"rule", "objects", "message"} <= {*each} for each in found.json["violations"])
        assert any(str(makespan) in each["message"] for each in found.json["violations"])
    for verb in ("explain", "report", "export"):
        assert run(verb, plan).code == ended.code, verb


def test_replay_compares_every_output(run: Run) -> None:
    pytest.importorskip("onnxruntime")
    assert run("solve", MODEL, "-m", "gap8", "--solver", "list", "-o", "out", "-q").code == 0
    ended = run("replay", "out", "--model", MODEL)
    assert (ended.code, ended.err) == (0, "")
    found = run("replay", "out/plan.json", "--model", MODEL, "--json")
    assert found.code == 0
    wrong = run("replay", "out", "--model", MODELS / "ds_cnn_int8.onnx")
    assert wrong.code == 3
    assert "Traceback" not in wrong.err


def test_bound_prints_every_bound_and_marks_the_best(run: Run) -> None:
    ended = run("bound", PROBLEM)
    assert ended.code == 0
    assert "best" in ended.out
    found = run("bound", PROBLEM, "--json").json
    values = {row["name"]: row["value"] for row in found["bounds"]}
    assert values[found["best"]["makespan"]] > 0
    assert {"critical path", "work", "traffic", "compulsory traffic"} <= values.keys()
    assert found["quantity"] == "makespan"


def test_compare_prints_and_writes_the_same_table(run: Run, tmp_path: Path) -> None:
    solvers = "list,greedy:locality/round_robin"
    ended = run("compare", PROBLEM, "--solvers", solvers, "-o", "table.csv")
    assert (ended.code, (tmp_path / "table.csv").exists()) == (0, True)
    found = run("compare", PROBLEM, "--solvers", solvers, "--json").json
    assert [row["solver"] for row in found["runs"]] == solvers.split(",")
    assert all(row["bound"] <= row["objective"] for row in found["runs"])


def test_export_writes_what_was_asked_for_with_a_list_of_files(run: Run, plan: Path) -> None:
    ended = run("export", plan, "--format", "csv,dma", "-o", "out", "--json")
    assert ended.code == 0
    assert {Path(each).name for each in ended.json["files"]} >= {"allocation.csv", "dma.csv"}
    unknown = run("export", plan, "--format", "papyrus", "-o", "out")
    assert unknown.code == 2
    assert "papyrus" in unknown.err


def test_explain_says_why_a_plan_takes_its_cycles(run: Run, plan: Path) -> None:
    ended = run("explain", plan)
    assert ended.code == 0
    assert max(map(len, ended.out.splitlines())) <= 80
    found = run("explain", plan, "--json").json
    assert found["status"] == "slow"
    assert sum(found["chain"]["cycles"].values()) == found["makespan"]
    assert sum(row["cycles"] for row in found["bindings"]) == found["makespan"]


def test_machines_are_listed_and_shown(run: Run) -> None:
    found = run("machines", "--json").json["machines"]
    assert {row["name"] for row in found} == {*MACHINES}
    shown = run("machines", "gap9")
    assert shown.code == 0
    assert "gap9" in shown.out
    unknown = run("machines", "gap99")
    assert unknown.code == 3
    assert "gap9" in unknown.err


@pytest.mark.full
def test_calibrate_lists_the_tiles_of_a_model(run: Run, tmp_path: Path) -> None:
    ended = run("calibrate", MODELS / "resnet8_int8.onnx", "-m", "edge16", "-o", "tiles.csv")
    assert ended.code == 0
    assert (tmp_path / "tiles.csv").read_text().startswith("kind,operator,dtype,")


def holding(name: str, content: bytes) -> Callable[[Path], list[object]]:
    """Return what writes a file and gives its name."""

    def write(folder: Path) -> list[object]:
        (folder / name).write_bytes(content)
        return [name]

    return write


def problem_with_a_bad_field(folder: Path) -> list[object]:
    content = json.loads(PROBLEM.read_text())
    content["tasks"][3]["reads"] = [99999]
    (folder / "bad.json").write_text(json.dumps(content))
    return ["bad.json"]


def machine_with(folder: Path, old: str, new: str) -> list[object]:
    assert old in MACHINE
    (folder / "machine.yaml").write_text(MACHINE.replace(old, new))
    return [MODELS / "autoencoder_f32.onnx", "--machine", "machine.yaml", "--solver", "list"]


BAD: list[tuple[Callable[[Path], list[object]], int, tuple[str, ...]]] = [
    (lambda folder: ["absent.onnx"], 3, ("absent.onnx",)),
    (holding("notes.onnx", b"These are notes, not a network.\n" * 20), 3, ("notes.onnx",)),
    (holding("half.onnx", MODEL.read_bytes()[: MODEL.stat().st_size // 2]), 3, ("half.onnx",)),
    (holding("half.json", PROBLEM.read_bytes()[:2000]), 3, ("half.json",)),
    (holding("list.json", b'{"format": "shopping list"}'), 3, ("list.json", "spmilp-problem")),
    (problem_with_a_bad_field, 3, ("99999",)),
    (lambda folder: [PROBLEM, "--machine", "mesh4x4"], 2, ("machine",)),
    (lambda folder: [MODEL, "--machine", "mesh4x5"], 3, ("mesh4x5", "mesh4x4")),
    (lambda folder: [MODEL, "--solver", "oracle"], 2, ("oracle", "cpsat")),
    (lambda folder: [MODEL, "--dim", "bananas=3"], 3, ("bananas",)),
    (lambda folder: [MODEL, "--objective", "beauty"], 2, ("beauty", "makespan")),
    (lambda folder: [MODEL, "--time-limit", "soon"], 2, ("soon",)),
    (lambda folder: [MODEL, "--gap", "2"], 2, ("gap",)),
    (lambda folder: [MODEL, "--pins", "absent.yaml"], 3, ("absent.yaml",)),
    (lambda folder: [MODEL, "--hint", "absent"], 3, ("absent",)),
    (lambda folder: [MODEL, "--lock", "absent"], 3, ("absent",)),
    (lambda folder: machine_with(folder, "size_kib: 8", "size_kib: -128"), 3, ("-128",)),
    (lambda folder: machine_with(folder, "size_kib: 8", "size_bytes: 8"), 4, ("8 B",)),
    (lambda folder: machine_with(folder, "count: 2", "couny: 2"), 3, ("couny", "count")),
]


def name_of(case: object) -> str:
    """Return a name without an address, the same in each process that collects the tests."""
    return getattr(case, "__name__", str(case))[:30]


@pytest.mark.parametrize(("make", "code", "says"), BAD, ids=name_of)
def test_bad_input_has_one_message_and_its_exit_code(
    make: Callable[[Path], list[object]], code: int, says: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    arguments = make(tmp_path)
    ended = run("solve", *arguments, "-o", "out")
    assert (ended.code, ended.out) == (code, "")
    flat = " ".join(ended.err.replace("│", " ").split())
    assert all(text in flat for text in says), ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "out").exists()
    if code == 2:
        return  # what the parser refuses has no JSON
    as_json = run("solve", *arguments, "-o", "out", "--json")
    assert as_json.code == code
    assert (as_json.json["status"], as_json.json["exit_code"]) == ("error", code)


@pytest.mark.parametrize("verb", ["check", "report", "export", "explain"])
@pytest.mark.parametrize("given", ["absent", "half"])
def test_a_plan_that_cannot_be_read_is_said(verb: str, given: str, run: Run, plan: Path) -> None:
    if given == "half":
        plan.write_text(plan.read_text()[:1000])
    else:
        plan.unlink()
    ended = run(verb, plan)
    assert (ended.code, ended.out) == (3, "")
    assert "plan.json" in ended.err
    assert "Traceback" not in ended.err


def test_a_plan_of_another_problem_is_refused(run: Run, plan: Path) -> None:
    shutil.copy(PROBLEM, plan.with_name("problem.json"))
    ended = run("check", plan)
    assert ended.code == 3
    assert "problem" in ended.err


def test_a_plan_whose_problem_lies_elsewhere_is_checked_with_it(run: Run, plan: Path) -> None:
    elsewhere = plan.with_name("problem.json").rename(plan.with_name("elsewhere.json"))
    assert run("check", plan).code == 3
    assert run("check", plan, "--problem", elsewhere).code == 0


def spmilp(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "spmilp", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_the_command_runs_as_a_process_of_its_own(tiny: Path) -> None:
    done = spmilp("check", tiny)
    assert (done.returncode, done.stderr) == (0, "")
    assert spmilp("check", "absent").returncode == 3


@pytest.mark.full
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_solve_with_its_code_and_the_best_plan(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    problem = PROBLEMS / "stages-48t-4c-mesh2x2-tight-balanced.json"
    command = [sys.executable, "-m", "spmilp", "solve", str(problem), "--time-limit", "300s"]
    running = subprocess.Popen(
        [*command, "-o", str(tmp_path)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    while "%" not in running.stderr.readline():  # the first plan with its gap
        assert running.poll() is None
    running.send_signal(number)
    _, err = running.communicate(timeout=120)
    assert running.returncode == code, err
    assert "Traceback" not in err
    assert_valid(tmp_path)


@pytest.mark.full
def test_a_reader_that_has_gone_has_its_own_code(tiny: Path) -> None:
    script = f"('{sys.executable}' -m spmilp check '{tiny}'; echo $? >&2) | true"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr.strip() in ("141", "0")
