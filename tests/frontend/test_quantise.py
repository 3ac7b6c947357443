"""Quantised patterns become integer operators, and the integers are right."""

from pathlib import Path

import numpy as np
import pytest

from spmilp.frontend.graph import Network, Operator
from tests.frontend.running import (
    given,
    loaded,
    model_of,
    network_outputs,
    onnxruntime_outputs,
)

WEIGHTS = ", ".join(str((7 * k) % 23 - 11) for k in range(54))

CONSTANTS = f"""
<float s1 = {{0.02}}, float s2 = {{0.05}}, int8 z1 = {{3}}, int8 z2 = {{-7}},
 uint8 u1 = {{120}}, uint8 u2 = {{0}}, float zero = {{0}}, float six = {{0.6}},
 int8[3,2,3,3] w = {{{WEIGHTS}}}, float[3] sw = {{0.01, 0.02, 0.03}}, int8[3] zw = {{0, 0, 0}},
 int32[3] b = {{100, -50, 7}}, float[3] sb = {{0.0002, 0.0004, 0.0006}}, int32[3] zb = {{0, 0, 0}},
 float[3] real = {{0.5, -0.25, 0.125}}, float[3] other = {{0.1, 0.1, 0.1}},
 int64[4] flat = {{1, 2, 5, 5}}, int64[4] pads = {{1, 1, 1, 1}}, int64[2] spatial = {{2, 3}}>
"""

BORDER = "q = QuantizeLinear(x, s1, z1) r = DequantizeLinear(q, s1, z1)"
WEIGHT = "wr = DequantizeLinear<axis=0>(w, sw, zw) br = DequantizeLinear<axis=0>(b, sb, zb)"
END = "qy = QuantizeLinear(f, s2, z2) y = DequantizeLinear(qy, s2, z2)"


def quantised(body: str) -> str:
    """Return a graph that quantises x, computes f from r, and quantises f."""
    return f"agraph (float[1,2,5,5] x) => (float[a,b,c,d] y) {CONSTANTS} {{ {body} }}"


def operators(network: Network) -> list[Operator]:
    return [operator for group in network.groups for operator in group.operators]


def kinds(network: Network) -> list[str]:
    return [operator.kind for operator in operators(network)]


def assert_within_a_step(graph: str, network: Network, step: float = 0.05) -> None:
    """Compare with onnxruntime; where its kernels round otherwise, a step may lie between."""
    inputs = given({"x": (1, 2, 5, 5)})
    expected = onnxruntime_outputs(model_of(graph), inputs)["y"]
    found = network_outputs(network, inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=step * 1.001)
    assert np.mean(np.abs(found - expected) < 1e-4) > 0.9


CONV = f"{BORDER} {WEIGHT} c = Conv(r, wr, br)"
EQUAL = END.replace("s2, z2", "s1, z1")
CUT = "low = Constant<value_float=0.9>() high = Constant<value_float=2.0>() k = Clip(c, , six)"
PATTERNS = {
    "a convolution": (f"{CONV} f = Identity(c) {END}", "Conv"),
    "pooling": (f"{BORDER} f = MaxPool<kernel_shape=[2,2]>(r) {EQUAL}", "MaxPool"),
    "a transposition": (f"{BORDER} f = Transpose<perm=[0,1,3,2]>(r) {EQUAL}", "Transpose"),
    "a padding": (f"{BORDER} f = Pad(r, pads, six, spatial) {EQUAL}", "Pad"),
    "a limit": (f"{BORDER} f = Relu(r) {EQUAL}", "Relu"),
    "another scale": (
        f"{BORDER} qy = QuantizeLinear(r, s2, u1) y = DequantizeLinear(qy, s2, u1)",
        "Identity",
    ),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_quantised_pattern_becomes_one_integer_operator(tmp_path: Path, pattern: str) -> None:
    body, kind = PATTERNS[pattern]
    network = loaded(tmp_path, quantised(body))
    assert kinds(network) == ["QuantizeLinear", kind, "DequantizeLinear"]
    one = operators(network)[1]
    quantisation = one.quantisation
    # Moves between equal scales know no scale.
    assert (quantisation is None) == (kind in ("MaxPool", "Transpose", "Pad"))
    if kind == "Conv":
        dtypes = [network.tensors[name].dtype.name for name in (*one.inputs, one.output)]
        assert dtypes == ["int8", "int8", "int32", "int8"]
        assert quantisation is not None
        assert quantisation.inputs[1] is not None
        assert quantisation.inputs[1].axis == 0
    if kind == "Pad":
        assert one.attributes["value"] == round(0.6 / 0.02) + 3
    assert_within_a_step(quantised(body), network, 0.02 if kind == "Pad" else 0.05)


@pytest.mark.parametrize(
    ("between", "limits"),
    [
        ("f = Relu(c)", (0.0, None)),
        ("f = Clip(c, zero, six)", (0.0, 0.6)),
        ("k = Clip(c, , six) f = Relu(k)", (0.0, 0.6)),
        ("k = Relu(c) f = Relu(k)", (0.0, None)),
        # To at most 0.6, then to at least 0.9: all results are 0.9.
        (f"{CUT} f = Clip(k, low, high)", (0.9, 0.9)),
    ],
)
def test_relu_and_clip_become_limits(
    tmp_path: Path, between: str, limits: tuple[float, float | None]
) -> None:
    graph = quantised(f"{CONV} {between} {END}")
    network = loaded(tmp_path, graph)

    assert kinds(network) == ["QuantizeLinear", "Conv", "DequantizeLinear"]
    quantisation = operators(network)[1].quantisation
    assert quantisation is not None
    assert (quantisation.low, quantisation.high) == pytest.approx(limits)
    assert_within_a_step(graph, network)


def test_a_bias_with_another_scale_is_taken_as_the_reals_it_stands_for(tmp_path: Path) -> None:
    graph = quantised(f"{CONV.replace('sb', 'other')} f = Identity(c) {END}")
    network = loaded(tmp_path, graph)
    bias = network.tensors[operators(network)[1].inputs[2]]
    assert bias.dtype == np.float32
    assert bias.data == pytest.approx([10.0, -5.0, 0.7])
    assert_within_a_step(graph, network)


def test_dequantised_weights_of_a_real_operator_are_constants(tmp_path: Path) -> None:
    graph = quantised(f"{WEIGHT} f = Conv(x, wr, br) y = Relu(f)")
    network = loaded(tmp_path, graph)
    assert kinds(network) == ["Conv", "Relu"]
    weight = network.tensors[operators(network)[0].inputs[1]]
    assert weight.dtype == np.float32
    assert weight.data is not None
    assert_within_a_step(graph, network, step=1e-4)


def test_transposed_integer_weights_stay_integers(tmp_path: Path) -> None:
    graph = f"""
    agraph (float[4,6] x) => (float[4,3] y)
    <float s1 = {{0.02}}, float s2 = {{0.05}}, int8 z1 = {{3}}, int8 z2 = {{-7}},
     int8[3,6] w = {{{", ".join(str(5 * k % 17 - 8) for k in range(18))}}},
     float[3] sw = {{0.01, 0.02, 0.03}}>
    {{
        {BORDER}
        wr = DequantizeLinear<axis=0>(w, sw)
        t = Transpose(wr)
        f = MatMul(r, t)
        {END}
    }}
    """
    network = loaded(tmp_path, graph)
    assert kinds(network) == ["QuantizeLinear", "MatMul", "DequantizeLinear"]
    matmul = operators(network)[1]
    assert network.tensors[matmul.inputs[1]].shape == (6, 3)
    assert network.tensors[matmul.inputs[1]].dtype == np.int8
    inputs = given({"x": (4, 6)})
    expected = onnxruntime_outputs(model_of(graph), inputs)["y"]
    np.testing.assert_allclose(network_outputs(network, inputs)["y"], expected, atol=0.051)
