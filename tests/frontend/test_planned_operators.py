"""Operators planned in tiles: what the plan's tasks compute is what onnxruntime computes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spmilp.checker.values.compare import compare
from spmilp.checker.values.inputs import random_inputs
from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.load import load_network
from tests.frontend import running
from tests.frontend.running import (
    loaded,
    model_of,
    onnxruntime_outputs,
    plan_of,
    planned_outputs,
    saved,
)

MODELS = Path(__file__).parents[2] / "models"

RANDOM = np.random.default_rng(5)
CONSTANTS = {
    "k": np.array([3], np.int64),
    "positions": RANDOM.integers(-8, 8, (1, 20, 2)),
    "cells": np.stack(np.unravel_index(RANDOM.permutation(128)[:20], (8, 16)), axis=-1),
    "spots": RANDOM.integers(-16, 16, (6, 20, 30)),
    "more": RANDOM.standard_normal((6, 20, 30)).astype(np.float32),
    "some": RANDOM.standard_normal((20, 40)).astype(np.float32),
    "w": RANDOM.integers(0, 256, (12, 8, 3, 3)).astype(np.uint8),
    "m": RANDOM.integers(-128, 128, (40, 24)).astype(np.int8),
    "zero": np.uint8(120),
    "zeros": RANDOM.integers(-9, 9, 24).astype(np.int8),
    "c": RANDOM.standard_normal((1, 16, 4)).astype(np.float32),
    "s": RANDOM.standard_normal((1, 16, 4)).astype(np.float32),
}

CASES = {
    "TopK both": (
        "float[1,8,16,40] x",
        "float",
        "a, b = TopK(x, k) f = Cast<to=1>(b) y = Add(a, f)",
    ),
    "GatherND": ("float[1,8,16,40] x", "float", "y = GatherND<batch_dims=1>(x, positions)"),
    "ScatterND adds": (
        "float[8,16,40] x",
        "float",
        'y = ScatterND<reduction="add">(x, cells, some)',
    ),
    "GatherElements": ("float[8,16,40] x", "float", "y = GatherElements<axis=1>(x, spots)"),
    "ScatterElements": (
        "float[8,16,40] x",
        "float",
        'y = ScatterElements<axis=1, reduction="add">(x, spots, more)',
    ),
    "ConvInteger": (
        "uint8[1,8,14,10] x",
        "int32",
        "y = ConvInteger<pads=[1, 1, 1, 1]>(x, w, zero)",
    ),
    "MatMulInteger": ("uint8[6,30,40] x", "int32", "y = MatMulInteger(x, m, zero, zeros)"),
    "DynamicQuantizeLinear": (
        "float[64,40] x",
        "float",
        "q, r, z = DynamicQuantizeLinear(x) i = MatMulInteger(q, m, z) f = Cast<to=1>(i) "
        "y = Mul(f, r)",
    ),
    "run-time scales": (
        "float[64,40] x, float t, uint8 u",
        "float",
        "q = QuantizeLinear(x, t, u) n = Transpose(q) y = DequantizeLinear(n, t, u)",
    ),
    "RotaryEmbedding": ("float[1,6,16,8] x", "float", "y = RotaryEmbedding(x, c, s)"),
}


def model_with(declared: str, result: str, body: str) -> onnx.ModelProto:
    """Return a model with those constants that its nodes read."""
    opset = 23 if "Rotary" in body else 18
    return running.model_with(declared, result, body, CONSTANTS, opset)


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_a_planned_operator_computes_what_onnxruntime_does(tmp_path: Path, case: str) -> None:
    model = model_with(*CASES[case])
    path = saved(tmp_path, model)
    inputs = random_inputs(load_network(path), seed=4)
    if case == "run-time scales":
        inputs |= {"t": np.asarray(0.03, np.float32), "u": np.asarray(117, np.uint8)}
    expected = onnxruntime_outputs(model, inputs)["y"]

    result = plan_of(path)
    found = planned_outputs(path, inputs)["y"]

    assert len(result.problem.tasks) > 1
    assert found.dtype == expected.dtype
    tolerance = 1e-6 if np.issubdtype(expected.dtype, np.floating) else 0
    np.testing.assert_allclose(
        found.reshape(expected.shape), expected, rtol=tolerance, atol=tolerance
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "weights"),
    [("autoencoder_f32", "QInt8"), ("autoencoder_f32", "QUInt8")],
)
def test_a_planned_network_of_dynamic_scales_computes_what_onnxruntime_does(
    tmp_path: Path, name: str, weights: str
) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    path = tmp_path / "dynamic.onnx"
    quantize_dynamic(MODELS / f"{name}.onnx", path, weight_type=QuantType[weights])
    network = load_network(path)
    inputs = random_inputs(network, seed=1)
    found, expected = planned_outputs(path, inputs), onnxruntime_outputs(path, inputs)
    assert all(one.relative <= 1e-6 for one in compare(found, expected, network))


def four_bit_model(kind: int, block: int, zero: bool) -> onnx.ModelProto:
    """Return a product with weights of four bits, one scale per column or per block of rows."""
    signed = kind == TensorProto.INT4
    numbers = np.random.default_rng(2)
    low, high = (-8, 8) if signed else (0, 16)
    steps = (32 // block, 24) if block else (24,)
    weights = numbers.integers(low, high, (32, 24))
    zeros = numbers.integers(low, high, steps)
    names = ["w", "s", "z"] if zero else ["w", "s"]
    how = {"axis": 0, "block_size": block} if block else {"axis": 1}
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", names, ["v"], **how),
            helper.make_node("DequantizeLinear", ["x", "t"], ["r"]),
            helper.make_node("MatMul", ["r", "v"], ["p"]),
            helper.make_node("QuantizeLinear", ["p", "u", "q"], ["y"]),
        ],
        "four bits",
        [helper.make_tensor_value_info("x", TensorProto.INT8, [40, 32])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [40, 24])],
        [
            helper.make_tensor("w", kind, weights.shape, weights.reshape(-1).tolist()),
            numpy_helper.from_array(numbers.uniform(0.01, 0.1, steps).astype(np.float32), "s"),
            helper.make_tensor("z", kind, zeros.shape, zeros.reshape(-1).tolist()),
            numpy_helper.from_array(np.float32(0.02), "t"),
            numpy_helper.from_array(np.float32(0.4), "u"),
            numpy_helper.from_array(np.int8(5), "q"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("zero", [False, True], ids=["symmetric", "zero points"])
@pytest.mark.parametrize("block", [0, 16], ids=["columns", "blocks"])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4], ids=["int4", "uint4"])
def test_weights_of_four_bits_give_what_onnxruntime_computes_within_a_step(
    tmp_path: Path, kind: int, block: int, zero: bool
) -> None:
    model = four_bit_model(kind, block, zero)
    path = saved(tmp_path, model)
    data = np.random.default_rng(3).integers(-128, 128, (40, 32)).astype(np.int8)
    expected = onnxruntime_outputs(model, {"x": data})["y"].astype(int)

    found = planned_outputs(path, {"x": data})["y"].astype(int)

    assert np.abs(found - expected).max() <= 1
    assert np.count_nonzero(found - expected) <= 2
    network = load_network(path)
    stored = {t.dtype.name for t in network.tensors.values() if t.shape == (32, 24)}
    assert stored == ({"float32"} if block else {"int8"} if kind == TensorProto.INT4 else {"uint8"})


def test_rows_of_a_table_of_four_bits_are_looked_up(tmp_path: Path) -> None:
    graph = """
    agraph (int64[3] i) => (float[3,2] y)
    <int8[4,2] bytes = {1, -2, 3, -4, 5, -6, 7, -8}, float s = {0.5}>
    { table = Cast<to=22>(bytes) reals = DequantizeLinear(table, s) y = Gather(reals, i) }
    """
    path = saved(tmp_path, model_of(graph, 21))
    found = planned_outputs(path, {"i": np.array([3, 0, -3])})["y"]
    np.testing.assert_array_equal(found, [[3.5, -4], [0.5, -1], [1.5, -2]])


def test_several_scales_that_are_computed_are_reported(tmp_path: Path) -> None:
    graph = """
    agraph (float[4,6] x, float[6] s) => (float[4,6] y)
    <int8[6] z = {0, 0, 0, 0, 0, 0}>
    { [fine] q = QuantizeLinear<axis=1>(x, s, z) [back] y = DequantizeLinear<axis=1>(q, s, z) }
    """
    with pytest.raises(UnsupportedOperatorError) as raised:
        loaded(tmp_path, graph)
    reported = {name: reason for name, _, reason in raised.value.nodes}
    assert set(reported) == {"fine", "back"}
    assert all("several scales" in reason for reason in reported.values())


def test_a_dynamic_range_of_zero_has_a_step_of_one(tmp_path: Path) -> None:
    model = model_with(*CASES["DynamicQuantizeLinear"])
    inputs = {"x": np.zeros((64, 40), np.float32)}
    expected = onnxruntime_outputs(model, inputs)["y"]
    np.testing.assert_array_equal(planned_outputs(saved(tmp_path, model), inputs)["y"], expected)


FILLED = """
agraph (float[1,3,12,10] x) => (float[1,5] y)
<int64[4] s = {8, 3, 3, 3}, int64[2] d = {5, 640}, int64[1] b = {5}>
{
    w = ConstantOfShape<value = float[1] {0.25}>(s)
    c = Conv<strides=[1, 1]>(x, w)
    n = BatchNormalization(c, scale, shift, mean, var)
    t = Tanh(n)
    f = Flatten(t)
    v = ConstantOfShape<value = float[1] {-0.5}>(d)
    o = ConstantOfShape(b)
    y = Gemm<transB=1>(f, v, o)
}
"""


def filled_model() -> onnx.ModelProto:
    """Return a model whose weights are one number each, normalised by ordinary constants."""
    model = model_of(FILLED)
    numbers = np.random.default_rng(6)
    for name in ("scale", "shift", "mean", "var"):
        array = numbers.uniform(0.5, 2, 8).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def test_weights_filled_with_a_number_are_replayed(tmp_path: Path) -> None:
    path = saved(tmp_path, filled_model())
    inputs = random_inputs(load_network(path), seed=2)
    expected = onnxruntime_outputs(path, inputs)["y"]
    found = planned_outputs(path, inputs)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
