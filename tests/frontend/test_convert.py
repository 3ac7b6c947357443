"""Nodes become operators with explicit attributes that compute what onnxruntime computes."""

from pathlib import Path

import numpy as np
import pytest

from spmilp.errors import SpmilpError, UnsupportedOperatorError
from tests.frontend.running import (
    given,
    loaded,
    model_of,
    network_outputs,
    onnxruntime_outputs,
)

CASES = {
    "auto_pad upper": ("float[1,2,7,6] x", 'Conv<auto_pad="SAME_UPPER", strides=[2, 3]>(x, w)'),
    "auto_pad lower": ("float[1,2,7,6] x", 'Conv<auto_pad="SAME_LOWER", strides=[2, 2]>(x, w)'),
    "auto_pad valid": ("float[1,2,7,6] x", 'Conv<auto_pad="VALID">(x, w)'),
    "transposed": (
        "float[1,3,4,5] x",
        "ConvTranspose<strides=[2, 2], output_padding=[1, 0]>(x, w)",
    ),
    "transposed same": (
        "float[1,3,4,5] x",
        'ConvTranspose<auto_pad="SAME_UPPER", strides=[2, 2]>(x, w)',
    ),
    "transposed lower": (
        "float[1,3,4,5] x",
        'ConvTranspose<auto_pad="SAME_LOWER", strides=[3, 2]>(x, w)',
    ),
    "transposed shape": (
        "float[1,3,4,5] x",
        "ConvTranspose<output_shape=[8, 10], strides=[2, 2]>(x, w)",
    ),
    "pool same": (
        "float[1,2,7,6] x",
        'MaxPool<kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2]>(x)',
    ),
    "average same": (
        "float[1,2,7,6] x",
        'AveragePool<kernel_shape=[2, 2], auto_pad="SAME_LOWER">(x)',
    ),
    "pool ceil": (
        "float[1,2,7,6] x",
        "MaxPool<kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1>(x)",
    ),
    "clip both": ("float[3,4] x", "Clip(x, low, high)"),
    "clip low": ("float[3,4] x", "Clip(x, low)"),
    "clip high": ("float[3,4] x", "Clip(x, , high)"),
    "softmax": ("float[3,4,5] x", "Softmax<axis=-2>(x)"),
    "log softmax": ("float[3,4,5] x", "LogSoftmax(x)"),
    "transpose": ("float[3,4,5] x", "Transpose(x)"),
    "flatten back": ("float[3,4,5] x", "Flatten<axis=-1>(x)"),
    "flatten all": ("float[3,4,5] x", "Flatten<axis=3>(x)"),
    "squeeze all": ("float[1,4,1,5] x", "Squeeze(x)"),
    "squeeze": ("float[1,4,1,5] x", "Squeeze(x, minus)"),
    "unsqueeze": ("float[4,5] x", "Unsqueeze(x, axes)"),
    "expand": ("float[4,1] x", "Expand(x, shape)"),
    "tile": ("float[4,5] x", "Tile(x, twice)"),
    "slice back": ("float[6,7] x", "Slice(x, starts, ends, axes2, steps)"),
    "slice no axes": ("float[6,7] x", "Slice(x, twice, shape)"),
    "gather": ("float[6,7] x", "Gather<axis=-1>(x, indices)"),
    "gather one": ("float[6,7] x", "Gather<axis=0>(x, one)"),
    "pad axes": ("float[3,4,5] x", "Pad(x, pads, high, back)"),
    "pad reflect": ("float[3,4,5] x", 'Pad<mode="reflect">(x, pads, , back)'),
    "resize scales": ("float[1,2,4,6] x", 'Resize<mode="linear">(x, , scales)'),
    "resize sizes": (
        "float[1,2,4,6] x",
        'Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , , sizes)',
    ),
    "mean": ("float[3,4,5] x", "ReduceMean<keepdims=0>(x, back)"),
    "sum all": ("float[3,4,5] x", "ReduceSum(x)"),
    "sum none": ("float[3,4] x", "ReduceSum<noop_with_empty_axes=1>(x)"),
    "cumulative": ("float[3,4] x", "CumSum<reverse=1>(x, minus1)"),
    "triangle": ("float[4,4] x", "Trilu<upper=0>(x, one)"),
    "einsum": ("float[3,4] x", 'Einsum<equation=" ij , ij -> j">(x, x)'),
    "einsum implicit": ("float[3,4] x", 'Einsum<equation="ba,cb">(x, x3)'),
    "layer norm": ("float[3,4] x", "LayerNormalization<axis=-1>(x, scale)"),
    "lrn": ("float[1,6,3,3] x", "LRN<size=3>(x)"),
    "gelu": ("float[3,4] x", 'Gelu<approximate="tanh">(x)'),
    "hard swish": ("float[3,4] x", "HardSwish(x)"),
}

CONSTANTS = """
<float[3,2,3,3] w = {W}, float low = {-0.5}, float high = {0.75}, int64[1] minus = {-2},
 int64[2] axes = {-1, 0}, int64[2] shape = {4, 3}, int64[2] twice = {2, 2},
 int64[2] starts = {-1, 6}, int64[2] ends = {-9, -9}, int64[2] axes2 = {-1, 0},
 int64[2] steps = {-2, -3}, int64[2,2] indices = {0, -1, 3, 3}, int64 one = {1},
 int64[4] pads = {1, 2, 0, 1}, int64[2] back = {-1, 0}, float[4] scales = {1, 1, 2, 0.5},
 int64[4] sizes = {1, 2, 5, 9}, int64 minus1 = {-1}, float[4] scale = {1, 2, 3, 4},
 float[2,3] x3 = {1, 2, 3, 4, 5, 6}>
"""


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_an_operator_computes_what_onnxruntime_does(tmp_path: Path, case: str) -> None:
    declared, call = CASES[case]
    weights = ", ".join(str(v) for v in np.linspace(-1, 1, 54).round(3))
    constants = CONSTANTS.replace("{W}", f"{{{weights}}}").replace("\n", " ")
    opset = 20 if call.startswith("Gelu") else 18
    model = model_of(f"agraph ({declared}) => (float[?] y) {constants} {{ y = {call} }}", opset)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    inputs = given({"x": tuple(shape)})
    expected = onnxruntime_outputs(model, inputs)["y"]

    found = network_outputs(loaded(tmp_path, model), inputs)["y"]

    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


def test_split_becomes_slices_and_unused_parts_vanish(tmp_path: Path) -> None:
    graph = """
    agraph (float[6,4] x) => (float[2,4] y)
    <int64[3] parts = {1, 2, 3}>
    { a, b, c = Split<axis=0>(x, parts) y = Relu(b) }
    """
    (group,) = loaded(tmp_path, graph).groups
    assert [operator.kind for operator in group.operators] == ["Slice", "Relu"]
    assert group.operators[0].attributes == {
        "starts": (1,),
        "ends": (3,),
        "axes": (0,),
        "steps": (1,),
    }


def test_everything_that_cannot_be_lowered_is_listed(tmp_path: Path) -> None:
    graph = """
    agraph (float[4] x, bool flag) => (float[4] y, int64[n,1] z, float[4] m, float[4] s)
    {
        z = NonZero(x)
        d = Dropout(x, half, flag)
        m = mystery.Magic(d)
        u, w = Unique<sorted=1>(x)
        s = Mul(x, x)
        y = If (flag) <
            then_branch = a_graph () => (float[4] a) { a = Relu(x) },
            else_branch = b_graph () => (float[4] b) { b = Sqrt(x) }
        >
    }
    """.replace("half", "x0")
    model = model_of(graph.replace("(x, x0, flag)", "(x, , flag)"))
    model.opset_import.add(domain="mystery", version=1)
    with pytest.raises(UnsupportedOperatorError) as raised:
        loaded(tmp_path, model)
    reported = {kind: reason for _, kind, reason in raised.value.nodes}
    assert set(reported) == {"NonZero", "Dropout", "Magic", "If"}
    assert "domain mystery" in reported["Magic"]
    assert "control flow" in reported["If"]
    assert "4 nodes cannot be lowered" in str(raised.value)


def test_an_operator_that_is_replaced_by_others_is_reported_by_its_own_name(
    tmp_path: Path,
) -> None:
    graph = """
    agraph (float[4] x, float[1,2,3] s) => (float[4] y, float[4] z, float[1,1,2,4] l)
    <float[1,16,3] w = {W}, float[1,16,4] r = {R}, float[1,12] p = {P}>
    {
        [noisy] y = Bernoulli<seed=1.0>(x)
        z = Relu(x)
        [memory] l, h, c = LSTM<hidden_size=4>(s, w, r, , , , , p)
    }
    """
    for letter, count in (("W", 48), ("R", 64), ("P", 12)):
        graph = graph.replace(f"{{{letter}}}", f"{{{', '.join(['0.5'] * count)}}}")
    with pytest.raises(UnsupportedOperatorError) as raised:
        loaded(tmp_path, graph)
    reported = [(name, kind) for name, kind, _ in raised.value.nodes]
    assert reported == [("noisy", "Bernoulli"), ("memory", "LSTM")]


def test_a_tensor_without_elements_has_a_message_of_its_own(tmp_path: Path) -> None:
    graph = """
    agraph (float[4,8] x) => (float[4,0] y, float[4,8] z)
    <int64[1] none = {0}, int64[1] axis = {1}>
    { e = Slice(x, none, none, axis) y = Relu(e) z = Relu(x) }
    """
    with pytest.raises(UnsupportedOperatorError) as raised:
        loaded(tmp_path, graph)
    ((name, kind, reason),) = raised.value.nodes
    assert (name, kind) == ("e", "Slice")
    assert "e of shape [4, 0] has no elements" in reason


def test_an_input_without_elements_has_a_message_of_its_own(tmp_path: Path) -> None:
    graph = "agraph (float[4,0] x) => (float[4,0] y) { y = Relu(x) }"
    with pytest.raises(SpmilpError, match=r"x of shape \[4, 0\] has no elements.* --dim x\.1=1"):
        loaded(tmp_path, graph)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (
            "agraph (float[1,1,4,4] x) => (float[1,1,2,2] y, int64[1,1,2,2] i) "
            "{ y, i = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x) }",
            "output 1 is used",
        ),
        ("agraph (string[2] x) => (string[2] y) { y = Identity(x) }", "data type string"),
        (
            "agraph (float[4] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }",
            "depends on data",
        ),
        (
            "agraph (float[4] x, int64[1] s, int64[1] e) => (float[a] y) { y = Slice(x, s, e) }",
            r"input 1 \(s\) is not constant",
        ),
    ],
)
def test_a_form_that_is_not_supported_is_reported(tmp_path: Path, graph: str, reason: str) -> None:
    with pytest.raises(UnsupportedOperatorError, match=reason):
        loaded(tmp_path, graph)
