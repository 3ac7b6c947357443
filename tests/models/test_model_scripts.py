"""The scripts that make the models."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_builder import GraphBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from periodic_weights import PERIOD, fill, fold_up, large_weights
from random_numbers import RandomNumbers

pytestmark = pytest.mark.full

MODELS = Path(__file__).parents[2] / "models"


@pytest.mark.parametrize(
    "scripts",
    [["make_mlperf_tiny", "make_float16"], ["make_recurrent"]],
    ids=lambda scripts: scripts[0],
)
def test_running_a_script_again_gives_the_same_bytes(scripts: list[str], tmp_path: Path) -> None:
    for script in scripts:
        subprocess.run([sys.executable, MODELS / f"{script}.py", tmp_path], check=True)
    made = sorted(tmp_path.glob("*.onnx"))

    assert made
    for path in made:
        assert path.read_bytes() == (MODELS / path.name).read_bytes(), path.name


def test_random_numbers_never_change() -> None:
    numbers = RandomNumbers(1).uniform((3,), -1, 1)

    assert [float(x).hex() for x in numbers] == [
        "0x1.835efa0000000p-6",
        "0x1.cd465a0000000p-1",
        "-0x1.6c616c0000000p-1",
    ]


def test_he_weights_have_their_variance() -> None:
    weights = RandomNumbers(1).he((100, 1000), 50)

    assert weights.var() == pytest.approx(2 / 50, rel=0.02)
    assert weights.mean() == pytest.approx(0, abs=0.002)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "out", "pads"),
    [
        (49, 10, 2, 25, (4, 5)),
        (10, 4, 2, 5, (1, 1)),
        (32, 3, 2, 16, (0, 1)),
        (32, 3, 1, 32, (1, 1)),
        (16, 1, 2, 8, (0, 0)),
    ],
)
def test_padding_is_tensorflows(
    size: int, kernel: int, stride: int, out: int, pads: tuple[int, int], tmp_path: Path
) -> None:
    graph = GraphBuilder("one", seed=1)
    y = graph.conv(graph.image("input", (1, 2, size, size)), 3, (kernel, kernel), stride)
    graph.save(y, tmp_path / "one.onnx", "One convolution", "none")

    conv = onnx.load(tmp_path / "one.onnx").graph.node[0]
    before, after = pads
    assert y.shape == (1, 3, out, out)
    assert next(list(a.ints) for a in conv.attribute if a.name == "pads") == [
        *(before, before),
        *(after, after),
    ]


def test_batch_normalization_folds_without_a_trace() -> None:
    pytest.importorskip("onnxruntime")
    from make_int8 import fold_batch_normalization

    for name in ("resnet8", "autoencoder"):
        model = onnx.load(MODELS / f"{name}_f32.onnx")
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(3).standard_normal(shape, dtype=np.float32)
        before = _evaluate(model, x)
        fold_batch_normalization(model)

        onnx.checker.check_model(model, full_check=True)
        assert "BatchNormalization" not in {node.op_type for node in model.graph.node}
        np.testing.assert_allclose(_evaluate(model, x), before, rtol=1e-3, atol=1e-5)


def test_calibration_gives_the_deviation_and_cancels_means() -> None:
    pytest.importorskip("onnxruntime")
    from calibrate import calibrate

    model = _matmul_model((5, 40), (40, 30), bias=True)
    feeds = [{"x": RandomNumbers(7).normal((5, 40)) + np.float32(1)} for _ in range(3)]
    weight = numpy_helper.to_array(model.graph.initializer[0]).copy()
    factors = calibrate(model, feeds, deviation=2.0)

    outputs = np.stack([_evaluate(model, feed["x"]) for feed in feeds])
    means = outputs.reshape(-1, 30).mean(axis=0)
    assert (outputs - means).std() == pytest.approx(2, rel=0.01)
    # What is left is the bias that was there, here zero, and the rounding to two decimals.
    assert np.abs(means).max() < 0.006
    np.testing.assert_array_equal(
        numpy_helper.to_array(model.graph.initializer[0]), weight * np.float32(factors["w"])
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shapes=st.lists(
        st.tuples(st.integers(1, 90), st.integers(1, 300)).filter(lambda s: s[0] * s[1] >= 2048),
        min_size=1,
        max_size=3,
    ),
    seed=st.integers(0, 5),
)
def test_folded_up_weights_unfold_to_what_they_were(
    shapes: list[tuple[int, int]], seed: int
) -> None:
    names = [f"w{i}" for i in range(len(shapes))]
    nodes = [helper.make_node("MatMul", [f"x{n}", n], [f"y{n}"]) for n in names]
    tensors = [
        numpy_helper.from_array(np.zeros(shape, dtype=np.float32), name)
        for name, shape in zip(names, shapes, strict=True)
    ]
    graph = helper.make_graph(nodes, "g", [], [], initializer=tensors)
    weights = large_weights(graph)
    fill(graph, weights, seed)
    factor = np.float32(0.3)
    expected = [numpy_helper.to_array(tensor) * factor for tensor in graph.initializer]
    fold_up(graph, weights, dict.fromkeys(names, 0.3), seed)

    assert weights == tuple(names)
    values = _constants(graph, names)
    for value, dense in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, dense)


def test_a_folded_up_weight_is_four_nodes_and_goes_through_the_base_again() -> None:
    model = _matmul_model((1, 100), (100, 100), bias=False)
    fill(model.graph, ["w"], seed=4)
    dense = numpy_helper.to_array(model.graph.initializer[0]).ravel().copy()
    fold_up(model.graph, ["w"], {}, seed=4)

    kinds = [node.op_type for node in model.graph.node]
    assert kinds == ["Tile", "Slice", "Reshape", "Mul", "MatMul"]
    np.testing.assert_array_equal(dense[PERIOD:], dense[: dense.size - PERIOD])
    onnx.checker.check_model(model, full_check=True)


def test_small_weights_stay_as_they_are() -> None:
    assert large_weights(_matmul_model((1, 40), (40, 51), bias=False).graph) == ()
    assert large_weights(_matmul_model((1, 40), (40, 52), bias=False).graph) == ("w",)


def _matmul_model(
    x_shape: tuple[int, int], w_shape: tuple[int, int], *, bias: bool
) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p" if bias else "y"])]
    tensors = [numpy_helper.from_array(RandomNumbers(1).uniform(w_shape, -1, 1), "w")]
    if bias:
        nodes.append(helper.make_node("Add", ["p", "b"], ["y"]))
        tensors.append(numpy_helper.from_array(np.zeros(w_shape[1], dtype=np.float32), "b"))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, x_shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (x_shape[0], w_shape[1]))
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _constants(graph: onnx.GraphProto, names: list[str]) -> list[np.ndarray]:
    made = [node for node in graph.node if node.op_type != "MatMul"]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]
    constant = helper.make_graph(made, "g", [], outputs, initializer=graph.initializer)
    model = helper.make_model(constant, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return ReferenceEvaluator(model).run(None, {})


def _evaluate(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    return ReferenceEvaluator(model).run(None, {model.graph.input[0].name: x})[0]
