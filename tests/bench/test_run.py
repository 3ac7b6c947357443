"""A suite of two tiny instances: run, killed, resumed."""

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pandas as pd
import pytest

from spmilp.analysis.analyse import analyse
from spmilp.analysis.attribution import attribution_of
from spmilp.bench.best_known import read_best
from spmilp.bench.child import RunRequest
from spmilp.bench.folder import read_runs
from spmilp.bench.make import make_problem
from spmilp.bench.read import load_suite
from spmilp.bench.records import FILE
from spmilp.bench.run import PROBLEMS, BenchSettings, run_rows
from spmilp.bench.suite import Generated
from spmilp.bench.worker import main
from spmilp.checker.check import check
from spmilp.errors import ExitCode
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions

pytestmark = pytest.mark.full

SUITE = """
description: Two tiny instances.
time_limit_seconds: 5
solvers: [list, "greedy:contiguous/layer_by_layer"]
rows:
  - generated: {tasks: 12, cores: [2, 4]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "two.yaml"
    file.write_text(SUITE)
    return file


def lines(folder: Path) -> list[str]:
    path = folder / FILE
    return path.read_text().splitlines() if path.exists() else []


def test_a_benchmark_that_was_killed_goes_on_where_it_was(tmp_path: Path, suite: Path) -> None:
    folder = tmp_path / "out"
    command = [sys.executable, "-m", "spmilp", "bench", str(suite), "-o", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = monotonic() + 100
    while not lines(folder) and process.poll() is None and monotonic() < deadline:
        sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = lines(folder)
    assert 1 <= len(before) < 4

    # What the kill may have left of a line is not in the way.
    with (folder / FILE).open("a") as file:
        file.write('{"instance": "gener')
    said: list[str] = []
    records = run_rows(load_suite(str(suite)).rows, BenchSettings(folder=folder), said.append)

    after = lines(folder)
    assert after[: len(before)] == before
    assert len(after) == len(list(records)) == 4
    assert sum(": list" in text or ": greedy" in text for text in said) == 4 - len(before)
    _the_tables_are_right(folder)
    _nothing_is_run_twice(suite, folder)


def _the_tables_are_right(folder: Path) -> None:
    runs = pd.read_csv(folder / "runs.csv")
    assert list(runs["instance"]) == 2 * ["generated-12t-2c"] + 2 * ["generated-12t-4c"]
    assert set(runs["status"]) <= {"optimal", "feasible"}
    assert (runs["violations"] == 0).all()
    assert (runs["bound"] <= runs["objective"]).all()
    for column in ("seconds_to_first", "cpu_seconds", "peak_mib", "transfers", "tasks"):
        assert (runs[column] > 0).all(), column
    assert (runs["seconds_to_first"] <= runs["seconds"]).all()
    assert runs["problem_sha256"].nunique() == 2
    progress = pd.read_csv(folder / "progress.csv")
    last = progress.groupby(["instance", "solver"])["objective"].last()
    assert set(last) == set(runs["objective"])
    assert "best greedy" in (folder / "summary.md").read_text()


def _nothing_is_run_twice(suite: Path, folder: Path) -> None:
    """With everything there, not even the problems are made again; other limits are other runs."""
    said: list[str] = []
    rows = load_suite(str(suite)).rows
    before = lines(folder)
    run_rows(rows, BenchSettings(folder=folder), said.append)
    assert said == []

    # Without what is remembered of the problems they are made again, and found to be the same.
    (folder / PROBLEMS).write_text("[broken")
    run_rows(rows[:1], BenchSettings(folder=folder), said.append)
    assert said == ["generated-12t-2c: making the problem"]
    assert lines(folder) == before


def test_the_outcome_is_what_the_solver_finds_in_this_process(tmp_path: Path, suite: Path) -> None:
    row = load_suite(str(suite)).rows[0]
    best = tmp_path / "best.csv"
    settings = BenchSettings(
        folder=tmp_path / "out", jobs=2, attribute=True, keep_best=best, best_known=best
    )
    (record, other) = run_rows([row], settings)
    problem, _ = make_problem(row.source, None, None)
    plan = find_solver("greedy:contiguous/layer_by_layer").solve(problem, SolveOptions()).plan

    assert plan is not None
    assert check(problem, plan) == ()
    assert {record.solver, other.solver} == set(row.solvers)
    greedy = next(r for r in (record, other) if "greedy" in r.solver)
    assert greedy.objective == plan.claim.makespan
    assert greedy.attribution == attribution_of(analyse(problem, plan))
    least = min(record.objective or 0, other.objective or 0)
    assert read_best(best)[row.name].makespan == least
    gaps = pd.read_csv(tmp_path / "out" / "gaps.csv")
    assert (gaps["best_known"] == least).all()
    assert gaps["found_with_more_time"].min() == 0


def test_rows_that_cannot_be_made_and_solvers_that_cannot_run_are_rows(tmp_path: Path) -> None:
    text = """
solvers: ["milp:mosek"]
rows:
  - generated: {tasks: 12, cores: 2}
  - builder: nobodys
  - problem: missing.json
"""
    (tmp_path / "bad.yaml").write_text(text)
    run_rows(load_suite(str(tmp_path / "bad.yaml")).rows, BenchSettings(folder=tmp_path / "out"))
    runs = read_runs(tmp_path / "out").set_index("instance")

    assert runs["status"].to_dict() == {
        "generated-12t-2c": "failed",
        "nobodys": "not made",
        "missing": "not made",
    }
    assert "mosek" in runs.loc["generated-12t-2c", "reason"].lower()
    assert "no builder is called 'nobodys'" in runs.loc["nobodys", "reason"]
    assert "missing.json" in runs.loc["missing", "reason"]


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    problem, _ = make_problem(Generated(tasks=40, cores=4), None, None)
    (tmp_path / "problem").write_bytes(pickle.dumps(problem))
    request = RunRequest(
        instance="x",
        source=Generated(tasks=40, cores=4),
        objective=None,
        pickled=tmp_path / "problem",
        problem_sha256="aa",
        solver="cpsat",
        options=SolveOptions(time_limit=300.0),
    )
    (tmp_path / "request").write_bytes(pickle.dumps(request))
    worker = subprocess.Popen(
        [sys.executable, "-m", main.__module__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{tmp_path / 'request'}\n".encode())
    worker.stdin.flush()
    assert json.loads(worker.stdout.readline()) == {"event": "started"}
    worker.stdin.close()
    try:
        assert worker.wait(timeout=60) == 1
    finally:
        worker.stdout.close()
        if worker.poll() is None:
            os.kill(worker.pid, signal.SIGKILL)


def test_a_signal_ends_the_run_and_leaves_the_tables(tmp_path: Path) -> None:
    text = SUITE.replace("time_limit_seconds: 5", "time_limit_seconds: 300")
    (tmp_path / "long.yaml").write_text(text.replace('"greedy:contiguous/layer_by_layer"', "cpsat"))
    folder = tmp_path / "out"
    command = [sys.executable, "-m", "spmilp", "bench", str(tmp_path / "long.yaml")]
    process = subprocess.Popen(
        [*command, "-o", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = monotonic() + 100
    while not lines(folder) and process.poll() is None and monotonic() < deadline:
        sleep(0.02)
    process.send_signal(signal.SIGTERM)
    shown, _ = process.communicate(timeout=60)

    assert process.returncode == ExitCode.TERMINATED
    assert "list" in shown
    assert list(read_runs(folder)["solver"]) == ["list"]
    assert len(pd.read_csv(folder / "runs.csv")) == 1
