"""Cost models: what they learn, where they answer, and that their files hold numbers only."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spmilp import calibration, pipeline
from spmilp.calibration import (
    FEATURES,
    CostModel,
    FamilyModel,
    Split,
    calibrate,
    rates_of,
    read_cost_model,
    read_measurements,
)
from spmilp.errors import ArgumentError, FileError, SpmilpError
from spmilp.machine.machine import Machine
from spmilp.machine.read import load_machine

MODEL = Path(__file__).parents[2] / "models" / "ds_cnn_int8.onnx"
GREEDY = "greedy:round_robin/round_robin"
STUMP = Split(feature=2, threshold=5.0, low=0.0, high=float(np.log(2)))


def model_of_convolutions(machine: Machine, high: float = 40.0) -> CostModel:
    """Return a model that knows of int8 convolutions only.

    They take four times as long where there is more than 2^5 of vector work.
    """
    kind = machine.kinds[0]
    family = FamilyModel(
        family=(kind.name, "Conv", "int8"),
        rows=30,
        ranges=((-1.0, high),) * len(FEATURES),
        offset=0.0,
        trees=(STUMP, STUMP),
        error=0.1,
        error_by_rule=0.2,
    )
    return CostModel(kinds={kind.name: rates_of(kind)}, families=(family,))


@pytest.fixture
def edge() -> Machine:
    return load_machine("edge16").machine


@pytest.mark.full
def test_the_same_rows_give_the_same_bytes_and_the_reader_what_was_fitted(
    edge: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    monkeypatch.setattr(calibration, "TREES", 60)
    from benchmarks.tiles.calibration import simulated

    rows = tuple(simulated(edge, 60, 0))
    first, again = calibrate(rows, edge)[0], calibrate(rows, edge)[0]
    assert first.encoded() == again.encoded()

    (tmp_path / "first").write_bytes(first.encoded())
    read, sha256 = read_cost_model(tmp_path / "first")
    kind = read.on(edge, "first", sha256).kinds[0]
    told = [kind.measured.cycles("Conv", row.work, row.rule) for row in rows]
    features = [calibration.features_of(row.work, row.rule) for row in rows]
    theirs = ensemble.GradientBoostingRegressor(
        n_estimators=60, max_depth=3, min_samples_leaf=2, subsample=0.7, random_state=0
    ).fit(features, np.log([row.cycles / row.rule for row in rows]))
    expected = np.exp(theirs.predict(features)) * [row.rule for row in rows]
    assert told == pytest.approx(expected, abs=0.51)


@pytest.mark.full
def test_a_family_that_no_model_predicts_better_keeps_the_analytic_one(edge: Machine) -> None:
    pytest.importorskip("sklearn")
    from benchmarks.tiles.calibration import simulated

    exact = tuple(row._replace(cycles=row.rule) for row in simulated(edge, 30, 0))
    with pytest.raises(SpmilpError, match="no better than the analytic model"):
        calibrate(exact, edge)
    with pytest.raises(SpmilpError, match="24 rows, fewer than 25"):
        calibrate(exact[:24], edge)


def test_tasks_get_learned_cycles_and_analytic_ones_outside_with_a_warning(
    edge: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "cost.model"
    file.write_bytes(model_of_convolutions(edge).encoded())

    def cycles(cost_model: Path | None) -> dict[str, list[int]]:
        result = pipeline.solve(MODEL, "edge16", solver=GREEDY, cost_model=cost_model)
        assert result.violations == ()
        assert (result.roofline is None) == (cost_model is not None)
        kinds = {group.name: group for group in result.origin.network.groups}
        found: dict[str, list[int]] = {}
        for task in result.problem.tasks:
            group = kinds[task.tile.of]
            operator = group.operators[group.anchor].kind
            found.setdefault(operator, []).append(task.cycles[0])
        return found

    by_rule = cycles(None)
    with pytest.warns(UserWarning, match=r"AveragePool int8: nothing learned"):
        learned = cycles(file)

    assert sum(learned["Conv"]) > 3 * sum(by_rule["Conv"])
    assert learned["AveragePool"] == by_rule["AveragePool"]

    file.write_bytes(model_of_convolutions(edge, high=3.0).encoded())
    with pytest.warns(UserWarning, match=r"Conv int8: rule [\d,]+, measured from 0 to 8"):
        assert cycles(file) == by_rule


def test_a_model_is_for_the_cores_that_it_was_made_for(edge: Machine, tmp_path: Path) -> None:
    file = tmp_path / "cost.model"
    file.write_bytes(model_of_convolutions(edge).encoded())
    faster = replace(edge, kinds=(replace(edge.kinds[0], launch=7),))
    model, sha256 = read_cost_model(file)

    with pytest.raises(FileError, match=r"launch 50.*launch 7.*Calibrate again"):
        model.on(faster, "cost.model", sha256)
    with pytest.raises(FileError, match=r"was made for cores tile: .*; and gap9 has"):
        pipeline.solve(MODEL, "gap9", cost_model=file)
    problem = pipeline.problem_of(MODEL, "edge16")
    with pytest.raises(ArgumentError, match="carries its cycles"):
        pipeline.solve(problem, cost_model=file)


class _Harm:
    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (Path("harm"),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trees": [[99, 5.0, 0.0, 0.0]]}, r"trees.0.0: .*99"),
        ({"trees": [[0, 5.0, 0.0]]}, "trees.0: "),
        ({"trees": [[0, 5.0, 0.0, 1e999]]}, r"Infinity at byte \d+ is no number"),
        ({"ranges": [[0.0, 1.0]]}, "ranges: "),
    ],
)
def test_a_broken_model_is_refused(
    change: dict[str, object], message: str, edge: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "cost.model"
    content = json.loads(model_of_convolutions(edge).encoded())
    content["families"][0] |= change
    file.write_text(json.dumps(content))

    with pytest.raises(FileError, match=message):
        read_cost_model(file)


def test_a_pickle_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cost.model").write_bytes(pickle.dumps(_Harm()))

    with pytest.raises(FileError, match="no spmilp-cost-model file"):
        read_cost_model("cost.model")
    assert not Path("harm").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no row"),
        ("kind,cycle\ntile,9\n", "line 2: cycle: unknown field; did you mean cycles"),
        ("kind,operator,dtype\ntile,Conv,int8\n", "line 2: cycles: is missing"),
        ("kind,operator,dtype,cycles\n", "no row"),
        ("kind,K,K,cycles\n", "a column is there twice"),
        ("kind,operator,dtype,cycles\ntile,Conv,int8,0\n", "line 2: cycles: .*'0'"),
        (
            "kind,operator,dtype,cycles\ntile,Conv,int8,1,2\n",
            "line 2: beyond the header: unknown field",
        ),
        ("kind,operator,dtype,cycles\npe,Conv,int8,1\n", "line 2: kind: edge16 has no cores 'pe'"),
        ("kind,operator,dtype,cycles,K\ntile,Conv,int8,1,-2\n", "line 2: K: .*'-2'"),
        (b"kind,operator,dtype,cycles\n\xff", "no CSV in UTF-8"),
    ],
)
def test_bad_measurements_name_the_line(
    text: str | bytes, message: str, edge: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "measured.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())

    with pytest.raises(FileError, match=message):
        read_measurements(file, edge)
