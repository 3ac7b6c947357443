"""Operators of onnxruntime, and what its optimiser leaves of a model."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, parser

from spmilp.checker.values.inputs import random_inputs
from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.load import load_network
from tests.frontend.running import network_outputs, onnxruntime_outputs, saved

MODELS = Path(__file__).parents[2] / "models"


@pytest.mark.full
@pytest.mark.parametrize("name", ["gpt2_block_f32", "llama_block_f32", "resnet8_int8"])
def test_a_model_is_read_as_onnxruntime_s_basic_optimisations_leave_it(
    tmp_path: Path, name: str
) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(MODELS / f"{name}.onnx", options)
    path = tmp_path / "optimised.onnx"
    network = load_network(path)
    feeds = random_inputs(network, seed=1)
    expected = onnxruntime_outputs(path, {name: feeds[name] for name in network.inputs})
    for name, values in network_outputs(network, feeds).items():
        wanted = expected[network.renamed.get(name, name)]
        limit = 2e-5 * np.abs(wanted).max()
        np.testing.assert_allclose(values.reshape(wanted.shape), wanted, 2e-5, limit)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("com.microsoft.MatMulNBits<K = 4, N = 4, block_size = 16>(x, x, x)", "MatMulNBits"),
        ('com.microsoft.FusedConv<activation = "Relu">(x, x)', "FusedConv"),
        ("com.microsoft.nchwc.ReorderInput(x)", "layout is that of one processor"),
    ],
)
def test_what_has_no_body_is_refused_by_name(tmp_path: Path, node: str, reason: str) -> None:
    domains = '"" : 13, "com.microsoft" : 1, "com.microsoft.nchwc" : 1'
    model = parser.parse_model(
        f"<ir_version: 8, opset_import: [{domains}]> g () => (float[1] r) {{ r = {node} }}"
    )
    model.graph.input.append(helper.make_tensor_value_info("x", 1, (1, 4, 4, 4)))
    with pytest.raises(UnsupportedOperatorError, match=reason):
        load_network(saved(tmp_path, model))
