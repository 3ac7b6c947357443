"""The command line, ``spmilp.solve`` and the benchmarks give the same plan, byte for byte."""

from dataclasses import replace
from pathlib import Path

import pytest

import spmilp
from benchmarks.bench.suite import SOLVE, ModelOnMachine, Row, solve_of
from spmilp.plan.file import plan_text
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.tile_selection.settings import SEARCH
from tests.acceptance.doors import MODELS, Run

MODEL = MODELS / "autoencoder_int8.onnx"


def text(result: spmilp.Result) -> bytes:
    assert result.plan is not None
    return plan_text(result.plan, result.problem).encode()


def benchmarked(solver: str, problem: Problem) -> spmilp.Result:
    source = ModelOnMachine(model=str(MODEL), machine="gap9")
    row = Row(name="row", source=source, solvers=(solver,), time_limit=None)
    return solve_of(row, solver, 3, problem)()


def test_one_solver_gives_one_plan(run: Run, tmp_path: Path) -> None:
    options = ("--solver", "list", "--seed", "3", "--time-limit", "none", "-o", tmp_path / "out")
    assert run("solve", MODEL, "-m", "gap9", *options).code == 0
    answer = spmilp.solve(MODEL, "gap9", solver="list", seed=3, time_limit=None)

    assert (tmp_path / "out" / "plan.json").read_bytes() == text(answer)
    assert text(benchmarked("list", answer.problem)) == text(answer)
    assert text(spmilp.solve(answer.problem, solver="list", seed=3, time_limit=None)) == text(
        answer
    )


@pytest.mark.full
def test_the_whole_line_gives_one_plan(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The portfolio goes by the clock: another solver in its place, and tiles for so many tasks.
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: find_solver("list"))
    few = replace(SEARCH, tasks=1_000)
    monkeypatch.setattr("spmilp.tile_selection.settings.SEARCH", few)
    options = ("--seed", "3", "--time-limit", "none", "-o", tmp_path / "out")
    assert run("solve", MODEL, "-m", "gap9", *options).code == 0
    answer = spmilp.solve(MODEL, "gap9", seed=3, time_limit=None)

    assert (tmp_path / "out" / "plan.json").read_bytes() == text(answer)
    assert text(benchmarked(SOLVE, answer.problem)) == text(answer)
    assert text(answer) != text(spmilp.solve(MODEL, "gap9", tiles="first", time_limit=None))
