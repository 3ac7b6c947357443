"""``spmilp explain`` as a user runs it."""

from spmilp.result import read
from tests.acceptance.doors import MODELS, Run

EXAMPLE = MODELS.parent / "docs" / "example" / "resnet8"


def test_json_has_cycles_that_add_up(run: Run) -> None:
    found = run("explain", EXAMPLE / "plan.json", "--json").json
    makespan = found["makespan"]
    assert sum(found["chain"]["cycles"].values()) == makespan
    assert sum(row["cycles"] for row in found["bindings"]) == makespan
    for core in found["cores"]:
        assert core["busy"] + sum(core["idle"].values()) == makespan
    assert sum(row["bytes"] for row in found["excess"]) == read(EXAMPLE).dram_traffic - 91_072


def test_groups_are_shown_with_their_work_and_what_bounds_them(run: Run) -> None:
    ended = run("explain", MODELS / "resnet8_int8.onnx", "--groups")

    assert (ended.code, ended.err) == (0, "")
    for text in ("12,501,632 MAC", "13 fused groups", "9 Conv", "compute", "dram", "roofline"):
        assert text in ended.out


def test_figures_of_groups_add_up(run: Run) -> None:
    found = run(
        "explain", MODELS / "ds_cnn_int8.onnx", "-m", "epiphany3", "--groups", "--json"
    ).json

    assert (found["network"], found["machine"]) == ("ds_cnn_int8", "epiphany3")
    assert found["macs"] == sum(group["macs"] for group in found["groups"])
    slowest = max(found["compute_cycles"], found["dram_cycles"])
    assert found["roofline_cycles"] - 1 <= slowest <= found["roofline_cycles"]
    assert all(group["tiles"] >= 1 for group in found["groups"])
