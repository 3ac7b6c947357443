"""``spmilp replay`` runs a plan on numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spmilp.checker.values.compare import reference_outputs
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


def test_an_output_outside_the_tolerance_has_its_exit_code(
    run: Run, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shifted(model: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {name: values + 100 for name, values in reference_outputs(model, inputs).items()}

    monkeypatch.setattr("spmilp.checker.values.compare.reference_outputs", shifted)
    ended = run("replay", plan_file, "--model", MODEL)

    assert ended.code == 7
    assert "OUTSIDE" in ended.out
