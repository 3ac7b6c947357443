"""Networks of integers in float tensors (Deeploy): typed, planned, replayed exactly."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.load import load_network
from tests.frontend.running import Array, planned_outputs, saved


def shift(
    name: str, inputs: list[str], output: str, *, div: int, levels: int, signed: bool
) -> onnx.NodeProto:
    """Return a RequantShift as Deeploy's exporter writes it."""
    attributes = {"div": div, "n_levels_out": levels, "signed": signed}
    tensors = {
        key: helper.make_tensor(key, TensorProto.FLOAT, [1], [float(value)])
        for key, value in attributes.items()
    }
    return helper.make_node("RequantShift", inputs, [output], name=name, **tensors)


def model_of_floats(nodes: list[onnx.NodeProto], constants: dict[str, Array]) -> onnx.ModelProto:
    """Return a model from x ``(1, 4, 9, 7)`` to y; all of its tensors are floats."""
    graph = helper.make_graph(
        nodes,
        "integers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 9, 7])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(a.astype(np.float32), name) for name, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=8)


RANDOM = np.random.default_rng(1)
CONSTANTS: dict[str, Array] = {
    "w": RANDOM.integers(-20, 21, (6, 4, 1, 1)),
    "b": RANDOM.integers(-900, 900, 6),
    "mul": RANDOM.integers(200, 300, (6, 1, 1)),
    "add": RANDOM.integers(-9000, 9000, (6, 1, 1)),
    "one": np.asarray(17000),
    "none": np.asarray(0),
    "u": RANDOM.integers(-20, 21, (5, 378)),
    "c": RANDOM.integers(-900, 900, 5),
}


def small_model() -> onnx.ModelProto:
    """Return a convolution, a sum of signed and unsigned bytes, and a dense layer."""
    return model_of_floats(
        [
            helper.make_node("Conv", ["x", "w", "b"], ["s"], name="conv"),
            shift("first", ["s", "mul", "add"], "p", div=65536, levels=256, signed=False),
            shift("second", ["s", "mul", "add"], "q", div=131072, levels=256, signed=True),
            helper.make_node("Add", ["p", "q"], ["t"], name="sum"),
            shift("third", ["t", "one", "none"], "r", div=32768, levels=256, signed=True),
            helper.make_node("Flatten", ["r"], ["f"], name="flat"),
            helper.make_node("Gemm", ["f", "u", "c"], ["g"], name="dense", transB=1),
            shift("last", ["g", "one", "none"], "y", div=1 << 22, levels=16, signed=True),
        ],
        CONSTANTS,
    )


def shifted(x: Array, mul: Array, add: Array, div: int, low: int, high: int) -> Array:
    return np.clip(np.floor((x * mul + add) / div + 0.5), low, high).astype(np.int64)


def expected_of(x: Array) -> Array:
    """Compute the small model with NumPy's 64-bit integers."""
    c = CONSTANTS
    sums = np.einsum("mc,nchw->nmhw", c["w"][:, :, 0, 0], x.astype(np.int64))
    sums = sums + c["b"].reshape(-1, 1, 1)
    p = shifted(sums, c["mul"], c["add"], 65536, 0, 255)
    q = shifted(sums, c["mul"], c["add"], 131072, -128, 127)
    r = shifted(p + q, c["one"], c["none"], 32768, -128, 127)
    dense = r.reshape(1, -1) @ c["u"].T + c["c"]
    return shifted(dense, c["one"], c["none"], 1 << 22, -8, 7)


def test_a_planned_network_of_integers_gives_numpys_integers(tmp_path: Path) -> None:
    x = np.random.default_rng(2).integers(0, 256, (1, 4, 9, 7)).astype(np.uint8)
    found = planned_outputs(saved(tmp_path, small_model()), {"x": x})["y"]
    assert found.dtype == np.int8
    assert len(np.unique(found)) > 2
    np.testing.assert_array_equal(found, expected_of(x))


def test_every_tensor_in_memory_has_the_least_type(tmp_path: Path) -> None:
    network = load_network(saved(tmp_path, small_model()))
    written = {group.output: network.tensors[group.output].dtype.name for group in network.groups}
    assert set(written.values()) == {"int8"}
    assert network.tensors["x"].dtype.name == "uint8"
    weights = [t for t in network.tensors.values() if t.data is not None and len(t.shape) > 1]
    assert {t.dtype.name for t in weights if t.shape[-1] != 1 or len(t.shape) == 4} == {"int8"}


def test_what_has_no_meaning_on_integers_is_listed(tmp_path: Path) -> None:
    constants = {**CONSTANTS, "w": np.full((6, 4, 1, 1), 0.5)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], name="half"),
        shift("first", ["s", "mul", "add"], "p", div=65536, levels=256, signed=False),
        helper.make_node("Softmax", ["p"], ["t"], name="soft"),
        shift("last", ["t", "one", "none"], "y", div=0, levels=256, signed=True),
    ]
    with pytest.raises(UnsupportedOperatorError) as raised:
        load_network(saved(tmp_path, model_of_floats(nodes, constants)))
    reported = {(name, kind): reason for name, kind, reason in raised.value.nodes}
    assert "constant w does not hold integers" in reported["half", "Conv"]
    assert "Softmax has no exact meaning" in reported["soft", "Softmax"]
    assert "div, n_levels_out and signed" in reported["last", "RequantShift"]
    assert len(reported) == 3
