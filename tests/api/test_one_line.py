"""The command line, ``spmilp.solve`` and the benchmarks give the same plan, byte for byte."""

import pickle
from pathlib import Path

import pytest

import spmilp
from cli.running import MODELS, Run
from spmilp.bench.child import RunRequest
from spmilp.bench.suite import SOLVE, ModelOnMachine
from spmilp.bench.worker import solve_of
from spmilp.plan.write import plan_text
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions

MODEL = MODELS / "autoencoder_int8.onnx"


def text(result: spmilp.Result) -> bytes:
    assert result.plan is not None
    return plan_text(result.plan, result.problem).encode()


def benchmarked(solver: str, pickled: Path) -> spmilp.Result:
    request = RunRequest(
        instance="row",
        source=ModelOnMachine(model=str(MODEL), machine="gap9"),
        objective=None,
        pickled=pickled,
        problem_sha256="",
        solver=solver,
        options=SolveOptions(seed=3),
    )
    return solve_of(request)()


def test_one_solver_gives_one_plan(run: Run, tmp_path: Path) -> None:
    options = ("--solver", "list", "--seed", "3", "--time-limit", "none", "-o", tmp_path / "out")
    assert run("solve", MODEL, "-m", "gap9", *options).code == 0
    answer = spmilp.solve(MODEL, "gap9", solver="list", seed=3, time_limit=None)
    pickled = tmp_path / "problem"
    pickled.write_bytes(pickle.dumps(answer.problem))

    assert (tmp_path / "out" / "plan.json").read_bytes() == text(answer)
    assert text(benchmarked("list", pickled)) == text(answer)
    assert text(spmilp.solve(answer.problem, solver="list", seed=3, time_limit=None)) == text(
        answer
    )


def test_the_whole_line_gives_one_plan(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The portfolio goes by the clock: another solver in its place, and tiles for so many tasks.
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: find_solver("list"))
    monkeypatch.setattr("spmilp.source.MOST_TASKS_EVALUATED", 1_000)
    options = ("--seed", "3", "--time-limit", "none", "-o", tmp_path / "out")
    assert run("solve", MODEL, "-m", "gap9", *options).code == 0
    answer = spmilp.solve(MODEL, "gap9", seed=3, time_limit=None)

    assert (tmp_path / "out" / "plan.json").read_bytes() == text(answer)
    assert text(benchmarked(SOLVE, tmp_path)) == text(answer)
    assert text(answer) != text(spmilp.solve(MODEL, "gap9", tiles="first", time_limit=None))
