"""``spmilp explain`` as a user runs it."""

from pathlib import Path

import onnx
import pytest
from onnx.parser import parse_model

import spmilp
from explaining.slowed import Made, independent_tasks
from spmilp.machine.read import load_machine, machine_bytes
from spmilp.problem.file import problem_text
from tests.acceptance.doors import MODELS, Run

EXAMPLE = MODELS.parent / "docs" / "example" / "resnet8"


def test_json_has_cycles_that_add_up(run: Run) -> None:
    found = run("explain", EXAMPLE / "plan.json", "--json").json
    makespan = found["makespan"]
    assert sum(found["chain"]["cycles"].values()) == makespan
    assert sum(row["cycles"] for row in found["bindings"]) == makespan
    assert [row["start"] for row in found["phases"][1:]] == [
        row["end"] for row in found["phases"][:-1]
    ]
    for phase in found["phases"]:
        assert sum(row["cycles"] for row in phase["bindings"]) == phase["end"] - phase["start"]
    for core in found["cores"]:
        assert core["busy"] + sum(core["idle"].values()) == makespan
    assert sum(row["bytes"] for row in found["excess"]) == 111_808 - 91_072


def test_a_problem_without_a_plan_ends_with_code_4_and_what_helps(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(
        problem_text(independent_tasks(Made(spm=1024), cycles=5, read=2000))
    )
    ended = run("explain", "p.json")
    assert ended.code == 4, ended.err
    assert "2,016 B required at one time, at least" in ended.out
    assert "992 B more in each of 2 memories like spm0" in ended.out.replace("\n    ", " ")
    found = run("explain", "p.json", "--json")
    assert (found.code, found.json["cause"], found.json["required"]) == (4, "task", 2016)


@pytest.mark.full
def test_a_model_whose_smallest_tile_is_too_large_is_told_the_memory_that_it_needs(
    run: Run, tmp_path: Path
) -> None:
    text = "g (float[8, 4096] x) => (float[8, 4096] y) { y = Softmax<axis=-1>(x) }"
    onnx.save(parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}'), tmp_path / "s.onnx")
    tiny = machine_bytes("mesh4x4").replace(b"size_kib: 512", b"size_kib: 4")
    (tmp_path / "tiny.yaml").write_bytes(tiny)
    ended = run("explain", "s.onnx", "-m", "tiny.yaml", "--json")
    assert ended.code == 4, ended.err
    found = ended.json
    assert (found["cause"], found["size"]) == ("tile", 4096)
    # A row goes in and comes out.
    assert found["required"] >= 16384
    assert {"name": "x", "bytes": 16384} in found["largest"]
    more = found["remedies"][0]["bytes"]
    larger = load_machine("mesh4x4").replace(spm=4096 + more)
    assert spmilp.solve(tmp_path / "s.onnx", larger, solver="list").plan is not None


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


def test_dynamic_dimensions_are_bound(run: Run) -> None:
    sizes = ("--dim", "batch=1", "--dim", "sequence=16")
    unbound = run("explain", MODELS / "bert_tiny_f32.onnx", "--groups")
    bound = run("explain", MODELS / "bert_tiny_f32.onnx", *sizes, "--groups", "--json")

    assert unbound.code == 3
    assert "--dim batch=" in unbound.err
    assert bound.code == 0
    assert [1, 16] in list(bound.json["inputs"].values())
