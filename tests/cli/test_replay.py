"""``spmilp replay`` runs a plan on numbers."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spmilp.checker.values.compare import reference_outputs
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import compute
from spmilp.pipeline import solve
from spmilp.result import Result
from tests.acceptance.doors import MODELS, Run

MODEL = MODELS / "autoencoder_int8.onnx"


@pytest.fixture(scope="module")
def solved() -> Result:
    return solve(MODEL, "mesh4x4", solver="list")


@pytest.fixture
def plan_file(solved: Result, tmp_path: Path) -> Path:
    _, plan = solved.save(tmp_path / "out")
    return plan


def test_inputs_may_come_from_a_file(run: Run, plan_file: Path, tmp_path: Path) -> None:
    values = np.linspace(-1, 1, 640, dtype=np.float32).reshape(1, 640)
    np.savez(tmp_path / "x.npz", input=values)
    np.savez(tmp_path / "y.npz", another=values)

    assert run("replay", plan_file, "--model", MODEL, "--input", tmp_path / "x.npz").code == 0
    wrong = run("replay", plan_file, "--model", MODEL, "--input", tmp_path / "y.npz")
    assert (wrong.code, wrong.out) == (3, "")
    assert "no array input" in wrong.err


def test_the_first_wrong_operator_is_named_and_has_an_exit_code(
    run: Run, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def off_by_one(call: Call) -> Any:
        return compute(call) + (call.operator.kind == "Gemm")

    monkeypatch.setattr("spmilp.checker.values.replay.compute", off_by_one)
    ended = run("replay", plan_file, "--model", MODEL)

    assert ended.code == 7
    assert "OUTSIDE" in ended.out
    assert re.search(r"QuantizeLinear \S+ is the first that differs: element \(0, ", ended.out)
    assert re.search(r"task \S+, tile \(\(0, 1\), .*, result in \S+ at \d+", ended.out)


def test_outputs_of_a_file_may_differ_by_the_tolerance(
    run: Run, plan_file: Path, tmp_path: Path
) -> None:
    values = {"input": np.linspace(-1, 1, 640, dtype=np.float32).reshape(1, 640)}
    expected = reference_outputs(MODEL, values)
    for name, apart, code in (("near", 0, 0), ("far", 1, 7)):
        shifted = {output: array + np.float32(apart) for output, array in expected.items()}
        np.savez(tmp_path / name, **values, **shifted)
        given = run("replay", plan_file, "--model", MODEL, "--input", tmp_path / f"{name}.npz")
        assert given.code == code, given.out
