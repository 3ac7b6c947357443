"""Quantised patterns become integer operators, and the integers are right."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.graph import Network, Operator
from tests.frontend.running import (
    given,
    loaded,
    model_of,
    network_outputs,
    onnxruntime_outputs,
    planned_outputs,
    saved,
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


PRODUCTS = {
    "Conv": ("Conv", (4, 4, 3, 3), {}, (1, 4, 6, 6), 0),
    "Conv in groups": ("Conv", (4, 2, 3, 3), {"group": 2}, (1, 4, 6, 6), 0),
    "ConvTranspose": ("ConvTranspose", (4, 4, 3, 3), {}, (1, 4, 6, 6), 1),
    "ConvTranspose in groups": ("ConvTranspose", (4, 2, 3, 3), {"group": 2}, (1, 4, 6, 6), 1),
    "MatMul": ("MatMul", (4, 4), {}, (3, 4), 1),
    "MatMul in batches": ("MatMul", (4, 4, 4), {}, (4, 4, 4), 2),
    "MatMul of a vector": ("MatMul", (4,), {}, (4, 4), None),
    "Gemm": ("Gemm", (4, 4), {}, (3, 4), 1),
    "Gemm, transposed": ("Gemm", (4, 4), {"transB": 1}, (3, 4), 0),
}


@pytest.mark.parametrize(
    ("product", "axis"),
    [(name, axis) for name, (_, w, *_) in PRODUCTS.items() for axis in range(len(w))],
)
def test_scales_of_weights_lie_along_the_axis_that_the_model_names(
    tmp_path: Path, product: str, axis: int
) -> None:
    kind, shape, attributes, given_shape, channels = PRODUCTS[product]
    graph = f"agraph (float[{','.join(map(str, given_shape))}] x) => (float y) {CONSTANTS} {{"
    model = model_of(f"{graph} {BORDER} v = DequantizeLinear<axis={axis}>(k, sk, zk) {END} }}")
    model.graph.output[0].type.Clear()
    numbers = np.random.default_rng(5)
    for name, array in {
        "k": numbers.integers(-128, 128, shape).astype(np.int8),
        "sk": numbers.uniform(0.002, 0.02, shape[axis]).astype(np.float32),
        "zk": numbers.integers(-5, 6, shape[axis]).astype(np.int8),
    }.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    model.graph.node.insert(3, helper.make_node(kind, ["r", "v"], ["f"], **attributes))
    inputs, network = given({"x": given_shape}), loaded(tmp_path, model)
    expected = onnxruntime_outputs(model, inputs)["y"]

    found = network_outputs(network, inputs)["y"]

    np.testing.assert_allclose(found, expected, rtol=0, atol=0.0501)
    assert np.mean(np.abs(found - expected) < 1e-4) > 0.9
    is_integer = any(one.kind == kind and one.quantisation for one in operators(network))
    assert is_integer == (axis == channels or shape[axis] == 1)


def test_what_does_not_just_move_integers_works_on_reals(tmp_path: Path) -> None:
    """A view with a scale of its own as an output, and a constant of reals beside integers."""
    ends = (
        "e = QuantizeLinear(r, s2, u1) o = Flatten(e) d = Flatten(r) p = QuantizeLinear(d, s2, u1)"
    )
    graph = f"""
    agraph (float[1,2,5,5] x) => (uint8[m,n] o, uint8[m,n] p, float[a,b,c,d] y)
    {CONSTANTS.replace("zero = {0}", "zero = {0}, float[1,2,5,1] c = {REALS}")}
    {{ {BORDER} {ends} f = Concat<axis=3>(r, c) {EQUAL} }}
    """.replace("REALS", ", ".join(str(0.1 * k) for k in range(10)))
    inputs = given({"x": (1, 2, 5, 5)})
    expected = onnxruntime_outputs(model_of(graph), inputs)
    found = planned_outputs(saved(tmp_path, model_of(graph)), inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name].reshape(array.shape), array, atol=1e-5)


def test_an_operator_of_integers_with_several_scales_of_its_data_is_refused(tmp_path: Path) -> None:
    graph = """
    agraph (int8[2,2] x) => (int8[2,2] y)
    <float one = {0.1}, float[2] two = {0.1, 0.2}, int8 z = {0}, int8[2] zz = {0, 0},
     int8[2,2] w = {1, 2, 3, 4}>
    { y = QLinearMatMul(x, two, zz, w, one, z, one, z) }
    """
    with pytest.raises(UnsupportedOperatorError, match="several scales"):
        loaded(tmp_path, graph)
