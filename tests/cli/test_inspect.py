"""``spmilp explain --groups`` shows what a model consists of."""

from cli.running import MODELS, Run


def test_the_table_shows_work_groups_and_what_bounds_them(run: Run) -> None:
    ended = run("explain", MODELS / "resnet8_int8.onnx", "--groups")

    assert (ended.code, ended.err) == (0, "")
    for text in ("12,501,632 MAC", "13 fused groups", "9 Conv", "compute", "dram", "roofline"):
        assert text in ended.out


def test_json_has_the_same_and_adds_up(run: Run) -> None:
    found = run(
        "explain", MODELS / "ds_cnn_int8.onnx", "-m", "epiphany3", "--groups", "--json"
    ).json

    assert (found["network"], found["machine"]) == ("ds_cnn_int8", "epiphany3")
    assert found["macs"] == sum(group["macs"] for group in found["groups"])
    slowest = max(found["compute_cycles"], found["dram_cycles"])
    assert found["roofline_cycles"] - 1 <= slowest <= found["roofline_cycles"]
    assert all(group["tiles"] >= 1 for group in found["groups"])


def test_dynamic_dimensions_are_bound(run: Run) -> None:
    sizes = ("--dim", "batch=1", "--dim", "sequence=16")
    unbound = run("explain", MODELS / "bert_tiny_f32.onnx", "--groups")
    bound = run("explain", MODELS / "bert_tiny_f32.onnx", *sizes, "--groups", "--json")

    assert unbound.code == 3
    assert "--dim batch=" in unbound.err
    assert bound.code == 0
    assert [1, 16] in list(bound.json["inputs"].values())
