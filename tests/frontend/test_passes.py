"""Passes that can be switched: what each changes; numbers stay, and problems know their passes."""

from pathlib import Path

import numpy as np
import pytest

import spmilp
from spmilp.errors import ArgumentError
from spmilp.frontend.load import load_network, load_network_of
from spmilp.frontend.passes import DEFAULT_PASSES, SWITCHES, Fuse, Passes, passes_from, passes_of
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from tests.frontend.running import (
    given,
    kinds_of,
    model_of,
    network_outputs,
    onnxruntime_outputs,
    saved,
)

MODELS = Path(__file__).parents[2] / "models"

EVERYTHING = """
agraph (float[1,4,6,6] x) => (float[1,4,6,6] y, float[1,6,6,1] z)
<float[4,4,1,1] w = {0.5, -1.0, 2.0, 0.25, 1.0, 1.5, -0.5, 0.75,
                     0.1, 0.2, 0.3, 0.4, -0.4, -0.3, -0.2, -0.1},
 float[4] g = {1.0, 2.0, 0.5, 1.5}, float[4] b = {0.1, 0.2, 0.3, 0.4},
 float[4] m = {0.0, 0.5, 1.0, 0.25}, float[4] v = {1.0, 2.0, 0.5, 1.5},
 float zero = {0.0}, float half = {0.5}, int64[1] last = {3}>
{
    c = Conv(x, w)
    n = BatchNormalization(c, g, b, m, v)
    e1 = Exp(n)
    e2 = Exp(n)
    s = Add(e1, e2)
    t = Add(s, zero)
    to = Transpose<perm=[0,2,3,1]>(t)
    r = Relu(to)
    h = Mul(half, r)
    back = Transpose<perm=[0,3,1,2]>(h)
    y = Neg(back)
    flat = Transpose<perm=[0,2,3,1]>(n)
    o = Tanh(flat)
    z = ReduceSum<keepdims=1>(o, last)
}
"""


def operators(folder: Path, text: str) -> list[str]:
    network = load_network(saved(folder, model_of(EVERYTHING)), passes=passes_from(text))
    return sorted(operator.kind for group in network.groups for operator in group.operators)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("no-batch_norm", ["BatchNormalization"]),
        ("no-simplify", ["Add"]),
        ("no-cse", ["Exp"]),
        ("no-layout", ["Transpose", "Transpose"]),
        ("no-sharing", []),
        ("fuse=none", []),
    ],
)
def test_each_pass_can_be_switched_off(text: str, more: list[str], tmp_path: Path) -> None:
    assert operators(tmp_path, text) == sorted([*operators(tmp_path, ""), *more])


@pytest.mark.parametrize("text", ["", "fuse=tvm", "fuse=none", *(f"no-{one}" for one in SWITCHES)])
def test_no_pass_changes_a_number(text: str, tmp_path: Path) -> None:
    model = model_of(EVERYTHING)
    inputs = given({"x": (1, 4, 6, 6)})
    network = load_network(saved(tmp_path, model), passes=passes_from(text))
    found, expected = network_outputs(network, inputs), onnxruntime_outputs(model, inputs)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5)


def test_a_transposition_that_others_read_stays(tmp_path: Path) -> None:
    def transpositions(body: str) -> int:
        graph = f"agraph (float[2,3] x) => (float[2,3] y, float[3,2] z) {{ {body} y = Neg(b) }}"
        network = load_network(saved(tmp_path, model_of(graph)))
        return sum(kind == "Transpose" for group in kinds_of(network) for kind in group)

    there, back = "t = Transpose<perm=[1,0]>(x)", "b = Transpose<perm=[1,0]>(r)"
    assert transpositions(f"{there} r = Relu(t) {back} z = Neg(t)") == 1
    assert transpositions(f"{there} r = Relu(t) {back} z = Neg(r)") == 2
    assert transpositions(f"{there} z = Relu(t) r = Identity(z) {back}") == 2


CHAIN = """
agraph (float[1,4,6,6] x) => (float[1,6,4] y)
{
    a = Exp(x)
    t = Transpose<perm=[0,2,3,1]>(a)
    g = Relu(t)
    m = MaxPool<kernel_shape=[2,2]>(g)
    r = Neg(m)
    y = ReduceSum<keepdims=0>(r, last)
}
"""


def test_the_classes_of_tvm_and_no_fusion(tmp_path: Path) -> None:
    text = CHAIN.replace("=> (float[1,6,4] y)", "=> (float[1,5,3] y) <int64[1] last = {2}>")
    path = saved(tmp_path, model_of(text))

    groups = {how: kinds_of(load_network(path, passes=Passes(fuse=how))) for how in Fuse}
    assert groups[Fuse.NONE] == [(kind,) for group in groups[Fuse.TVM] for kind in group]
    assert groups[Fuse.TVM] == [("Exp", "Transpose", "Relu"), ("MaxPool", "Neg"), ("ReduceSum",)]


def test_without_sharing_no_result_takes_over_bytes() -> None:
    model = MODELS / "resnet8_int8.onnx"
    found = {}
    for text in ("", "no-sharing"):
        network, target = load(model, "mesh4x4", passes=text)
        problem = choose_tiles(NetworkOnMachine.of(network, target)).problem
        found[text] = sum(len(task.in_place) for task in problem.tasks)
    assert found[""] > 0
    assert found["no-sharing"] == 0


@pytest.mark.parametrize("text", ["fuse=tvm", "fuse=none,no-sharing"])
def test_a_plan_is_replayed_with_the_passes_of_its_problem(text: str) -> None:
    model = MODELS / "ds_cnn_int8.onnx"
    result = spmilp.solve(model, "gap8", solver="list", passes=text)
    assert result.violations == ()
    assert passes_of(result.problem.sources) == passes_from(text)
    _, network = load_network_of(result.problem, model, {})
    assert [group.name for group in network.groups] == [
        group.name for group in result.origin.network.groups
    ]
    assert result.replay()["within"].all()


@pytest.mark.parametrize("text", ["", "fuse=tvm", "no-cse,no-layout", "fuse=none,no-sharing"])
def test_passes_are_read_as_they_are_written(text: str) -> None:
    assert str(passes_from(text)) == text
    assert passes_of(passes_from(text).sources) == passes_from(text)


def test_the_default_leaves_no_trace_and_unknown_passes_are_refused() -> None:
    assert DEFAULT_PASSES.sources == ()
    with pytest.raises(ArgumentError, match="no-cce'; did you mean no-cse"):
        passes_from("no-cce")
    with pytest.raises(ArgumentError, match="passes out"):
        spmilp.solve(str(MODELS / "x.json"), passes="no-cse")
