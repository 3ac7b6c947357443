"""Operators of onnxruntime's own domain, and what its optimiser writes, give what it computes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from spmilp.errors import SpmilpError
from spmilp.frontend.load import load_network
from tests.frontend.running import (
    Array,
    loaded,
    network_outputs,
    onnxruntime_outputs,
    planned_outputs,
    saved,
)

NUMBERS = np.random.default_rng(8)


def reals(*shape: int) -> Array:
    return NUMBERS.standard_normal(shape).astype(np.float32)


INPUTS = {"x": reals(2, 5, 8), "y": reals(2, 5, 8), "i": reals(1, 3, 6, 6), "t": reals(2, 8, 5)}
INPUTS |= {"ids": NUMBERS.integers(0, 9, (2, 5)), "kinds": NUMBERS.integers(0, 2, (2, 5))}
CONSTANTS = {
    **{"g": reals(8), "b": reals(8), "w": reals(8, 8), "w3": reals(8, 24), "b3": reals(24)},
    **{"m": reals(8, 6), "c6": reals(6), "k": reals(4, 3, 3, 3), "c4": reals(4)},
    **{"z": reals(1, 4, 6, 6), "words": reals(9, 8), "places": reals(7, 8), "sorts": reals(2, 8)},
    **{"past": reals(2, 2, 2, 3, 4), "pk": reals(2, 2, 3, 4), "pv": reals(2, 2, 3, 4)},
    **{"near": reals(2, 2, 5, 5), "rows": reals(5, 8), "n2": reals(2), "n21": reals(2, 1)},
    "wide": np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32),
    "wider": np.array([[0, 1, 1, 1, 1, 1, 1, 0], [1] * 8], np.int32),
    "lengths": np.array([3, 5], np.int32),
    "at": NUMBERS.integers(0, 7, (2, 5)).astype(np.int32),
    "q": NUMBERS.integers(0, 256, (8, 6)).astype(np.uint8),
    "z8": np.uint8(120),
    "s": np.float32(0.02),
    "nib": NUMBERS.integers(0, 256, (6, 2, 8)).astype(np.uint8),
    "steps": NUMBERS.uniform(0.1, 1, (6, 2)).astype(np.float32),
    "zeros": NUMBERS.integers(0, 256, (6, 1)).astype(np.uint8),
    "table": NUMBERS.integers(0, 256, (9, 16)).astype(np.uint8),
    "fine": NUMBERS.uniform(0.1, 1, (9, 2)).astype(np.float32),
    "mids": NUMBERS.integers(0, 256, (9, 1)).astype(np.uint8),
}
INPUTS = {
    name: one.astype(np.int32) if one.dtype == np.int64 else one for name, one in INPUTS.items()
}

NODES = (
    "r = M.Gelu(x)",
    "r = M.BiasGelu(x, b)",
    "r = M.FastGelu(x)",
    "r = M.FastGelu(x, b)",
    "r = M.QuickGelu<alpha = 1.5>(x)",
    'r = M.FusedConv<activation = "Relu", pads = [1, 1, 1, 1]>(i, k, c4, z)',
    'r = M.FusedConv<activation = "LeakyRelu", activation_params = [0.3]>(i, k)',
    'r = M.FusedConv<activation = "Clip", activation_params = [-0.5, 1.5], strides = [2, 2]>(i, k)',
    'r = M.FusedConv<activation = "HardSigmoid", activation_params = [0.3, 0.4]>(i, k, c4)',
    'a = Reshape(x, ten) r = M.FusedGemm<activation = "LeakyRelu", activation_alpha = 0.3>(a, m, c6)',
    "r = M.FusedMatMul<alpha = 0.5>(x, w)",
    "r = M.FusedMatMul<alpha = 2.0, transA = 1, transB = 1>(t, y)",
    "r = M.SkipLayerNormalization<epsilon = 0.001>(x, y, g, b, g)",
    "r, mean, dev, sum = M.SkipLayerNormalization(x, rows, g) s2 = M.Gelu(sum)",
    "r, mean, dev, sum = M.SkipSimplifiedLayerNormalization(x, y, g, b) s2 = Abs(sum)",
    "r = SimplifiedLayerNormalization<axis = -1, epsilon = 0.01>(x, g)",
    "r = LayerNormalization<axis = -1, epsilon = 0.01>(x, g, b)",
    "r, mask = M.EmbedLayerNormalization(ids, kinds, words, places, sorts, g, b)",
    "r, n, sum = M.EmbedLayerNormalization(ids, , words, places, , g, b, wide, at) s2 = Abs(sum)",
    "e, n = M.EmbedLayerNormalization(ids, kinds, words, places, sorts, g, b, wide)"
    "r = M.Attention<num_heads = 2>(e, w3, b3, n)",
    "r = M.Attention<num_heads = 2>(x, w3, b3, wide)",
    "r = M.Attention<num_heads = 2, unidirectional = 1, scale = 0.3>(x, w3, b3)",
    "r, next = M.Attention<num_heads = 2, unidirectional = 1>(x, w3, b3, wider, past) s2 = Abs(next)",
    "r = M.Attention<num_heads = 2>(x, w3, b3, , , near)",
    "r = M.MultiHeadAttention<num_heads = 2>(x, y, y, b3, wide, near)",
    "r, p, o = M.MultiHeadAttention<num_heads = 2, unidirectional = 1>(x, y, y, , , , pk, pv)",
    "r = M.DynamicQuantizeMatMul(x, q, s, z8, c6)",
    "u, us, uz = DynamicQuantizeLinear(x) r = M.MatMulIntegerToFloat(u, q, us, s, uz, z8, c6)",
    "r = M.MatMulNBits<K = 32, N = 6, bits = 4, block_size = 16>(x32, nib, steps, zeros)",
    "r = M.MatMulNBits<K = 32, N = 6, bits = 4, block_size = 16>(x32, nib, steps, , , c6)",
    "r = M.GatherBlockQuantized<bits = 4, block_size = 16>(table, ids, fine, mids)",
)
INPUTS["x32"] = reals(3, 32)
CONSTANTS["ten"] = np.array([10, 8])


def model_of(body: str, opset: int = 13) -> onnx.ModelProto:
    """Return a model of nodes that read the arrays above; ``M`` stands for onnxruntime's domain."""
    text = body.replace("M.", "com.microsoft.")
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]> g () => () {{ {text} }}'
    )
    read = {name for node in model.graph.node for name in node.input}
    for name, array in INPUTS.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        if name in read:
            model.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    for name, array in CONSTANTS.items():
        if name in read:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    written = {name for node in model.graph.node for name in node.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in sorted({"r", "s2"} & written))
    return model


@pytest.mark.parametrize("body", NODES)
def test_a_node_of_onnxruntime_s_own_gives_what_it_computes(tmp_path: Path, body: str) -> None:
    model = model_of(body)
    path = saved(tmp_path, model)
    network = load_network(path)
    feeds = {name: INPUTS[name] for name in network.inputs}
    found = network_outputs(network, feeds)
    for name, expected in onnxruntime_outputs(model, feeds).items():
        own = next((own for own, given in network.renamed.items() if given == name), name)
        values = found[own].reshape(expected.shape)
        np.testing.assert_allclose(values, expected, 2e-5, 2e-5 * np.abs(expected).max())
