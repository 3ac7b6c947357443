"""If, Loop and Scan whose conditions and counts are known, by themselves or by given values."""

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
STEP = "(int64 i, bool t, float[4] s) => (bool u, float[4] r, float[4] o)"
BODY = "f = Cast<to=1>(i) p = Mul(s, f) r = Add(p, x) o = Neg(r)"
LOOP = f"""g (float[4] x, int64 n) => (float[4] y, float[k,4] z) <bool c = {{1}}> {{
    y, z = Loop(n, c, x) <body = b {STEP} {{ u = Identity(t) {BODY} }}> }}"""
WHILE = f"""g (float[4] x, int64 m) => (float[4] y, float[k,4] z) <bool c = {{1}}> {{
    y, z = Loop(, c, x) <body = b {STEP} {{ u = Less(i, m) {BODY} }}> }}"""
NESTED = f"""g (float[4] x, int64 n) => (float[4] y, float[k,2,4] z) <bool c = {{1}}> {{
    two = Constant<value_int=2>()
    y, z = Loop(n, c, x) <body = b {STEP.replace("float[4] o", "float[2,4] o")} {{
        u = Identity(t) last = Equal(i, two)
        r, o = Loop(two, t, s) <body = d (int64 j, bool v, float[4] q)
                                      => (bool v, float[4] w, float[4] w) {{
            p = If(last) <then_branch = t () => (float[4] a) {{ a = Neg(q) }},
                          else_branch = e () => (float[4] b) {{ b = Relu(q) }}>
            w = Add(p, x) }}>
    }}>
}}"""
SCAN = """g (float[4,3] x, float[4] h) => (float[4] y, float[4,3] z) {
    y, z = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
        scan_output_axes=[-1], scan_output_directions=[1],
        body = b (float[4] s, float[4] v) => (float[4] r, float[4] o) { r = Sub(v, s) o = Exp(r) }
    >(h, x) }"""


@pytest.mark.parametrize(
    ("graph", "values", "expected"),
    [
        (RATE, {"rate": "16000"}, {"Neg": 1, "Exp": 1}),
        (RATE, {"rate": "8000"}, {"Mul": 1}),
        (LOOP, {"n": "3"}, {"Add": 3, "Neg": 3}),
        (WHILE, {"m": "3"}, {"Add": 4, "Neg": 4}),
        (NESTED, {"n": "3"}, {"Relu": 4, "Neg": 2, "Add": 6}),
        (SCAN, {}, {"Sub": 3, "Exp": 3}),
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
        (LOOP, {}, r"y \(Loop\): its number of steps depends on input n; fix it: --input n="),
        (WHILE, {}, "its number of steps depends on input m; fix it"),
        (
            LOOP,
            {"n": "5000"},
            "its 5,000 steps the model has 25,001 nodes, expected at most 20,000",
        ),
        (LOOP, {"m": "5"}, "no input 'm'; its inputs are x, n"),
        (LOOP, {"x": "5"}, r"x of shape \[4\] is given 1 values"),
        (LOOP, {"n": "2.5"}, "n is of type int64, which 2.5 is not"),
        (LOOP, {"n": "99999999999999999999"}, "n is of type int64, which 9+ is not"),
        (LOOP.replace(", x) <", ", x, x) <"), {"n": "2"}, "4 inputs, but its body has 3"),
        (LOOP.replace("Mul(s, f)", "Mul(s, g)"), {"n": "2"}, "node p reads 'g', which nothing"),
    ],
)
def test_what_is_not_known_or_wrong_is_named_with_its_cause(
    tmp_path: Path, graph: str, values: dict[str, str], says: str
) -> None:
    with pytest.raises(SpmilpError, match=says):
        load_network(saved(tmp_path, model_of(graph)), values=values)


def test_a_problem_keeps_the_values_that_its_inputs_were_given(tmp_path: Path) -> None:
    graph = LOOP.replace("int64 n)", "int64 n, bool c)").replace(" <bool c = {1}>", "")
    path = saved(tmp_path, model_of(graph))
    result = spmilp.solve(path, "gap9", solver="list", input={"n": 2, "c": True})
    assert [what for what, _ in result.problem.sources[2:]] == ["input c=True", "input n=2"]
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
