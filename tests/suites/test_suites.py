"""Contents of the suites of the package."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.bench.suite import SOLVE, ModelOnMachine, ProblemFile, list_suites, load_suite
from benchmarks.scaled import load_scaled
from spmilp.frontend.find import find_model

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", list_suites())
def test_models_machines_and_problems_of_the_suites_are_there(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    for row in load_suite(name).rows:
        if isinstance(row.source, ModelOnMachine):
            assert find_model(row.source.model).exists()
            assert load_scaled(row.source.machine, row.source.scale).machine.cores
        elif isinstance(row.source, ProblemFile):
            assert row.source.path.exists()


def test_networks_has_forty_rows_on_many_machines_with_all_one_pass_rules() -> None:
    rows = load_suite("networks").rows
    sources = [row.source for row in rows]
    machines = Counter(each.machine for each in sources if isinstance(each, ModelOnMachine))
    models = {each.model for each in sources if isinstance(each, ModelOnMachine)}

    assert len(rows) >= 40
    assert len(machines) >= 6
    assert {model for model in models if model.startswith("onnx:")} == {
        f"onnx:light_{name}"
        for name in (
            *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
            *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
        )
    }
    for row in rows:
        assert {
            "auto",
            SOLVE,
            "greedy:contiguous/layer_by_layer",
            "greedy:earliest_finish/critical_path",
        } <= set(row.solvers)
        assert (row.time_limit, row.workers) == (120, 2)


def test_the_tiny_suite_needs_nothing_but_the_package() -> None:
    for row in load_suite("tiny").rows:
        assert not isinstance(row.source, ProblemFile)
        assert not (isinstance(row.source, ModelOnMachine) and "/" in row.source.model)
