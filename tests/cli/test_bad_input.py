"""Bad models, machines and values: one clear message, the documented exit code, nothing written."""

from pathlib import Path

import pytest

from tests.acceptance.doors import MODELS, Run

MODEL = MODELS / "ds_cnn_int8.onnx"
HEAD = '<ir_version: 8, opset_import: ["": 17]>'
ANY = "any (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }"
DET = "det (float[4, 4] x) => (float y) { y = Det(x) }"


def model(folder: Path, text: str) -> Path:
    import onnx
    from onnx.parser import parse_model

    onnx.save(parse_model(f"{HEAD} {text}"), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (ANY, ("--dim", "N=99999999999999999999"), "dimension N is 99999999999999999999, expected"),
        (ANY, ("--dim", f"N={2**48}"), "tensor x has 4503599627370496 B, expected at most"),
        (DET, (), "(Det)"),
    ],
)
def test_a_model_that_cannot_be_mapped_has_one_message(
    text: str, options: tuple[str, ...], says: str, run: Run, tmp_path: Path
) -> None:
    ended = run("solve", model(tmp_path, text), *options, "-o", "out")
    assert (ended.code, ended.out) == (3, "")
    assert says in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "out").exists()


def test_json_gives_the_error_as_an_object_that_lists_the_nodes(run: Run, tmp_path: Path) -> None:
    ended = run("solve", model(tmp_path, DET), "--json")
    assert (ended.code, ended.json["status"], ended.json["exit_code"]) == (3, "error", 3)
    (node,) = ended.json["error"]["nodes"]
    assert node["operator"] == "Det"
