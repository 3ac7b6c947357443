"""If whose condition is known, by itself or by given values; Loop and Scan are refused."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

import spmilp
from spmilp.errors import SpmilpError
from spmilp.frontend.load import load_network
from tests.frontend.running import (
    given,
    kinds_of,
    model_of,
    network_outputs,
    onnxruntime_outputs,
    saved,
)

RATE = """g (float[4] x, int64 rate) => (float[4] y) <int64 known = {16000}> {
    c = Equal(rate, known)
    y = If(c) <then_branch = t () => (float[4] a) { h = Neg(x) a = Exp(h) },
               else_branch = e () => (float[4] b) { k = Constant<value_float=2.0>() b = Mul(x, k) }>
}"""
LOOP = """g (float[4] x, int64 n) => (float[4] y) <bool c = {1}> {
    y = Loop(n, c, x) <body = b (int64 i, bool t, float[4] s) => (bool u, float[4] r) {
        u = Identity(t) r = Add(s, x) }> }"""
SCAN = """g (float[4,3] x, float[4] h) => (float[4] y) {
    y = Scan<num_scan_inputs=1, scan_input_axes=[1],
        body = b (float[4] s, float[4] v) => (float[4] r) { r = Sub(v, s) }>(h, x) }"""


@pytest.mark.parametrize(
    ("graph", "values", "expected"),
    [
        (RATE, {"rate": "16000"}, {"Neg": 1, "Exp": 1}),
        (RATE, {"rate": "8000"}, {"Mul": 1}),
    ],
)
def test_control_flow_that_is_known_computes_what_onnxruntime_does(
    tmp_path: Path, graph: str, values: dict[str, str], expected: dict[str, int]
) -> None:
    path = saved(tmp_path, model_of(graph))
    network = load_network(path, values=values)
    kinds = Counter(kind for group in kinds_of(network) for kind in group)
    assert {kind: kinds[kind] for kind in expected} == expected
    inputs = given({name: network.tensors[name].shape for name in network.inputs})
    found = network_outputs(network, inputs)
    truth = onnxruntime_outputs(path, {**inputs, **network.given})
    for name, values_there in truth.items():
        np.testing.assert_allclose(found[name], values_there, rtol=1e-6)


@pytest.mark.parametrize(
    ("graph", "values", "says"),
    [
        (RATE, {}, r"y \(If\): its condition depends on input rate; fix it: --input rate=\.\.\."),
        (LOOP, {"n": "3"}, r"y \(Loop\): loops are not unrolled; export the model with its steps"),
        (SCAN, {}, r"y \(Scan\): loops are not unrolled"),
        (LOOP, {"m": "5"}, "no input 'm'; its inputs are x, n"),
        (LOOP, {"x": "5"}, r"x of shape \[4\] is given 1 values"),
        (LOOP, {"n": "2.5"}, "n is of type int64, which 2.5 is not"),
        (LOOP, {"n": "99999999999999999999"}, "n is of type int64, which 9+ is not"),
        (LOOP.replace("Add(s, x)", "Add(s, g)"), {"n": "2"}, "node r reads 'g', which nothing"),
    ],
)
def test_what_is_not_known_or_wrong_is_named_with_its_cause(
    tmp_path: Path, graph: str, values: dict[str, str], says: str
) -> None:
    with pytest.raises(SpmilpError, match=says):
        load_network(saved(tmp_path, model_of(graph)), values=values)


def test_a_problem_keeps_the_values_that_its_inputs_were_given(tmp_path: Path) -> None:
    graph = RATE.replace("int64 rate)", "int64 rate, bool flag)")
    path = saved(tmp_path, model_of(graph))
    result = spmilp.solve(path, "gap9", solver="list", input={"rate": 16000, "flag": True})
    assert [what for what, _ in result.problem.sources[2:]] == [
        "input flag=True",
        "input rate=16000",
    ]
    result.save(tmp_path / "out")
    assert spmilp.read(tmp_path / "out").replay(path)["within"].all()


def test_weights_of_a_branch_may_be_missing(tmp_path: Path) -> None:
    graph = RATE.replace("{ h = Neg(x)", "<float[4] w = {1, 2, 3, 4}> { h = Sub(x, w)")
    model = model_of(graph)
    (weight,) = model.graph.node[1].attribute[0].g.initializer
    weight.raw_data = b""
    onnx.external_data_helper.set_external_data(weight, "there.bin")
    for field in ("raw_data", "float_data"):
        weight.ClearField(field)
    with pytest.warns(UserWarning, match="no values for w"):
        spmilp.solve(saved(tmp_path, model), "mesh4x4", solver="list", input={"rate": 16000})
