"""Plans on real numbers: replayed, exported, compiled and run; and exports that never change."""

import hashlib
import json
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import spmilp
from tests.acceptance.doors import GOLDEN, MODELS, ROOT, assert_valid

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="no gcc or no make"
)
needs_runtime = pytest.mark.skipif(
    find_spec("onnxruntime") is None,
    reason="onnxruntime is not installed",
)
FORMATS = ("c", "player", "c-code", "commands", "dma", "csv", "perfetto")
PLANS = {
    "ds_cnn_int8-gap9": (GOLDEN / "ds_cnn_int8-gap9", "ds_cnn_int8"),
    "tiny_gru_f32-vdla": (GOLDEN / "tiny_gru_f32-vdla", "tiny_gru_f32"),
    "resnet8": (ROOT / "docs" / "example" / "resnet8", "resnet8_int8"),
}


def model_of(name: str) -> Path:
    return MODELS / f"{PLANS[name][1]}.onnx"


@cache
def planned(name: str) -> "spmilp.Result":
    return spmilp.read(PLANS[name][0])


@needs_runtime
def test_a_plan_of_an_integer_network_gives_the_bits_of_onnxruntime() -> None:
    for seed in (0, 1):
        table = planned("ds_cnn_int8-gap9").replay(model_of("ds_cnn_int8-gap9"), seed=seed)
        assert table["within"].all()
        assert (table["absolute"] == 0).all()


@needs_runtime
def test_a_plan_of_a_float_network_gives_its_numbers() -> None:
    table = planned("tiny_gru_f32-vdla").replay(model_of("tiny_gru_f32-vdla"))
    assert table["within"].all()
    assert (table["relative"] < 1e-4).all()


@needs_runtime
@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "machine", "dim"),
    [
        ("resnet8_int8", "mesh4x4", None),
        ("autoencoder_int8", "xdna1", None),
        ("ds_cnn_f16", "edge16", None),
        ("tiny_lstm_f32", "stream_quad", None),
        ("gpt2_block_f32", "stream_quad", None),
        ("llama_block_f32", "stream_quad", None),
        ("bert_tiny_f32", "vdla", {"batch": 1, "sequence": 16}),
        ("mobilenetv1_025_int8", "gap9", None),
    ],
)
def test_plans_of_many_networks_give_the_numbers_of_onnxruntime(
    model: str, machine: str, dim: dict[str, int] | None, tmp_path: Path
) -> None:
    file = MODELS / f"{model}.onnx"
    result = spmilp.solve(file, machine, dim=dim, solver="list", time_limit=30)
    result.save(tmp_path)
    assert_valid(tmp_path)
    assert result.replay()["within"].all()


def test_every_format_is_written_and_listed(tmp_path: Path) -> None:
    name = "ds_cnn_int8-gap9"
    files = planned(name).export(FORMATS, tmp_path, model=model_of(name), prefix="net")
    assert {path.name for path in files} <= {path.name for path in tmp_path.iterdir()}
    said = (tmp_path / "export.json").read_text()
    for file in (
        "net_plan.c",
        "net_code.c",
        "player.mk",
        "code.mk",
        "commands.csv",
        "dma.csv",
        "allocation.csv",
    ):
        assert (tmp_path / file).stat().st_size > 100, file
        assert file in said
    assert json.loads((tmp_path / "trace.json").read_text())
    before = {path.name: path.read_bytes() for path in files}
    planned(name).export(FORMATS, tmp_path, model=model_of(name), prefix="net")
    assert {path.name: path.read_bytes() for path in files} == before


def without_comments(content: bytes) -> bytes:
    """Return C without comments and includes: what a compiler makes something of."""
    text = re.sub(rb"/\*.*?\*/", b"", content, flags=re.S)
    lines = (line.rstrip() for line in text.splitlines())
    return b"\n".join(line for line in lines if line and not line.startswith(b"#include"))


def digests(name: str, folder: Path) -> dict[str, str]:
    """Return the SHA-256 of what exports say of a plan, for packed tables and for straight C."""
    found = {}
    for form, pattern in (("c", "net_plan.c"), ("c", "net_image.bin"), ("c-code", "net_code*.c")):
        planned(name).export(form, folder / form, model=model_of(name), prefix="net")
        whole = hashlib.sha256()
        for file in sorted((folder / form).glob(pattern)):
            if file.suffix == ".bin":
                whole.update(file.read_bytes())
            elif re.search(r"_(plan|code|core\d+|engine\d+)\.c$", file.name):
                whole.update(without_comments(file.read_bytes()))
        found[pattern] = whole.hexdigest()
    return found


@pytest.mark.parametrize("name", sorted(PLANS))
def test_exports_of_a_kept_plan_never_change(name: str, tmp_path: Path) -> None:
    kept = json.loads((GOLDEN / "digests.json").read_text())[name]
    assert digests(name, tmp_path) == kept


@pytest.mark.parametrize("name", ["ds_cnn_int8-gap9", "tiny_gru_f32-vdla"])
def test_kept_plans_stay_valid(name: str) -> None:
    assert_valid(PLANS[name][0])


def inputs_of(model: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return random values for each input of a model whose dimensions are known."""
    graph = onnx.load(model).graph
    weights = {each.name for each in graph.initializer}
    random = np.random.default_rng(3)
    return {
        each.name: random.normal(
            size=[d.dim_value for d in each.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for each in graph.input
        if each.name not in weights
    }


def outputs_of(model: Path, inputs: dict[str, np.ndarray[Any, Any]]) -> list[Any]:
    """Return what onnxruntime computes, without changing the graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def make(folder: Path, makefile: str, target: str, flags: str) -> Path:
    """Build a target of an export's makefile; return the program."""
    command = ["make", "-s", "-B", "-f", makefile, target, "CC=gcc", f"CFLAGS={flags}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "warning" not in done.stderr
    return folder / target


def played(program: Path, name: str, count: int, *options: str) -> list[bytes]:
    """Run a program on the inputs of a model; return the bytes of each output."""
    folder = program.parent
    given = []
    for number, values in enumerate(inputs_of(model_of(name)).values()):
        given.append(folder / f"input{number}.bin")
        given[-1].write_bytes(values.tobytes())
    results = [folder / f"output{number}.bin" for number in range(count)]
    command = [program, *options, *given, *results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [file.read_bytes() for file in results]


KINDS = [
    ("player", "player.mk", "net_play"),
    ("c-code", "code.mk", "net_code_play"),
]


def built(name: str, kind: str, folder: Path, flags: str) -> Path:
    form, makefile, target = next(each for each in KINDS if each[0] == kind)
    planned(name).export(form, folder, model=model_of(name), prefix="net")
    return make(folder, makefile, target, flags)


def assert_right_numbers(name: str, found: list[bytes], tolerance: float) -> None:
    for values, wanted in zip(
        found, outputs_of(model_of(name), inputs_of(model_of(name))), strict=True
    ):
        ours = np.frombuffer(values, wanted.dtype).reshape(wanted.shape)
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@needs_gcc
@needs_runtime
@pytest.mark.parametrize("kind", ["player", "c-code"])
def test_exported_c_of_an_integer_network_computes_its_bits(kind: str, tmp_path: Path) -> None:
    name = "ds_cnn_int8-gap9"
    program = built(name, kind, tmp_path, "-O1")
    threads = played(program, name, 1)
    assert threads == played(program, name, 1, "--loop")
    assert_right_numbers(name, threads, 0)


@pytest.mark.full
@needs_gcc
@needs_runtime
@pytest.mark.parametrize(("name", "tolerance"), [("tiny_gru_f32-vdla", 1e-5), ("resnet8", 0.02)])
@pytest.mark.parametrize("kind", ["player", "c-code"])
def test_exported_c_of_other_networks_computes_their_numbers(
    name: str, tolerance: float, kind: str, tmp_path: Path
) -> None:
    program = built(name, kind, tmp_path, "-O1")
    count = len(outputs_of(model_of(name), inputs_of(model_of(name))))
    found = played(program, name, count, "--loop")
    assert found == played(program, name, count)
    assert_right_numbers(name, found, tolerance)


@pytest.mark.full
@needs_gcc
@pytest.mark.parametrize("kind", ["player", "c-code"])
@pytest.mark.parametrize("checked", ["address,undefined", "thread"])
def test_sanitizers_find_nothing_in_exported_c(kind: str, checked: str, tmp_path: Path) -> None:
    program = built("ds_cnn_int8-gap9", kind, tmp_path, f"-O1 -g -fsanitize={checked}")
    played(program, "ds_cnn_int8-gap9", 1)


def test_a_plan_that_is_not_valid_is_not_exported(tmp_path: Path) -> None:
    folder = PLANS["ds_cnn_int8-gap9"][0]
    plan = json.loads((folder / "plan.json").read_text())
    plan["solve"]["makespan"] += 1
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    shutil.copy(folder / "problem.json", tmp_path)
    result = spmilp.read(tmp_path)
    assert len(result.violations) == 1
    with pytest.raises(spmilp.SpmilpError):
        result.export("csv", tmp_path / "out")
