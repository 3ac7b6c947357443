"""Operators are fused where TVM's rules allow it, and never where it costs work or a deadlock."""

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest

from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.geometry import Fusion
from spmilp.frontend.operators.registry import family_of, geometries
from spmilp.frontend.regions import group_regions
from spmilp.machine.machine import CoreKind
from tests.frontend.running import (
    given,
    kinds_of,
    loaded,
    model_of,
    network_outputs,
    onnxruntime_outputs,
)

CONV = "agraph (float[1,3,6,6] x, float[3,3,3,3] w) => (float[1,3,6,6] y)"


def conv(source: str, name: str) -> str:
    return f"{name} = Conv<pads=[1,1,1,1]>({source}, w)"


GROUPS = {
    "a residual is added by the convolution before it": (
        f"{CONV} {{ {conv('x', 'a')} b = Relu(a) {conv('b', 'c')} s = Add(c, b) y = Relu(s) }}",
        [("Conv", "Relu"), ("Conv", "Add", "Relu")],
    ),
    # Were r and y fused into the first group, the second would wait for itself.
    "a diamond with a convolution inside is not closed": (
        f"{CONV} {{ {conv('x', 'a')} r = Relu(a) {conv('r', 'c')} t = Tanh(r) y = Mul(t, c) }}",
        [("Conv", "Relu"), ("Tanh", "Conv", "Mul")],
    ),
    "a gate through both branches": (
        f"{CONV} {{ {conv('x', 'c')} s = Sigmoid(c) y = Mul(c, s) }}",
        [("Conv", "Sigmoid", "Mul")],
    ),
    "of two convolutions the last adds": (
        f"{CONV} {{ {conv('x', 'a')} s = Relu(x) {conv('s', 'c')} y = Add(a, c) }}",
        [("Conv",), ("Relu",), ("Conv", "Add")],
    ),
    "a result that is an output ends its group": (
        f"{CONV} {{ {conv('x', 'z')} y = Relu(z) }}".replace("y)", "y, float[1,3,6,6] z)", 1),
        [("Conv",), ("Relu",)],
    ),
    "a broadcast result is not computed for each reader": (
        "agraph (float[4,8] x) => (float[4,8] y) <int64[1] axis = {1}> "
        "{ m = ReduceMean(x, axis) y = Sub(x, m) }",
        [("ReduceMean",), ("Sub",)],
    ),
    "a reduction takes the element-wise operators around it": (
        "agraph (float[4,8] x) => (float[4,1] y) <int64[1] axis = {1}> "
        "{ s = Mul(x, x) m = ReduceMean(s, axis) y = Sqrt(m) }",
        [("Mul", "ReduceMean", "Sqrt")],
    ),
    "a reduction does not compute its scale for every row": (
        "agraph (float[4,8] x, float[8] g) => (float[4,8] y) "
        "{ s = Exp(g) y = LayerNormalization(x, s) }",
        [("Exp",), ("LayerNormalization",)],
    ),
    "rows that are looked up are not part of a reduction": (
        "agraph (float[99,8] table, int64[4] rows, float[8] g) => (float[4,8] y) "
        "{ r = Gather(table, rows) s = Exp(r) y = LayerNormalization(s, g) }",
        [("Gather", "Exp"), ("LayerNormalization",)],
    ),
    "constant rows are": (
        "agraph (float[99,8] table, float[8] g) => (float[4,8] y) <int64[4] rows = {7, 5, 5, 1}> "
        "{ r = Gather(table, rows) s = Exp(r) y = LayerNormalization(s, g) }",
        [("Gather", "Exp", "LayerNormalization")],
    ),
    "injective operators form chains": (
        "agraph (float[4,8] x) => (float[9,4] y) <int64[4] pads = {0, 1, 0, 0}> "
        "{ n = Neg(x) p = Pad(n, pads) t = Transpose(p) y = Relu(t) }",
        [("Neg", "Pad", "Transpose", "Relu")],
    ),
    "enlarging does not repeat what comes before": (
        "agraph (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] scales = {1, 1, 2, 2}> "
        '{ e = Exp(x) y = Resize<mode="nearest">(e, , scales) }',
        [("Exp",), ("Resize",)],
    ),
    "both operands of a sum are computed where it is": (
        "agraph (float[4,8] a, float[4,8] b) => (float[4,8] y) "
        "{ s = Sigmoid(a) t = Tanh(b) y = Mul(s, t) }",
        [("Sigmoid", "Tanh", "Mul")],
    ),
    "through views that only drop an axis of one": (
        "agraph (float[1,4,8] x, float[8,8] w) => (float[4,8] y) <int64[1] zero = {0}> "
        "{ m = MatMul(x, w) s = Squeeze(m, zero) y = Relu(s) }",
        [("MatMul", "Squeeze", "Relu")],
    ),
    "not through other reshapes": (
        "agraph (float[4,8] x, float[8,8] w) => (float[2,16] y) <int64[2] shape = {2, 16}> "
        "{ m = MatMul(x, w) s = Reshape(m, shape) y = Relu(s) }",
        [("MatMul",), ("Reshape", "Relu")],
    ),
}


@pytest.mark.parametrize("case", GROUPS, ids=list(GROUPS))
def test_what_is_fused(tmp_path: Path, case: str) -> None:
    graph, groups = GROUPS[case]
    assert kinds_of(loaded(tmp_path, graph)) == groups


def test_views_are_read_through_by_every_reader(tmp_path: Path) -> None:
    graph = """
    agraph (float[2,8] x) => (float[2,4] y)
    <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] one = {1}>
    {
        r = Relu(x)
        left = Slice(r, zero, four, one)
        right = Slice(r, four, eight, one)
        swapped = Concat<axis=1>(right, left)
        e = Exp(swapped)
        part = Slice(e, zero, four, one)
        y = Add(part, left)
    }
    """
    network = loaded(tmp_path, graph)
    views = ("Slice", "Slice")
    assert kinds_of(network) == [("Relu",), (*views, "Concat", "Exp"), (*views, "Add")]
    assert [group.inputs for group in network.groups] == [("x",), ("r",), ("r", "e")]


def core(*operators: str) -> CoreKind:
    return CoreKind(index=0, name="core", operators=frozenset(operators))


def test_only_what_one_core_can_run_is_fused_and_views_need_none(tmp_path: Path) -> None:
    graph = f"{CONV} {{ {conv('x', 'c')} r = Relu(c) y = Tanh(r) }}"
    matrix, vector = core("Conv", "Relu"), core("Relu", "Tanh")
    apart = loaded(tmp_path, graph, kinds=(matrix, vector))
    assert kinds_of(apart) == [("Conv", "Relu"), ("Tanh",)]
    together = loaded(tmp_path, graph, kinds=(matrix, CoreKind(index=0, name="able")))
    assert kinds_of(together) == [("Conv", "Relu", "Tanh")]
    flat = """
    agraph (float[2,3,4] x, float[12,5] w) => (float[2,5] y) { f = Flatten(x) y = MatMul(f, w) }
    """
    assert kinds_of(loaded(tmp_path, flat, kinds=(core("MatMul"),))) == [("Flatten", "MatMul")]


@pytest.mark.parametrize(
    ("body", "expected", "shape"),
    [
        ("r = Relu(x) y = Flatten(r)", [("Relu",)], (2, 3, 4)),
        ("r = Relu(x) u = Unsqueeze(r, one) y = Flatten(u)", [("Relu",)], (2, 3, 4)),
        ("r = Relu(x) y = Slice(r, zero, one)", [("Relu",), ("Slice", "Identity")], (1, 3, 4)),
        ("y = Flatten(x)", [("Flatten", "Identity")], (2, 12)),
        ("y = Identity(x)", [("Identity",)], (2, 3, 4)),
        ("y = Constant<value_floats=[1.0, 2.0]>()", [("Identity",)], (2,)),
        ("y = Concat<axis=0>(x, x)", [("Concat", "Identity")], (4, 3, 4)),
    ],
)
def test_every_output_is_written_by_a_group(
    tmp_path: Path, body: str, expected: list[tuple[str, ...]], shape: tuple[int, ...]
) -> None:
    model = model_of(
        "agraph (float[2,3,4] x) => (float[a] y) <int64[1] zero = {0}, int64[1] one = {1}> "
        f"{{ {body} }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    network = loaded(tmp_path, model)
    assert kinds_of(network) == expected
    assert (network.outputs, network.groups[-1].output) == (("y",), "y")
    assert network.tensors["y"].shape == shape
    inputs = given({"x": (2, 3, 4)})
    values = onnxruntime_outputs(model, inputs)["y"]
    found = network_outputs(network, inputs)["y"]
    np.testing.assert_array_equal(found.reshape(values.shape), values)


CALLS = (
    *("{t} = Add({a}, {b})", "{t} = Mul({a}, {b})", "{t} = Relu({a})", "{t} = Sigmoid({a})"),
    *("{t} = Conv({a}, w)", "{t} = Softmax<axis=3>({a})", "{t} = Reshape({a}, shape)"),
    "{t} = Transpose<perm=[0,1,3,2]>({a})",
    "{t}h = Concat<axis=2>({a}, {b}) {t} = Slice({t}h, two, six, axis)",
    "{t}p = Slice({a}, one, three, axis) {t}q = Slice({b}, one, three, axis) "
    "{t} = Concat<axis=2>({t}p, {t}q)",
)


def random_model(random: Random) -> onnx.ModelProto:
    """Return a random graph of operators on tensors of 4 x 4 elements, several of them outputs."""
    names, body = ["x"], []
    for at in range(random.randint(2, 14)):
        a, b = random.choices(names[-4:], k=2)
        body.append(random.choice(CALLS).format(t=f"t{at}", a=a, b=b))
        names.append(f"t{at}")
    read = " ".join(body)
    loose = [name for name in names[1:] if read.count(f"({name},") + read.count(f"{name})") == 0]
    outputs = sorted({*loose, *random.choices(names[1:], k=2)})
    declared = ", ".join(f"float[1,1,4,4] {name}" for name in outputs)
    numbers = {"one": 1, "two": 2, "three": 3, "six": 6, "axis": 2}
    constants = ", ".join(f"int64[1] {name} = {{{n}}}" for name, n in numbers.items())
    shape = "int64[4] shape = {1, 1, 4, 4}, float[1,1,1,1] w = {0.5}"
    return model_of(
        f"agraph (float[1,1,4,4] x) => ({declared}) <{constants}, {shape}> {{ {read} }}"
    )


MANY = [pytest.param(seed, marks=pytest.mark.full) for seed in range(8, 60)]


@pytest.mark.parametrize("seed", [*range(8), *MANY])
def test_groups_of_random_networks_are_sound(tmp_path: Path, seed: int) -> None:
    model = random_model(Random(seed))
    network = loaded(tmp_path, model)
    known = set(network.inputs) | {n for n, t in network.tensors.items() if t.data is not None}
    members: list[str] = []
    for group in network.groups:
        own = [o for o in group.operators if family_of(o.kind).fusion is not Fusion.VIEW]
        members.extend(operator.output for operator in own)
        # In this order every group finds its inputs, so they cannot wait for each other.
        assert set(group.inputs) <= known
        assert group.output == own[-1].output
        assert sum(map(is_anchor, own)) <= 1
        known.add(group.output)
        # No element of a result between two operators is computed for two tiles.
        computed = elements_computed(network, group)
        assert all(computed[operator.output] <= 16 for operator in own)
    assert len(members) == len(set(members))
    inputs = given({"x": (1, 1, 4, 4)})
    found = network_outputs(network, inputs)
    for name, expected in onnxruntime_outputs(model, inputs).items():
        values = found[next((own for own, n in network.renamed.items() if n == name), name)]
        np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


def is_anchor(operator: Operator) -> bool:
    return family_of(operator.kind).fusion in (Fusion.COMPLEX, Fusion.REDUCTION)


def elements_computed(network: Network, group: Group) -> Counter[str]:
    """Add up the elements of every tensor that the tiles of a group's rows need."""
    total: Counter[str] = Counter()
    last, shape = group.operators[-1], network.tensors[group.output].shape
    tiled = len(shape) == 4 and 2 not in geometries(network)[last].untiled
    for row in range(shape[2]) if tiled else [None]:
        whole = [(0, length) for length in shape]
        if row is not None:
            whole[2] = (row, row + 1)
        for name, region in group_regions(network, group, tuple(whole)).items():
            total[name] += volume(region)
    return total
