"""``spmilp bound`` as a user runs it."""

from pathlib import Path

import pytest

from cli.running import MODELS, Run

PROBLEM = MODELS.parent / "instances" / "problems" / "layers-20t-3c.json"


def test_each_bound_has_a_row_and_the_best_ones_are_marked(run: Run) -> None:
    ended = run("bound", PROBLEM)

    assert ended.code == 0
    assert "layers 1: no plan has less" in ended.out
    (best,) = [line for line in ended.out.splitlines() if line.endswith("best")]
    assert best.split() == ["makespan", "critical", "path", "388", "cycles", "these", "best"]


def test_with_pins_the_bounds_are_those_of_plans_that_keep_to_them(
    run: Run, tmp_path: Path
) -> None:
    def values(*more: object) -> dict[str, int]:
        found = run("bound", PROBLEM, "--json", *more).json
        return {each["name"]: each["value"] for each in found["bounds"]}

    pins = tmp_path / "pins.yaml"
    pins.write_text("forbid_cores: [core1, core2]")
    free, pinned = values(), values("--pins", pins)

    assert pinned["work"] > 2.5 * free["work"]
    pins.write_text("forbid_cores: core_9")
    assert "no core core_9" in run("bound", PROBLEM, "--pins", pins).err


@pytest.mark.full
def test_a_model_has_a_roofline_too(run: Run) -> None:
    found = run("bound", MODELS / "resnet8_int8.onnx", "--machine", "mesh4x4", "--json").json
    values = {each["name"]: each["value"] for each in found["bounds"]}

    assert 0 < values["roofline"] <= values["work"]
    any_tiles = [b["name"] for b in found["bounds"] if b["tiles"] == "any"]
    assert any_tiles == [
        "roofline",
        "chains of groups",
        "bytes that groups need",
        "smallest tiles",
    ]
    assert 0 < values["chains of groups"] <= values["work"]
    assert found["machine"] == "mesh4x4"
