"""Model files: found by name, and what is wrong with them said in one message."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import spmilp
from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.frontend.find import find_model, light_models
from spmilp.frontend.read import read_model
from tests.frontend.running import loaded, model_of, saved

CONV = """
agraph (float[1,3,8,8] x) => (float[1,4,6,6] y)
<float[4,3,3,3] w = {WEIGHTS}> { y = Conv(x, w) }
""".replace("WEIGHTS", ", ".join(["0.5"] * 108))


def test_a_light_model_is_found_by_name() -> None:
    assert find_model("onnx:light_resnet50").name == "light_resnet50.onnx"
    assert len(light_models()) == 9


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("onnx:light_resnet5", "onnx:light_resnet50"),
        ("{folder}/modle.onnx", r"no model file .*modle\.onnx.*model\.onnx"),
        ("light_squeezenet", "onnx:light_squeezenet"),
        ("{folder}", "is a directory"),
    ],
)
def test_a_name_that_is_no_model_lists_what_is_near(tmp_path: Path, name: str, reason: str) -> None:
    saved(tmp_path, model_of(CONV))
    with pytest.raises(FileError, match=reason):
        find_model(name.format(folder=tmp_path))


WHOLE = model_of(CONV).SerializeToString()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        *(
            (text.encode(), "is not an ONNX model")
            for text in (
                "this is no model\n",
                "<html>404 Not Found</html>",
                "\n\n",
                "version https:",
            )
        ),
        *(
            (WHOLE[: int(len(WHOLE) * part)], f"{int(len(WHOLE) * part)} bytes")
            for part in (0.05, 0.3, 0.6, 0.9, 0.99)
        ),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "notes.onnx"
    path.write_bytes(content)
    with pytest.raises(FileError, match=reason):
        read_model(path)


def test_a_cycle_is_refused(tmp_path: Path) -> None:
    graph = "g (float[2] x) => (float[2] c) { a = Add(x, c) b = Relu(a) c = Sqrt(b) }"
    model = model_of(graph)
    with pytest.raises(FileError, match="contains a cycle"):
        read_model(saved(tmp_path, model))


def test_nodes_in_any_order_are_sorted(tmp_path: Path) -> None:
    model = model_of("agraph (float[2] x) => (float[2] y) { y = Sqrt(a) a = Relu(x) }")

    read, _ = read_model(saved(tmp_path, model))

    assert [node.op_type for node in read.graph] == ["Relu", "Sqrt"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = Add(x, ghost)", r"node y reads 'ghost'"),
        ("z = Relu(x)", r"an output reads 'y', which nothing gives"),
    ],
)
def test_a_value_that_nothing_gives_is_named(tmp_path: Path, body: str, reason: str) -> None:
    model = model_of(f"agraph (float[2] x) => (float[2] y) {{ {body} }}")
    with pytest.raises(FileError, match=reason):
        read_model(saved(tmp_path, model))


def test_a_constant_of_the_wrong_length_is_named(tmp_path: Path) -> None:
    model = model_of(CONV)
    tensor = numpy_helper.from_array(np.zeros(100, np.float32), "w")
    tensor.dims[:] = [4, 3, 3, 3]
    model.graph.initializer[0].CopyFrom(tensor)
    with pytest.raises(FileError, match=r"'w' of shape \[4, 3, 3, 3\] has 400 B, expected 432 B"):
        read_model(saved(tmp_path, model))


def with_external_weights(folder: Path, location: str, **more: str) -> Path:
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 3, 3, 3])
    weights.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        weights.external_data.add(key=key, value=value)
    model = model_of(CONV)
    del model.graph.initializer[:]
    model.graph.initializer.append(weights)
    path = folder / "net" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("location", ["w.bin", "below/w.bin", "missing.bin"])
def test_weights_may_lie_in_a_file_of_the_models_folder(location: str, tmp_path: Path) -> None:
    path = with_external_weights(tmp_path, location)
    (path.parent / "below").mkdir()
    for name in ("w.bin", "below/w.bin"):
        (path.parent / name).write_bytes(bytes(432))
    read_model(path)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("../outside.bin", "outside the model's folder"),
        ("/dev/zero", "outside the model's folder"),
        ("../../../../../../dev/zero", "outside the model's folder"),
        ("link.bin", "outside the model's folder"),
        (".", "no ordinary file"),
        ("pipe", "no ordinary file"),
    ],
)
def test_weights_elsewhere_are_refused(location: str, why: str, tmp_path: Path) -> None:
    path = with_external_weights(tmp_path, location)
    (tmp_path / "outside.bin").write_bytes(bytes(432))
    (path.parent / "link.bin").symlink_to("../outside.bin")
    os.mkfifo(path.parent / "pipe")
    with pytest.raises(FileError, match=rf"tensor 'w' lies in .*{why}"):
        read_model(path)


def test_a_wrong_place_in_a_file_of_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not a sound ONNX model"):
        read_model(with_external_weights(tmp_path, "w.bin", offset="-4"))


@pytest.mark.parametrize("read", [read_model, read_bytes])
def test_a_device_is_not_read(read: Callable[[Path], object]) -> None:
    with pytest.raises(FileError, match="device"):
        read(Path("/dev/zero"))


def test_a_plan_of_constants_without_values_comes_with_a_warning(tmp_path: Path) -> None:
    path = with_external_weights(tmp_path, "w.bin")
    (path.parent / "w.bin").write_bytes(bytes(431))
    with pytest.warns(UserWarning, match=r"no values for w in .* cannot be replayed"):
        assert spmilp.solve(path, "gap8", solver="list").plan is not None


RELU = "agraph (float[2] x) => (float[2] y) { y = Relu(x) }"


def test_what_is_no_plain_tensor_is_named(tmp_path: Path) -> None:
    model = model_of(RELU)
    model.graph.output.add(name="z").type.map_type.key_type = TensorProto.INT64
    with pytest.raises(FileError, match="'z' is a map"):
        read_model(saved(tmp_path, model))
    model = model_of("agraph (float[2] x) => (float[2] y) { y = Add(x, w) }")
    model.graph.sparse_initializer.add().values.name = "w"
    with pytest.raises(FileError, match="constant 'w' is sparse"):
        read_model(saved(tmp_path, model))


def test_a_name_that_is_written_twice_is_named(tmp_path: Path) -> None:
    model = model_of("agraph (float[2] x) => (float[2] y) { y = Relu(x) y = Sqrt(x) }")
    with pytest.raises(FileError, match="'y' is redeclared"):
        read_model(saved(tmp_path, model))


def test_an_operator_set_may_be_named_in_full(tmp_path: Path) -> None:
    model = model_of(RELU, 9)
    model.opset_import[0].domain = "ai.onnx"
    assert loaded(tmp_path, model).outputs == ("y",)
