"""Bad input: one clear message, the documented exit code, no traceback, nothing written."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from cli.running import MODELS, Run

MODEL = MODELS / "ds_cnn_int8.onnx"


def cyclic_model(folder: Path) -> list[object]:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="second"),
    ]
    graph = helper.make_graph(
        nodes,
        "ring",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])],
    )
    onnx.save(helper.make_model(graph), folder / "ring.onnx")
    return [folder / "ring.onnx"]


def model_of_any_length(folder: Path) -> list[object]:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="r")],
        "any",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
    )
    onnx.save(helper.make_model(graph), folder / "any.onnx")
    return [folder / "any.onnx"]


def dimension_beyond_64_bits(folder: Path) -> list[object]:
    return [*model_of_any_length(folder), "--dim", "N=99999999999999999999"]


def tensor_beyond_all_memories(folder: Path) -> list[object]:
    return [*model_of_any_length(folder), "--dim", f"N={2**48}"]


def unknown_operator(folder: Path) -> list[object]:
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"], name="volume")],
        "det",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    onnx.save(helper.make_model(graph), folder / "det.onnx")
    return [folder / "det.onnx"]


def machine_with(folder: Path, old: str, new: str) -> list[object]:
    text = (files("spmilp.machine") / "presets" / "mesh4x4.yaml").read_text()
    assert text.count(old) == 1
    (folder / "machine.yaml").write_text(text.replace(old, new))
    return [MODEL, "--machine", folder / "machine.yaml"]


def machine_whose_size_is_beyond_64_bits(folder: Path) -> list[object]:
    return machine_with(folder, "size_kib: 512", "size_mib: 8796093022207")


def machine_whose_transfers_hold_no_element(folder: Path) -> list[object]:
    arguments = machine_with(folder, "  - {channels", "  - {longest_bytes: 1, channels")
    return [MODELS / "ds_cnn_f32.onnx", *arguments[1:]]


def machine_with_an_unreachable_core(folder: Path) -> list[object]:
    return machine_with(folder, "  - {channels", "  - {reaches: [nowhere], channels")


CASES = [
    (cyclic_model, 3, "cyclic"),
    (dimension_beyond_64_bits, 3, "dimension N is 99999999999999999999, expected at most"),
    (tensor_beyond_all_memories, 3, "tensor x has 4503599627370496 B, expected at most"),
    (unknown_operator, 3, "volume (Det)"),
    (machine_whose_size_is_beyond_64_bits, 3, "a size of 9223372036853727232 B exceeds"),
    (machine_whose_transfers_hold_no_element, 3, "longest_bytes: transfers of 1 B hold no"),
    (machine_with_an_unreachable_core, 3, "nowhere"),
]


@pytest.mark.parametrize(
    ("make", "code", "says"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_one_message_and_the_documented_exit_code(
    make: Callable[[Path], list[object]], code: int, says: str, run: Run, tmp_path: Path
) -> None:
    arguments = make(tmp_path)
    ended = run("solve", *arguments, "-o", tmp_path / "out")

    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "out").exists()


def test_json_gives_the_error_as_an_object_that_lists_the_nodes(run: Run, tmp_path: Path) -> None:
    ended = run("solve", *unknown_operator(tmp_path), "--json")

    assert ended.code == 3
    assert ended.json["status"] == "error"
    assert ended.json["exit_code"] == 3
    (node,) = ended.json["error"]["nodes"]
    assert (node["node"], node["operator"]) == ("volume", "Det")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--workers", "0"),
        ("--dim", "batch"),
        ("--machine=",),
        ("--dim", ""),
    ],
)
def test_a_value_that_an_option_cannot_have_is_wrong_usage(
    arguments: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    ended = run("solve", MODEL, *arguments, "-o", tmp_path / "out")

    assert (ended.code, ended.out) == (2, "")
    assert arguments[0].rstrip("=") in ended.err
    assert not (tmp_path / "out").exists()
