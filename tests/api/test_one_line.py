"""The command line and ``spmilp.solve`` give the same plan, byte for byte."""

from pathlib import Path

import spmilp
from spmilp.plan.file import plan_bytes
from tests.acceptance.doors import MODELS, Run

MODEL = MODELS / "autoencoder_int8.onnx"


def text(result: spmilp.Result) -> bytes:
    assert result.plan is not None
    return plan_bytes(result.plan, result.problem)


def test_one_solver_gives_one_plan(run: Run, tmp_path: Path) -> None:
    options = ("--solver", "list", "--seed", "3", "--time-limit", "none", "-o", tmp_path / "out")
    assert run("solve", MODEL, "-m", "gap9", *options).code == 0
    answer = spmilp.solve(MODEL, "gap9", solver="list", seed=3, time_limit=None)

    assert (tmp_path / "out" / "plan.json").read_bytes() == text(answer)
    assert text(spmilp.solve(answer.problem, solver="list", seed=3, time_limit=None)) == text(
        answer
    )
