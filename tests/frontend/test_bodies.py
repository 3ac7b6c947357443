"""Operators of onnxruntime's own, and what its optimiser writes, give what it computes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from spmilp.checker.values.inputs import random_inputs
from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.load import load_network
from tests.frontend.running import Array, network_outputs, onnxruntime_outputs, saved

MODELS = Path(__file__).parents[2] / "models"

SHAPES = (
    *(("x", 2, 5, 8), ("y", 2, 5, 8), ("image", 1, 3, 6, 6), ("turned", 2, 8, 5), ("row", 3, 32)),
    *(("g", 8), ("b", 8), ("rows", 5, 8), ("w", 8, 8), ("w3", 8, 24), ("b3", 24), ("m", 8, 6)),
    *(
        ("c6", 6),
        ("k", 4, 3, 3, 3),
        ("c4", 4),
        ("z", 1, 4, 6, 6),
        ("words", 9, 8),
        ("places", 7, 8),
    ),
    *(("sorts", 2, 8), ("past", 2, 2, 2, 3, 4), ("pk", 2, 2, 3, 4), ("pv", 2, 2, 3, 4)),
    ("near", 2, 2, 5, 5),
)
INTEGERS = (
    *(("ids", 9, 2, 5), ("kinds", 2, 2, 5), ("at", 7, 2, 5), ("mask", 2, 2, 5), ("wide", 2, 2, 8)),
    ("q", 256, 8, 6),
)
"""Names, limits of the numbers, and shapes."""

FEEDS = ("x", "y", "image", "turned", "row", "ids", "kinds")
"""What is given at run time; all else is constant."""

NODES = (
    "r = M.Gelu(x)",
    "r = M.BiasGelu(x, b)",
    "f = M.FastGelu(x) r = M.FastGelu(f, b)",
    "r = M.QuickGelu<alpha = 1.5>(x)",
    'r = M.FusedConv<activation = "Relu", pads = [1, 1, 1, 1]>(image, k, c4, z)',
    'r = M.FusedConv<activation = "LeakyRelu", activation_params = [0.3]>(image, k)',
    'r = M.FusedConv<activation = "Clip", activation_params = [-0.5, 1.5]>(image, k)',
    'r = M.FusedConv<activation = "HardSigmoid", activation_params = [0.3, 0.4]>(image, k, c4)',
    "a = Flatten<axis = 2>(x) "
    'r = M.FusedGemm<activation = "LeakyRelu", activation_alpha = 0.3>(a, m, c6)',
    "r = M.FusedMatMul<alpha = 0.5>(x, w)",
    "r = M.FusedMatMul<alpha = 2.0, transA = 1, transB = 1>(turned, y)",
    "r = M.SkipLayerNormalization<epsilon = 0.001>(x, y, g, b, g)",
    "n, mean, d, sum = M.SkipLayerNormalization(x, rows, g) r = Add(n, sum)",
    "n, mean, d, sum = M.SkipSimplifiedLayerNormalization(x, y, g, b) r = Add(n, sum)",
    "r = SimplifiedLayerNormalization<axis = -1, epsilon = 0.01>(x, g)",
    "r = LayerNormalization<axis = -1, epsilon = 0.01>(x, g, b)",
    "e, n, sum = M.EmbedLayerNormalization(ids, , words, places, , g, b, mask, at) r = Add(e, sum)",
    "e, n = M.EmbedLayerNormalization(ids, kinds, words, places, sorts, g, b, mask)"
    "r = M.Attention<num_heads = 2>(e, w3, b3, n)",
    "r = M.Attention<num_heads = 2>(x, w3, b3, mask)",
    "r = M.Attention<num_heads = 2, unidirectional = 1, scale = 0.3>(x, w3, b3)",
    "r, n = M.Attention<num_heads = 2, unidirectional = 1>(x, w3, b3, wide, past)",
    "a, r = M.Attention<num_heads = 2>(x, w3, b3, , past)",
    "r = M.Attention<num_heads = 2>(x, w3, b3, , , near)",
    "r = M.MultiHeadAttention<num_heads = 2>(x, y, y, b3, mask, near)",
    "r, p, o = M.MultiHeadAttention<num_heads = 2, unidirectional = 1>(x, y, y, , , , pk, pv)",
    "r = M.DynamicQuantizeMatMul(x, q, s, z8, c6)",
    "u, us, uz = DynamicQuantizeLinear(x) r = M.MatMulIntegerToFloat(u, q, us, s, uz, z8, c6)",
)


def arrays() -> dict[str, Array]:
    """Return random numbers for all that the nodes read."""
    numbers = np.random.default_rng(8)
    found = {name: numbers.standard_normal(s).astype(np.float32) for name, *s in SHAPES}
    for name, limit, *shape in INTEGERS:
        kind = np.uint8 if limit == 256 else np.int32
        found[name] = numbers.integers(0, limit, shape).astype(kind)
    found["mask"][:, 0] = found["wide"][:, 0] = 1
    return found | {"s": np.asarray(0.02, np.float32), "z8": np.asarray(120, np.uint8)}


def model_of(body: str) -> onnx.ModelProto:
    """Return a model of nodes; ``M`` stands for onnxruntime's domain."""
    domains = '"" : 13, "com.microsoft" : 1, "com.microsoft.nchwc" : 1'
    text = body.replace("M.", "com.microsoft.")
    model = parser.parse_model(
        f"<ir_version: 8, opset_import: [{domains}]> g () => () {{ {text} }}"
    )
    read = {name for node in model.graph.node for name in node.input}
    for name, array in arrays().items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        if name in read and name in FEEDS:
            model.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
        elif name in read:
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    model.graph.output.append(onnx.ValueInfoProto(name="r"))
    return model


def gives_what_onnxruntime_computes(path: Path, feeds: dict[str, Array]) -> None:
    network = load_network(path)
    found = network_outputs(network, {name: feeds[name] for name in network.inputs})
    expected = onnxruntime_outputs(path, {name: feeds[name] for name in network.inputs})
    for name, values in found.items():
        wanted = expected[network.renamed.get(name, name)]
        limit = 2e-5 * np.abs(wanted).max()
        np.testing.assert_allclose(values.reshape(wanted.shape), wanted, 2e-5, limit)


@pytest.mark.parametrize("body", NODES)
def test_a_node_of_onnxruntime_gives_what_it_computes(tmp_path: Path, body: str) -> None:
    gives_what_onnxruntime_computes(saved(tmp_path, model_of(body)), arrays())


@pytest.mark.full
@pytest.mark.parametrize("level", ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"])
@pytest.mark.parametrize("name", ["gpt2_block_f32", "llama_block_f32", "resnet8_int8"])
def test_a_model_is_read_as_onnxruntime_s_optimiser_leaves_it(
    tmp_path: Path, name: str, level: str
) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(MODELS / f"{name}.onnx", options)
    path = tmp_path / "optimised.onnx"
    gives_what_onnxruntime_computes(path, random_inputs(load_network(path), seed=1))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("r = M.FusedMatMul<transBatchA = 1>(x, y)", "attribute transBatchA is not supported"),
        ("r = M.MultiHeadAttention<num_heads = 2>(x, near, near)", r"of \[3, 4, 4\] axes"),
        ("n, mean, r = M.SkipSimplifiedLayerNormalization(x, y, g)", "output 2 does not follow"),
        ("r = M.MatMulNBits<K = 32, N = 6, block_size = 16>(row, row, row)", "MatMulNBits"),
        ("r = com.microsoft.nchwc.ReorderInput(image)", "layout is that of one processor"),
    ],
)
def test_what_a_body_does_not_do_is_refused(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=reason):
        load_network(saved(tmp_path, model_of(body)))
