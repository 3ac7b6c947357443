"""Operators are fused where TVM's rules allow it, and never where it costs work or a deadlock."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from spmilp.frontend.fuse import fuse
from spmilp.frontend.graph import Group, Network, Operator, Tensor
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.operators.geometry import Fusion
from spmilp.frontend.operators.registry import family_of, geometries
from spmilp.frontend.regions import group_regions
from spmilp.frontend.unfused import UnfusedNetwork
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


def test_a_residual_is_added_by_the_convolution_before_it(tmp_path: Path) -> None:
    body = f"{conv('x', 'a')} b = Relu(a) {conv('b', 'c')} s = Add(c, b) y = Relu(s)"
    network = loaded(tmp_path, f"{CONV} {{ {body} }}")
    assert kinds_of(network) == [("Conv", "Relu"), ("Conv", "Add", "Relu")]
    assert network.groups[1].inputs == ("b", "w")


def test_a_diamond_with_a_convolution_inside_is_not_closed(tmp_path: Path) -> None:
    # Were r and y fused into the first group, the second would wait for itself.
    body = f"{conv('x', 'a')} r = Relu(a) {conv('r', 'c')} t = Tanh(r) y = Mul(t, c)"
    network = loaded(tmp_path, f"{CONV} {{ {body} }}")
    assert kinds_of(network) == [("Conv", "Relu"), ("Tanh", "Conv", "Mul")]
    assert network.groups[1].anchor == 1


GROUPS = {
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
    assert kinds_of(network) == [
        ("Relu",),
        ("Slice", "Slice", "Concat", "Exp"),
        ("Slice", "Slice", "Add"),
    ]
    assert [group.inputs for group in network.groups] == [("x",), ("r",), ("r", "e")]


def core(*operators: str) -> CoreKind:
    return CoreKind(index=0, name="core", operators=frozenset(operators))


def test_only_what_one_core_can_run_is_fused(tmp_path: Path) -> None:
    graph = f"{CONV} {{ {conv('x', 'c')} r = Relu(c) y = Tanh(r) }}"
    matrix, vector = core("Conv", "Relu"), core("Relu", "Tanh")
    assert kinds_of(loaded(tmp_path, graph, kinds=(matrix, vector))) == [
        ("Conv", "Relu"),
        ("Tanh",),
    ]
    able = CoreKind(index=0, name="able")
    assert kinds_of(loaded(tmp_path, graph, kinds=(matrix, able))) == [("Conv", "Relu", "Tanh")]


def test_views_need_no_core_that_runs_them(tmp_path: Path) -> None:
    graph = """
    agraph (float[2,3,4] x, float[12,5] w) => (float[2,5] y) { f = Flatten(x) y = MatMul(f, w) }
    """
    assert kinds_of(loaded(tmp_path, graph, kinds=(core("MatMul"),))) == [("Flatten", "MatMul")]


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
    assert network.outputs == ("y",)
    assert network.groups[-1].output == "y"
    assert network.tensors["y"].shape == shape
    inputs = given({"x": (2, 3, 4)})
    expected_values = onnxruntime_outputs(model, inputs)["y"]
    np.testing.assert_array_equal(
        network_outputs(network, inputs)["y"].reshape(expected_values.shape), expected_values
    )


def test_an_output_that_others_read_in_its_reshaped_form(tmp_path: Path) -> None:
    graph = """
    agraph (float[2,3] x, float[6,2] w) => (float[1,6] y, float[1,2] z)
    <int64[2] six = {1, 6}> { r = Relu(x) y = Reshape(r, six) z = MatMul(y, w) }
    """
    network = loaded(tmp_path, graph)
    assert kinds_of(network) == [("Relu",), ("Reshape", "MatMul")]
    assert network.tensors["y"].shape == (2, 3)
    inputs = given({"x": (2, 3), "w": (6, 2)})
    expected = onnxruntime_outputs(model_of(graph), inputs)
    np.testing.assert_allclose(network_outputs(network, inputs)["z"], expected["z"], rtol=1e-6)


# Random networks.

ELEMENTWISE = ("Add", "Mul", "Relu", "Sigmoid")
KINDS = (*ELEMENTWISE, "Conv", "Softmax", "Transpose", "Slice", "Reshape", "Concat")


@st.composite
def unfused_networks(draw: st.DrawFn) -> UnfusedNetwork:
    """Return random graphs of operators on tensors of 4 x 4 elements in four dimensions."""
    square = (1, 1, 4, 4)
    tensors = {"x": _tensor("x", square), "w": _tensor("w", (1, 1, 1, 1))}
    operators: list[Operator] = []
    for position in range(draw(st.integers(2, 14))):
        kind = draw(st.sampled_from(KINDS))
        names = [name for name, tensor in tensors.items() if tensor.shape == square]
        recent = st.sampled_from(names[-4:])
        first, second = draw(recent), draw(recent)
        operators += _node(f"t{position}", kind, first, second, tensors)
    read = {name for operator in operators for name in operator.inputs}
    loose = [o.output for o in operators if o.output not in read]
    chosen = draw(st.sets(st.sampled_from([o.output for o in operators]), max_size=2))
    views = {o.output for o in operators if family_of(o.kind).fusion is Fusion.VIEW}
    outputs = tuple(sorted({*loose, *chosen} - views))
    return UnfusedNetwork(
        operators=tuple(operators), tensors=tensors, inputs=("x",), outputs=outputs
    )


def _tensor(name: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(name=name, shape=shape, dtype=np.dtype(np.float32))


def _node(
    name: str, kind: str, first: str, second: str, tensors: dict[str, Tensor]
) -> list[Operator]:
    """Return an operator whose result has again 4 x 4 elements; some need two."""

    def add(name: str, kind: str, inputs: tuple[str, ...], **attributes: object) -> Operator:
        operator = Operator(name=name, kind=kind, inputs=inputs, output=name, attributes=attributes)
        given_ = [tensors[name] for name in inputs]
        tensors[name] = _tensor(name, family_of(kind)(operator, given_).shape)
        return operator

    match kind:
        case "Conv":
            window = {"kernel_shape": (1, 1), "strides": (1, 1), "dilations": (1, 1)}
            return [add(name, kind, (first, "w"), group=1, pads=(0, 0, 0, 0), **window)]
        case "Add" | "Mul":
            return [add(name, kind, (first, second))]
        case "Softmax":
            return [add(name, kind, (first,), axis=3)]
        case "Transpose":
            return [add(name, kind, (first,), perm=(0, 1, 3, 2))]
        case "Reshape":
            return [add(name, kind, (first,), shape=(1, 1, 4, 4))]
        case "Slice":
            half = add(f"{name}h", "Concat", (first, second), axis=2)
            cut = {"starts": (2,), "ends": (6,), "axes": (2,), "steps": (1,)}
            return [half, add(name, kind, (half.output,), **cut)]
        case "Concat":
            cut = {"starts": (1,), "ends": (3,), "axes": (2,), "steps": (1,)}
            parts = [
                add(f"{name}p{k}", "Slice", (s,), **cut) for k, s in enumerate((first, second))
            ]
            return [*parts, add(name, kind, tuple(p.output for p in parts), axis=2)]
    return [add(name, kind, (first,))]


def computing(operators: tuple[Operator, ...]) -> set[str]:
    """Return the results of the operators that are no views."""
    return {o.output for o in operators if family_of(o.kind).fusion is not Fusion.VIEW}


@pytest.mark.full
@settings(max_examples=300, deadline=None, derandomize=True)
@for_all(unfused_networks())
def test_groups_of_random_networks_are_sound(network: UnfusedNetwork) -> None:
    if not network.outputs:
        return
    groups = fuse(network)
    in_memory = set(network.inputs) | {"w"}
    members: list[str] = []
    for group in groups:
        own = computing(group.operators)
        members.extend(own)
        # In this order every group finds its inputs, so they cannot wait for each other.
        assert set(group.inputs) <= in_memory
        assert group.output in own
        assert sum(is_anchor(operator) for operator in group.operators) <= 1
        known = set(group.inputs)
        for operator in group.operators:
            assert set(operator.inputs) <= known
            known.add(operator.output)
        in_memory.add(group.output)
    # Every operator is computed once, and every output is written.
    assert sorted(members) == sorted(computing(network.operators))
    assert set(network.outputs) <= {group.output for group in groups}


def is_anchor(operator: Operator) -> bool:
    return family_of(operator.kind).fusion in (Fusion.COMPLEX, Fusion.REDUCTION)


@settings(max_examples=40, deadline=None, derandomize=True)
@for_all(unfused_networks())
def test_fused_operators_read_only_what_their_tile_needs(network: UnfusedNetwork) -> None:
    """No element of a result between two operators of a group is computed for two tiles."""
    if not network.outputs:
        return
    groups = fuse(network)
    network = Network(
        name="random",
        tensors=network.tensors,
        groups=groups,
        inputs=network.inputs,
        outputs=network.outputs,
        sha256="",
    )
    for group in groups:
        computed = elements_computed(network, group)
        for name in computing(group.operators):
            assert computed[name] <= 16, (group, name)


def elements_computed(network: Network, group: Group) -> Mapping[str, int]:
    """Add up the elements of every tensor that the four tiles of a group need."""
    total: dict[str, int] = {}
    last = group.operators[-1]
    rows = geometries(network)[last].tiled_axes[2]
    for row in range(4) if rows else [None]:
        box = ((0, 1), (0, 1), (0, 4) if row is None else (row, row + 1), (0, 4))
        for name, region in group_regions(network, group, box).items():
            total[name] = total.get(name, 0) + volume(region)
    return total
