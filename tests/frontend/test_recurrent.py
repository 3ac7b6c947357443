"""LSTM and GRU, step by step, give what onnxruntime gives."""

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from spmilp.errors import UnsupportedOperatorError
from tests.frontend.running import Array, given, loaded, network_outputs, onnxruntime_outputs

STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 4, 5
GATES = {"LSTM": 4, "GRU": 3}


def recurrent(
    kind: str,
    direction: str = "forward",
    optional: tuple[str, ...] = ("B", "initial_h", "initial_c"),
    layout: int = 0,
    **attributes: object,
) -> onnx.ModelProto:
    """Return a model of one recurrent node with random weights."""
    directions = 2 if direction == "bidirectional" else 1
    width = GATES[kind] * HIDDEN
    state = (BATCH, directions, HIDDEN) if layout else (directions, BATCH, HIDDEN)
    shapes = {
        "W": (directions, width, INPUTS),
        "R": (directions, width, HIDDEN),
        "B": (directions, 2 * width),
        "sequence_lens": (BATCH,),
        "initial_h": state,
        "initial_c": state,
    }
    names = ["W", "R", "B", "sequence_lens", "initial_h"]
    names += ["initial_c"] if kind == "LSTM" else []
    chosen = ["X", *(name if name in ("W", "R", *optional) else "" for name in names)]
    constants = [
        numpy_helper.from_array(values, name)
        for name, values in given({name: shapes[name] for name in names}).items()
        if name in chosen and name != "sequence_lens"
    ]
    if "sequence_lens" in chosen:
        constants.append(numpy_helper.from_array(np.full(BATCH, STEPS, np.int32), "sequence_lens"))
    outputs = ["Y", "Y_h", "Y_c"][: 3 if kind == "LSTM" else 2]
    if layout:
        attributes["layout"] = 1
    node = helper.make_node(
        kind, chosen, outputs, hidden_size=HIDDEN, direction=direction, **attributes
    )
    x = (BATCH, STEPS, INPUTS) if layout else (STEPS, BATCH, INPUTS)
    graph = helper.make_graph(
        [node],
        kind,
        [helper.make_tensor_value_info("X", 1, x)],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def assert_equal_numbers(
    folder: Path, model: onnx.ModelProto, expected: dict[str, Array], x: dict[str, Array]
) -> None:
    found = network_outputs(loaded(folder, model), x)
    assert list(found) == list(expected)
    for name, values in expected.items():
        same = found[name].reshape(values.shape)
        np.testing.assert_allclose(same, values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("optional", [(), ("B", "initial_h", "initial_c")])
@pytest.mark.parametrize(
    ("kind", "attributes"),
    [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1})],
    ids=["LSTM", "GRU", "GRU-linear"],
)
def test_every_form_equals_onnxruntime(
    tmp_path: Path,
    kind: str,
    attributes: dict[str, int],
    optional: tuple[str, ...],
    direction: str,
) -> None:
    model = recurrent(kind, direction, optional, **attributes)
    x = given({"X": (STEPS, BATCH, INPUTS)}, seed=7)
    assert_equal_numbers(tmp_path, model, onnxruntime_outputs(model, x), x)


@pytest.mark.parametrize(("kind", "c"), [*product(["LSTM", "GRU"], [(), ("initial_c",)])])
def test_batch_major_layout_equals_the_reference(
    tmp_path: Path, kind: str, c: tuple[str, ...]
) -> None:
    model = recurrent(kind, optional=("B", "initial_h", *c), layout=1)
    time_major = recurrent(kind, optional=("B", "initial_h", *c))
    for tensor in time_major.graph.initializer:
        if tensor.name.startswith("initial"):
            batch_major = next(t for t in model.graph.initializer if t.name == tensor.name)
            values = numpy_helper.to_array(batch_major).swapaxes(0, 1)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))
    x = given({"X": (BATCH, STEPS, INPUTS)}, seed=7)
    swapped = {"X": np.ascontiguousarray(x["X"].swapaxes(0, 1))}
    reference = onnxruntime_outputs(time_major, swapped)
    expected = {"Y": reference["Y"].transpose(2, 0, 1, 3)}
    expected |= {n: v.swapaxes(0, 1) for n, v in reference.items() if n != "Y"}

    assert_equal_numbers(tmp_path, model, expected, x)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"clip": 1.5}, "attribute clip"),
        ({"input_forget": 1}, "attribute input_forget"),
        ({"activations": ["Affine", "Tanh", "Tanh"]}, "activations Affine"),
    ],
)
def test_unsupported_forms_are_reported(
    tmp_path: Path, attributes: dict[str, object], reason: str
) -> None:
    with pytest.raises(UnsupportedOperatorError, match=reason):
        loaded(tmp_path, recurrent("LSTM", **attributes))


def test_peepholes_and_shorter_sequences_are_reported(tmp_path: Path) -> None:
    model = recurrent("LSTM")
    model.graph.node[0].input[:] = ["X", "W", "R", "B", "", "", "", "P"]
    weights = np.zeros((1, 3 * HIDDEN), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "P"))
    with pytest.raises(UnsupportedOperatorError, match="peephole"):
        loaded(tmp_path, model)
    model = recurrent("GRU", optional=("sequence_lens",))
    tensor = next(t for t in model.graph.initializer if t.name == "sequence_lens")
    tensor.CopyFrom(numpy_helper.from_array(np.array([3, 2], np.int32), "sequence_lens"))
    with pytest.raises(UnsupportedOperatorError, match="sequence_lens must be constant, 3"):
        loaded(tmp_path, model)
