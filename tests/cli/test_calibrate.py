"""``spmilp calibrate``: tiles to be measured, errors of measured ones, and what goes wrong."""

import sys
from pathlib import Path

import pytest

from benchmarks.tiles.calibration import simulated
from spmilp import calibration
from spmilp.calibration import as_csv
from spmilp.machine.read import load_machine
from tests.acceptance.doors import MODELS, Run


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(calibration, "TREES", 40)
    file = tmp_path / "measured.csv"
    file.write_text(as_csv(simulated(load_machine("edge16").machine, 40, 0)))
    return file


def test_errors_are_shown_and_the_measurements_used(run: Run, measured: Path) -> None:
    pytest.importorskip("sklearn")
    shown = run("calibrate", measured, "-m", "edge16")
    assert shown.code == 0
    for text in ("On held-out rows", "tile Conv int8", "error by rule"):
        assert text in shown.out
    (family,) = run("calibrate", measured, "-m", "edge16", "--json").json["families"]
    assert family["error"] < family["error_by_rule"]
    assert family["rows"] == 40

    options = ("-m", "edge16", "--solver", "greedy:round_robin/round_robin", "-o", "out", "-q")
    solved = run("solve", MODELS / "ds_cnn_int8.onnx", *options, "--cost-model", measured)
    assert solved.code == 0
    assert "lie outside of what was measured" in solved.err
    assert "roofline" not in solved.out


def test_what_is_wrong_is_said_with_an_exit_code(
    run: Run, measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = run("calibrate", measured, "-m", "gap9")
    assert elsewhere.code == 3
    assert "line 2: kind: gap9 has no cores 'tile'" in elsewhere.err

    Path("bad.csv").write_text("{}")
    model = MODELS / "ds_cnn_int8.onnx"
    bad = run("solve", model, "-m", "edge16", "--cost-model", "bad.csv")
    assert (bad.code, Path("out").exists()) == (3, False)
    assert "has no row with a measured tile" in bad.err

    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    without = run("calibrate", measured, "-m", "edge16")
    assert without.code == 2
    assert "pip install 'spmilp[calibrate]'" in without.err
