"""What the committed models promise."""

import re
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from measure import DIMENSIONS, measure, row
from numpy.typing import NDArray

from spmilp.frontend.load import load_network

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.full

MODELS = Path(__file__).parents[2] / "models"
PATHS = sorted(MODELS.glob("*.onnx"))
MLPERF_TINY = ("autoencoder", "ds_cnn", "mobilenetv1_025", "resnet8")
EXPORTED = ("bert_tiny", "gpt2_block", "llama_block", "mobilenetv2", "resnet18", "vit_tiny")

each_model = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def test_the_networks_promised_are_there() -> None:
    names = {f"{name}_{kind}" for name in MLPERF_TINY for kind in ("f32", "int8")}
    names |= {f"{name}_f32" for name in (*EXPORTED, "tiny_lstm", "tiny_gru")} | {"ds_cnn_f16"}

    assert {path.stem for path in PATHS} == names


@each_model
def test_a_model_is_valid(path: Path) -> None:
    onnx.checker.check_model(onnx.load(path), full_check=True)


@each_model
def test_a_model_says_that_it_is_not_trained(path: Path) -> None:
    model = onnx.load(path)

    assert re.search(r"; weights: random, seed \d+; not trained$", model.doc_string)
    assert model.producer_name == "spmilp models"


@each_model
def test_a_model_tells_nothing_of_the_computer_it_was_made_on(path: Path) -> None:
    assert not re.search(rb"site-packages|stack_trace|/home/|\.py\b", path.read_bytes())


@each_model
def test_outputs_are_finite_and_vary_with_the_input(path: Path) -> None:
    runs = [_run(path, seed) for seed in range(4)]

    for values in zip(*runs, strict=True):
        assert np.isfinite(values).all()
        assert np.ptp(values, axis=0).max() > 0.1 * np.max(values)


@each_model
def test_the_readme_states_what_a_model_costs(path: Path) -> None:
    assert row(path) in (MODELS / "README.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("path", sorted((MODELS / "decoders").glob("*.onnx")), ids=lambda p: p.stem)
def test_a_decoder_layer_has_the_weights_of_its_size_and_stores_none(path: Path) -> None:
    network = load_network(path)
    computed = {group.output for group in network.groups}
    read = {name for group in network.groups for name in group.inputs}
    weights = read - computed - {*network.inputs}

    assert path.stat().st_size < 20_000
    assert sum(prod(network.tensors[one].shape) for one in weights) >= measure(path).parameters
    assert f"| {measure(path).macs:,} |" in (MODELS / "README.md").read_text(encoding="utf-8")


def _run(path: Path, seed: int) -> list[NDArray[np.generic]]:
    session = _session(path)
    return session.run(None, _feed(session, seed))


@cache
def _session(path: Path) -> "onnxruntime.InferenceSession":
    options = onnxruntime.SessionOptions()
    # Without VNNI, products of unsigned and signed bytes are cut off at 16 bits otherwise.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _feed(session: "onnxruntime.InferenceSession", seed: int) -> dict[str, NDArray[np.generic]]:
    random = np.random.default_rng(seed)
    (info,) = session.get_inputs()
    shape = [DIMENSIONS.get(extent, extent) for extent in info.shape]
    if info.type == "tensor(int64)":
        return {info.name: random.integers(0, 512, shape)}
    dtype = np.float16 if info.type == "tensor(float16)" else np.float32
    return {info.name: random.standard_normal(shape).astype(dtype)}
