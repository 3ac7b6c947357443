"""A state that is carried through inferences is what onnxruntime has of them step by step."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import spmilp
from spmilp.checker.values.compare import reference_outputs
from spmilp.checker.values.inputs import random_inputs
from spmilp.checker.values.replay import replay_stream
from spmilp.errors import ArgumentError
from spmilp.plan.running import running

HIDDEN, STATES = 16, {"h_in": "h_out", "c_in": "c_out"}


def lstm_step(file: Path) -> Path:
    """Write a step of an LSTM, whose states are inputs and outputs, and a classifier."""
    random = np.random.default_rng(0)
    shapes = {"W": (1, 64, 8), "R": (1, 64, 16), "B": (1, 128), "V": (1, 16, 4)}
    constants = [
        numpy_helper.from_array(random.normal(0, 0.3, shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node(
            "LSTM", ["x", "W", "R", "B", "", *STATES], ["", *STATES.values()], hidden_size=HIDDEN
        ),
        helper.make_node("MatMul", ["h_out", "V"], ["out"]),
    ]
    sides = [
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 1, size))
            for name, size in side.items()
        ]
        for side in (
            {"x": 8, **dict.fromkeys(STATES, HIDDEN)},
            {"out": 4, **dict.fromkeys(STATES.values(), HIDDEN)},
        )
    ]
    graph = helper.make_graph(nodes, "step", *sides, constants)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), file)
    return file


def test_an_lstm_carries_its_state_through_20_inferences(tmp_path: Path) -> None:
    model = lstm_step(tmp_path / "step.onnx")
    result = spmilp.solve(
        model, "stream_quad", state=STATES, solver="list", time_limit=None, workers=1
    )
    plan, network = result.plan, result.origin.network
    assert plan is not None
    assert plan.stream is not None
    assert plan.stream.period < plan.claim.makespan
    # No inference loads or stores a state: what it leaves stays on the chip.
    assert plan.claim.dram_traffic == 4 * (8 + 4)
    inputs = [random_inputs(network, inference) for inference in range(20)]
    runs = running(result.problem, plan, 20)
    outputs = replay_stream(runs, network, inputs, [{} for _ in inputs])
    states = {name: inputs[0][name] for name in STATES}
    for mine, given in zip(outputs, inputs, strict=True):
        wanted = reference_outputs(model, {**given, **states})
        states = {name: wanted[output] for name, output in STATES.items()}
        assert mine.keys() == {"out"}
        np.testing.assert_allclose(mine["out"].reshape(1, 1, 4), wanted["out"], atol=1e-5)


def cache_step(file: Path) -> Path:
    """Write a step of attention over the last 8 keys, which are values as well, and a state."""
    random = np.random.default_rng(0)
    bounds = {"begins": [1], "ends": [8], "axes": [0]}
    constants = [
        numpy_helper.from_array(np.array(at, np.int64), name) for name, at in bounds.items()
    ]
    constants += [
        numpy_helper.from_array(random.normal(0, 0.3, (16, 16)).astype(np.float32), name)
        for name in ("of_keys", "of_queries")
    ]
    nodes = [
        helper.make_node("Slice", ["k_in", *bounds], ["kept"]),
        helper.make_node("MatMul", ["x", "of_keys"], ["key"]),
        helper.make_node("Concat", ["kept", "key"], ["k_out"], axis=0),
        helper.make_node("MatMul", ["x", "of_queries"], ["query"]),
        helper.make_node("Transpose", ["k_out"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["query", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "k_out"], ["out"]),
    ]
    sides = [
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in side.items()
        ]
        for side in ({"x": (1, 16), "k_in": (8, 16)}, {"out": (1, 16), "k_out": (8, 16)})
    ]
    graph = helper.make_graph(nodes, "step", *sides, constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), file
    )
    return file


def test_rounding_does_not_add_up_in_what_is_said_of_a_cache_of_keys(tmp_path: Path) -> None:
    """Keys are moved from inference to inference, so that no difference at all is allowed."""
    model = cache_step(tmp_path / "step.onnx")
    state = {"k_in": "k_out"}
    result = spmilp.solve(
        model, "stream_quad", state=state, solver="list", time_limit=None, workers=1
    )
    assert result.plan is not None
    assert result.plan.stream is not None
    assert result.replay(model)["within"].all()


def test_what_is_no_state_is_said(tmp_path: Path) -> None:
    model = lstm_step(tmp_path / "step.onnx")
    for state, what in (
        ({"h": "h_out"}, "there is no input h"),
        ({"h_in": "h"}, "there is no output h"),
        ({"x": "h_out"}, "float32 of shape"),
        ({"h_in": "h_out", "c_in": "h_out"}, "left in several inputs"),
    ):
        with pytest.raises(ArgumentError, match=what):
            spmilp.solve(model, "stream_quad", state=state)


@pytest.mark.parametrize("tiles", [pytest.param("first", marks=pytest.mark.full), "search"])
def test_states_stay_on_the_chip_where_other_cores_read_them(tmp_path: Path, tiles: str) -> None:
    model = cache_step(tmp_path / "step.onnx")
    result = spmilp.solve(
        model, "mesh4x4", state={"k_in": "k_out"}, tiles=tiles, effort=3, time_limit="5m"
    )
    problem, plan = result.problem, result.plan
    assert plan is not None
    assert plan.stream is not None
    drams = {dram.index for dram in problem.machine.drams}
    ends = {buffer for pair in problem.states().items() for buffer in pair}
    for move in plan.transfers:
        rows = [plan.residencies[one] for one in (move.source, *move.destinations)]
        if move.start >= plan.stream.begins and drams & {row.memory for row in rows}:
            assert problem.slices[move.slice].buffer not in ends
    assert result.replay(model)["within"].all()
