"""onnxruntime's quantised operators: planned in tiles, equal to onnxruntime bit for bit."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from spmilp.checker.values.inputs import random_inputs
from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.load import load_network
from tests.frontend import running
from tests.frontend.running import (
    Array,
    given,
    network_outputs,
    onnxruntime_outputs,
    planned_outputs,
    saved,
)

MODELS = Path(__file__).parents[2] / "models"

CALLS = {
    "QLinearAdd": "com.microsoft.QLinearAdd(x, s, z, v, t, u, r, q)",
    "QLinearAdd broadcast": "com.microsoft.QLinearAdd(x, s, z, c, t, u, r, q)",
    "QLinearMul": "com.microsoft.QLinearMul(x, s, z, v, t, u, r, q)",
    "QLinearConcat": "com.microsoft.QLinearConcat<axis=1>(r, q, x, s, z, v, t, u)",
    "QLinearGlobalAveragePool": "com.microsoft.QLinearGlobalAveragePool(x, s, z, r, q)",
    "QLinearAveragePool": (
        "com.microsoft.QLinearAveragePool<kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]>"
        "(x, s, z, r, q)"
    ),
    "channels last": (
        "one = com.microsoft.QLinearConv<channels_last=1>(x, s, z, wl, t, k, h, q) "
        "two = com.microsoft.NhwcMaxPool<kernel_shape=[2, 3], strides=[2, 1]>(one) "
        "y = com.microsoft.QLinearGlobalAveragePool<channels_last=1>(two, h, q, r, q)"
    ),
    "QLinearSigmoid": "com.microsoft.QLinearSigmoid(x, s, z, e, q)",
    "QLinearLeakyRelu": "com.microsoft.QLinearLeakyRelu<alpha=0.2>(x, s, z, r, q)",
    "QLinearSoftmax": "com.microsoft.QLinearSoftmax<axis=-1, opset=13>(x, s, z, e, q)",
    "QLinearConv": "QLinearConv<pads=[1, 1, 1, 1]>(x, s, z, w, t, k, h, q, b)",
    "QGemm": "com.microsoft.QGemm<transB=1, alpha=0.5>(m, s, z, n, t, k, d, h, q)",
    "QGemm float": "com.microsoft.QGemm<transB=1>(m, s, z, n, t, k, d)",
    "MatMul and borders": (
        "i = QLinearMatMul(x, s, z, p, t, k, h, q) f = com.microsoft.DequantizeLinear(i, h, q) "
        "m = Neg(f) y = com.microsoft.QuantizeLinear(m, h, q)"
    ),
}


def constants(dtype: np.dtype[np.generic], coarse: bool) -> dict[str, Array]:
    """Return scales, zero points and weights."""
    numbers = np.random.default_rng(7)
    low = int(np.iinfo(dtype.name).min)
    # Powers of two give results that end in one half.
    steps = (0.5, 0.25, 0.5, 0.0625, 4.0) if coarse else (0.0373, 0.0219, 0.0711, 0.0039, 1.73)
    zeros = (low + 131, low + 118, low + 3)
    return {
        **{name: np.float32(step) for name, step in zip("streh", steps, strict=True)},
        **{name: np.asarray(at, dtype) for name, at in zip("zuq", zeros, strict=True)},
        "k": np.int8(2),
        "v": numbers.integers(low, low + 256, (1, 8, 12, 10)).astype(dtype),
        "c": numbers.integers(low, low + 256, (1, 8, 1, 1)).astype(dtype),
        "w": numbers.integers(-128, 128, (16, 8, 3, 3)).astype(np.int8),
        "wl": numbers.integers(-128, 128, (6, 10, 3, 3)).astype(np.int8),
        "b": numbers.integers(-5000, 5000, 16).astype(np.int32),
        "n": numbers.integers(-128, 128, (24, 96)).astype(np.int8),
        "d": numbers.integers(-5000, 5000, 24).astype(np.int32),
        "p": numbers.integers(-128, 128, (10, 20)).astype(np.int8),
    }


def model_with(call: str, dtype: np.dtype[np.generic], coarse: bool) -> onnx.ModelProto:
    declared = "[16,96] m" if "QGemm" in call else "[1,8,12,10] x"
    result = "float" if call.endswith("k, d)") else dtype.name
    body, known = call if "y =" in call else f"y = {call}", constants(dtype, coarse)
    model = running.model_with(f"{dtype.name}{declared}", result, body, known)
    model.opset_import.add(domain="com.microsoft", version=1)
    return model


@pytest.mark.parametrize(
    "coarse", [False, pytest.param(True, marks=pytest.mark.full)], ids=["any scale", "halves"]
)
@pytest.mark.parametrize("dtype", [pytest.param(np.int8, marks=pytest.mark.full), np.uint8])
@pytest.mark.parametrize("call", CALLS, ids=list(CALLS))
def test_a_planned_operator_equals_onnxruntime_bit_for_bit(
    tmp_path: Path, call: str, dtype: type[np.integer], coarse: bool
) -> None:
    model = model_with(CALLS[call], np.dtype(dtype), coarse)
    limits = np.iinfo(dtype)
    (declared,) = model.graph.input
    shape = [length.dim_value for length in declared.type.tensor_type.shape.dim]
    data = np.random.default_rng(3).integers(limits.min, limits.max + 1, shape).astype(dtype)
    expected = onnxruntime_outputs(model, {declared.name: data})["y"]

    found = planned_outputs(saved(tmp_path, model), {declared.name: data})["y"]

    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("call", ["QLinearAdd", "QLinearAveragePool", "QGemm", "QLinearConv"])
def test_quantised_operators_of_an_old_operator_set_are_read(tmp_path: Path, call: str) -> None:
    model = model_with(CALLS[call], np.dtype(np.uint8), coarse=False)
    model.opset_import[0].version = 11
    network = load_network(saved(tmp_path, model))
    inputs = random_inputs(network, seed=3)
    expected = onnxruntime_outputs(model, inputs)["y"]
    found = network_outputs(network, inputs)["y"]
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.full
@pytest.mark.parametrize(("activations", "per_channel"), [("QInt8", False), ("QUInt8", True)])
def test_a_planned_resnet_of_quantised_operators_equals_onnxruntime_bit_for_bit(
    tmp_path: Path, activations: str, per_channel: bool
) -> None:
    from onnxruntime import quantization

    path = tmp_path / "resnet8_qoperator.onnx"
    images = iter([given({"input": (1, 3, 32, 32)}, seed) for seed in range(8)])
    reads = {"get_next": lambda _: next(images, None)}
    reader = type("Images", (quantization.CalibrationDataReader,), reads)
    quantization.quantize_static(
        MODELS / "resnet8_f32.onnx",
        path,
        reader(),
        quant_format=quantization.QuantFormat.QOperator,
        per_channel=per_channel,
        activation_type=quantization.QuantType[activations],
    )
    kinds = {node.op_type for node in onnx.load(path).graph.node}
    assert {"QLinearConv", "QLinearAdd", "QLinearAveragePool", "QGemm"} <= kinds
    inputs = given({"input": (1, 3, 32, 32)}, seed=5)

    found = planned_outputs(path, inputs)["output"]

    np.testing.assert_array_equal(found, onnxruntime_outputs(path, inputs)["output"])


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("com.microsoft.QLinearSigmoid(x, f, z, e, q)", "its scales are not constants"),
        ("com.microsoft.QLinearSoftmax<axis=1, opset=11>(x, s, z, e, q)", "sets before 13"),
    ],
)
def test_forms_without_a_plain_one_are_reported_by_their_own_name(
    tmp_path: Path, call: str, reason: str
) -> None:
    model = model_with(call, np.dtype(np.int8), coarse=False)
    model.graph.input.append(onnx.helper.make_tensor_value_info("f", onnx.TensorProto.FLOAT, []))
    with pytest.raises(UnsupportedOperatorError) as raised:
        load_network(saved(tmp_path, model))
    ((name, kind, given_reason),) = raised.value.nodes
    assert (name, kind) == ("y", call.split(".")[2].split("(")[0].split("<")[0])
    assert reason in given_reason
