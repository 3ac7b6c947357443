"""Cost models: what they learn, where they answer, and which files are refused."""

from pathlib import Path

import pytest

from spmilp import calibration, pipeline
from spmilp.calibration import as_csv, read_measurements
from spmilp.errors import ArgumentError, FileError
from spmilp.machine.machine import Machine
from spmilp.machine.read import load_machine

MODEL = Path(__file__).parents[2] / "models" / "ds_cnn_int8.onnx"
GREEDY = "greedy:round_robin/round_robin"


@pytest.fixture
def edge() -> Machine:
    return load_machine("edge16").machine


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(calibration, "TREES", 40)


@pytest.mark.usefixtures("quick")
def test_tasks_get_learned_cycles_and_analytic_ones_outside_with_a_warning(
    edge: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "measured.csv"

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
    # All convolutions that a search would consider, four times as long as the rates say.
    network = pipeline.tiled_problem(MODEL, "edge16")[1].network
    tiles = calibration.tiles_worth_measuring(network, edge)
    slow = [tile._replace(cycles=4 * tile.rule) for tile in tiles if tile.family[1] == "Conv"]
    file.write_text(as_csv(slow))
    with pytest.warns(UserWarning, match=r"AveragePool int8: nothing learned"):
        learned = cycles(file)
    assert sum(learned["Conv"]) > 3 * sum(by_rule["Conv"])
    assert learned["AveragePool"] == by_rule["AveragePool"]

    small = sorted(slow, key=lambda tile: tile.rule)[:30]
    file.write_text(as_csv(small))
    with pytest.warns(UserWarning, match=r"Conv int8: \w+ [\d,]+, measured from [\d,]+ to [\d,]+"):
        cycles(file)

    problem = pipeline.problem_of(MODEL, "edge16")
    with pytest.raises(ArgumentError, match="carries its cycles"):
        pipeline.solve(problem, cost_model=file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no row"),
        ("kind,cycle\ntile,9\n", "line 2: cycle: unknown field; did you mean cycles"),
        ("kind,K,K,cycles\n", "a column is there twice"),
        ("kind,operator,dtype,cycles\ntile,Conv,int8,0\n", "line 2: cycles: .*'0'"),
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
