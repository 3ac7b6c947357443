"""``spmilp solve`` on a problem file, whatever the solver answers; its log, and its programs."""

import json
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

from checker.worked_example import PROBLEM, changed
from cli.fakes import FakeSolver, answer, interrupted_with_a_plan, interrupted_without_a_plan
from spmilp.cli import output
from spmilp.cli import solve as command
from spmilp.cli.interrupts import WHAT_REMAINS
from spmilp.problem.file import write_problem
from spmilp.report.search_log import HEADING, LogEntry
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.exact.milp.process import run as solved
from spmilp.solvers.exact.milp.program import Limits
from spmilp.solvers.exact.milp.solver import model_of
from tests.acceptance.doors import MODELS, Run
from tests.bounds.test_period import random_problem
from tests.solvers.tiny_problems import tiny_problem

Answering: TypeAlias = Callable[[FakeSolver], Path]

REQUIRED = {
    *("status", "objective", "makespan", "bound", "gap", "dram_traffic", "compulsory_dram_traffic"),
    *("peak_spm", "tasks", "transfers", "solver", "seconds", "checked"),
}
"""The fields that other programs may count on."""


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Answering:
    """Let every solver be the given one; return the worked example's problem file."""

    def use(solver: FakeSolver) -> Path:
        monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: solver)
        file = tmp_path / "example.json"
        write_problem(PROBLEM, file)
        return file

    return use


def test_a_checked_plan_is_written_and_shown(run: Run, answering: Answering) -> None:
    ended = run("solve", answering(FakeSolver(answer())), "-o", "out", "--quiet")

    assert (ended.code, ended.err) == (0, "")
    names = ["log.jsonl", "plan.json", "problem.json"]
    assert sorted(path.name for path in Path("out").iterdir()) == names
    for text in ("feasible, checked", "196 cycles", "196 ns at 1 GHz", "23.5%", "62.5% of 512 B"):
        assert text in ended.out
    assert run("check", "out/plan.json").code == 0


def test_json_is_one_object_with_the_promised_fields(run: Run, answering: Answering) -> None:
    found = run("solve", answering(FakeSolver(answer())), "-o", "out", "--json").json

    assert set(found) >= REQUIRED
    assert (found["status"], found["checked"], found["quantity"]) == ("feasible", True, "makespan")
    assert (found["objective"], found["makespan"], found["bound"]) == (196, 196, 150)
    assert found["gap"] == pytest.approx(46 / 196)
    assert (found["bound_of_any_tiles"], found["gap_of_any_tiles"]) == (None, None)
    assert found["tiles_are_fallback"] is False
    assert (found["tasks"], found["transfers"], found["peak_spm"]) == (5, 13, 320)
    assert [core["core"] for core in found["cores"]] == ["c0", "c1", "c2"]
    assert found["files"] == [str(Path("out/problem.json")), str(Path("out/plan.json"))]


def test_the_folder_is_named_after_the_problem_and_the_machine(
    run: Run, answering: Answering
) -> None:
    run("solve", answering(FakeSolver(answer())))
    assert Path("out/worked_example-two_scratchpads_behind_an_L2/plan.json").exists()


def test_the_options_reach_the_solver(run: Run, answering: Answering) -> None:
    solver = FakeSolver(answer())
    limits = ("--time-limit", "2m", "--gap", "5%", "--seed", "7", "--workers", "2")
    run("solve", answering(solver), *limits)

    assert solver.options is not None
    # Reading the problem takes its part of the time.
    assert solver.options.time_limit is not None
    assert 60.0 < solver.options.time_limit < 120.0
    assert solver.options.gap == 0.05
    assert (solver.options.seed, solver.options.workers) == (7, 2)


@pytest.mark.parametrize(
    ("result", "code", "says"),
    [
        (answer(None, SolveStatus.INFEASIBLE, reason="task left: 70656 B > 65536 B"), 4, "70656 B"),
        (answer(None, SolveStatus.UNKNOWN), 5, "without a plan; bound 150"),
    ],
)
def test_without_a_plan_an_older_one_stays(
    result: SolverResult, code: int, says: str, run: Run, answering: Answering
) -> None:
    run("solve", answering(FakeSolver(answer())), "-o", "out")
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    ended = run("solve", answering(FakeSolver(result)), "-o", "out")

    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before


def never_asked() -> None:
    pytest.fail("nothing is solved whose plan cannot be written")


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("taken").write_text("a file")
    ended = run("solve", "absent.onnx", "-o", "taken/out")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("error: taken/out: cannot be written: Not a directory")


def test_a_folder_in_the_place_of_the_plan_is_told_before_anything_is_solved(
    run: Run, answering: Answering
) -> None:
    Path("out/plan.json").mkdir(parents=True)
    ended = run("solve", answering(FakeSolver(answer(), before=never_asked)), "-o", "out")
    assert ended.code == 3
    assert "out/plan.json: cannot be written: Is a directory" in ended.err


def test_without_a_plan_json_has_nulls(run: Run, answering: Answering) -> None:
    unknown = FakeSolver(answer(None, SolveStatus.UNKNOWN))
    ended = run("solve", answering(unknown), "--json")

    assert ended.code == 5
    assert set(ended.json) >= REQUIRED
    assert (ended.json["status"], ended.json["checked"]) == ("unknown", False)
    assert (ended.json["makespan"], ended.json["gap"], ended.json["bound"]) == (None, None, 150)


def test_a_plan_that_the_checker_rejects_is_our_defect(run: Run, answering: Answering) -> None:
    run("solve", answering(FakeSolver(answer())), "-o", "out")
    before = Path("out/plan.json").read_bytes()
    wrong = changed(placements={3: {"start": 48, "end": 58}})
    ended = run("solve", answering(FakeSolver(answer(wrong))), "-o", "out")

    assert (ended.code, ended.out) == (70, "")
    assert "the checker rejects the plan" in ended.err
    assert Path("out/plan.json").read_bytes() == before
    assert Path("out/rejected-plan.json").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_search_still_writes_its_plan(
    number: signal.Signals, code: int, run: Run, answering: Answering
) -> None:
    problem = answering(FakeSolver(answer(), before=interrupted_with_a_plan(number)))
    ended = run("solve", problem, "-o", "out")

    assert ended.code == code
    assert "interrupted, checked" in ended.out
    assert run("check", "out/plan.json").code == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_before_there_is_a_plan_writes_nothing(
    number: signal.Signals, code: int, run: Run, answering: Answering
) -> None:
    problem = answering(FakeSolver(answer(), before=interrupted_without_a_plan(number)))
    ended = run("solve", problem, "-o", "out", "--quiet")

    assert (ended.code, ended.out) == (code, "")
    assert ended.err == f"error: interrupted; {WHAT_REMAINS}\n"
    assert not Path("out").exists()


@pytest.mark.full
def test_an_interrupt_while_tiles_are_searched_for_leaves_the_plan_that_they_were_judged_by(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[LogEntry] = []

    def entered(log: output.SolveLog, better: LogEntry) -> None:
        heard.append(better)
        if len(heard) == 1:
            interrupted_without_a_plan(signal.SIGINT)()

    monkeypatch.setattr(output.SolveLog, "entry", entered)
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: pytest.fail("it is too late"))
    ended = run("solve", MODELS / "ds_cnn_int8.onnx", "-m", "gap9", "-o", "out")

    assert ended.code == 130
    assert "interrupted, checked" in ended.out
    assert run("check", "out/plan.json").code == 0


def test_an_interrupt_after_the_search_is_noted_and_the_plan_written(
    run: Run, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_check(problem: object, plan: object) -> tuple[()]:
        interrupted_without_a_plan(signal.SIGINT)()
        return ()

    monkeypatch.setattr("spmilp.checker.check.check", slow_check)
    ended = run("solve", answering(FakeSolver(answer())), "-o", "out")

    assert ended.code == 130
    assert Path("out/plan.json").exists()


def test_a_second_interrupt_while_the_plan_is_written_says_what_the_folder_holds(
    run: Run, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted_twice(number: int) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    problem = answering(FakeSolver(answer()))
    monkeypatch.setattr("spmilp.files.os.fsync", interrupted_twice)
    ended = run("solve", problem, "-o", "out", "--quiet")

    assert (ended.code, ended.out) == (130, "")
    assert ended.err == f"error: interrupted; {WHAT_REMAINS}\n"


def test_an_error_that_nobody_foresaw_gives_a_short_message(run: Run, answering: Answering) -> None:
    def fail() -> None:
        raise ZeroDivisionError("by nobody")

    problem = answering(FakeSolver(answer(), before=fail))
    short, long = run("solve", problem), run("--debug", "solve", problem)

    assert (short.code, long.code) == (70, 70)
    assert "ZeroDivisionError: by nobody" in short.err
    assert "Traceback" not in short.err
    assert "Traceback" in long.err


def test_a_plan_that_takes_longer_than_the_limit_says_so(
    run: Run, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = answering(FakeSolver(answer()))
    seconds = count(10**9, 10)
    monkeypatch.setattr(command.time, "perf_counter", lambda: float(next(seconds)))
    ended = run("solve", problem, "--time-limit", "15s", "-o", "out")

    assert ended.code == 0
    assert "the time limit of 15 s was exceeded: it took" in ended.err
    assert "of which 10 s to write" in ended.err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 4.31 GiB"),
        ImportError("_highspy.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_cannot_be_had_is_no_internal_error(
    error: Exception, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy() -> None:
        raise error

    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: FakeSolver(answer(), greedy))
    model = MODELS / "ds_cnn_int8.onnx"
    ended = run("solve", model, "-m", "gap9", "--tiles", "first", "-o", "out", "-q")

    assert ended.code == 5
    assert ended.err == f"error: out of memory ({error}); {WHAT_REMAINS}\n"


@pytest.fixture
def problem(answering: Answering) -> Path:
    """Let the solver be one that answers at once; return a problem's file."""
    return answering(FakeSolver(answer()))


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


def test_the_model_is_written_beside_the_plan(run: Run) -> None:
    write_problem(tiny_problem(4), Path("problem.json"))

    ended = run("solve", "problem.json", "--solver", "milp", "--write-model", "model.mps", "--json")

    assert ended.code == 0
    assert (ended.json["status"], ended.json["solver"]) == ("optimal", "milp")
    assert "model.mps" in ended.json["files"]
    assert Path("model.mps").read_text().splitlines()[-1] == "ENDATA"


def test_the_model_of_a_stream_is_that_of_a_period(run: Run) -> None:
    write_problem(random_problem(8), Path("problem.json"))

    ended = run("solve", "problem.json", "--period", "15", "--write-model", "model.lp", "--json")

    assert ended.code == 0
    assert "task1_start_in_a_period" in Path("model.lp").read_text()
    ended = run("solve", "problem.json", "--period", "7", "--write-model", "short.lp")
    assert ended.code == 3
    assert "the model has no stream of period 7; give a longer period" in ended.err


def test_a_solution_of_the_model_is_the_plan(run: Run) -> None:
    problem = tiny_problem(4)
    write_problem(problem, Path("problem.json"))
    _, rows, _ = model_of(problem)
    values = solved(rows.program, "HiGHS", Limits(seconds=60, threads=1, seed=0)).values
    lines = [f"{one.name} {values[one.index]}\n" for one in rows.program.variables]
    Path("model.sol").write_text("".join(lines))

    ended = run("solve", "problem.json", "--solution", "model.sol", "-o", "out")

    assert ended.code == 0
    assert ended.out.splitlines()[1].split()[:2] == ["makespan", "30"]
    assert run("check", "out").code == 0
    ended = run("solve", "problem.json", "--solution", "model.sol", "--hint", "out")
    assert (ended.code, "solution: it is the whole plan" in ended.err) == (2, True)
    Path("model.sol").write_text("x0 1\n")
    ended = run("solve", "problem.json", "--solution", "model.sol")
    assert ended.code == 3
    assert "model.sol: 'x0' is none of the model's 32 variables" in ended.err


def test_a_suffix_of_no_model_ends_the_command_before_it_solves(run: Run) -> None:
    write_problem(tiny_problem(4), Path("problem.json"))

    ended = run("solve", "problem.json", "--write-model", "model.xml")

    assert ended.code == 3
    assert "model.xml: a model is written as .mps or .lp" in ended.err
    assert not Path("out").exists()
