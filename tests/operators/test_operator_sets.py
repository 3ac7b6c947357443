"""ONNX's own cases in every operator set from 7 on are computed right, or refused for a reason."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from operators.operator_sets import Case, cases
from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from tests.frontend.running import (
    Array,
    loaded,
    model_of,
    network_outputs,
    onnxruntime_outputs,
    planned_outputs,
    saved,
)

PARTS = 8

KINDS = {
    "operator": "the operator is not supported|operator .* of domain",
    "control-flow": "its condition|its number of steps",
    "run-time": "(is not|must be) constant|depends on data|computed at run time|not constants",
    "no-elements": "has no elements|outputs has elements|the length of .* is not known",
    "type": "has data type|quantisation to|no tensor of known rank|must have one type|takes no",
    "output": "its output . is used",
    "operator-set": "operator set|attribute .* is of type|inputs, expected",
    "form": "not supported|is supported|is not of the form|shape inference says",
}
"""By name, what the reasons say; the first that fits counts."""

REFUSED = Path(__file__).parent / "refused_cases.txt"
"""What is refused however its inputs are given: kind of reason, case, and the older operator sets
in which it is (0 is its own) in each line."""


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS))
def test_every_case_is_right_or_refused_for_the_reason_that_stands_in_the_list(
    tmp_path: Path, part: int
) -> None:
    reasons: dict[str, str] = {}
    planned: set[tuple[object, ...]] = set()
    for case in cases(part, PARTS):
        name = case.name.replace(", constants", "")
        # Older sets and expanded functions: on constants only what is refused without.
        if reasons.get(name) == "" and ("," in name or "_expanded" in name):
            continue
        try:
            path = saved(tmp_path, case.model)
            network = load_network(path)
        except SpmilpError as error:
            if reasons.get(name) != "":
                reasons[name] = kind_of(str(error))
            continue
        # The first of each is planned if it has a new form, and computed tile by tile.
        is_new = "," not in name and reasons.get(name) != ""
        reasons[name] = ""
        feeds = {one: case.feeds[one] for one in network.inputs}
        assert_right(case, network_outputs(network, feeds))
        if is_new and not planned.issuperset(forms(network)):
            assert_right(case, planned_outputs(path, feeds))
            planned.update(forms(network))
    listed = {}
    for line in REFUSED.read_text().splitlines():
        kind, name, *sets = line.split()
        listed |= {name if own == "0" else f"{name}, {own}": kind for own in sets}
    assert {name: kind for name, kind in reasons.items() if kind} == {
        name: listed[name] for name in reasons if name in listed
    }


def forms(network: Network) -> Iterator[tuple[object, ...]]:
    """Yield of each operator what its tasks differ in but for shapes and numbers.

    Those are tried in test_boxes, of all cases.
    """
    for operator in (one for group in network.groups for one in group.operators):
        ways = {name: way for name, way in operator.attributes.items() if isinstance(way, str)}
        ends = [network.tensors.get(name) for name in (*operator.inputs, operator.output)]
        yield (
            *(operator.kind, operator.quantisation is not None, *sorted(ways.items())),
            *(end and (end.dtype.name, end.values is None) for end in ends),
        )


def kind_of(reason: str) -> str:
    return next(kind for kind, pattern in KINDS.items() if re.search(pattern, reason))


def assert_right(case: Case, found: Mapping[str, Array]) -> None:
    """Compare with each of the sources; they do not always agree."""
    differences = []
    for expected in case.expected:
        try:
            for name, array in found.items():
                close(array, np.asarray(expected[name.removesuffix("/copy")]), case.rtol)
        except AssertionError as error:
            differences.append(str(error))
        else:
            return
    raise AssertionError(f"{case.name}: {differences}")


def close(found: Array, expected: Array, rtol: float) -> None:
    assert found.dtype == expected.dtype
    found = found.reshape(expected.shape)
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected)
        return
    step = {"float16": 2e-3, "bfloat16": 2e-2}.get(expected.dtype.name, 1e-5)
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
    rtol = max(rtol, step)
    np.testing.assert_allclose(found, expected, rtol, rtol * largest)


NODES = {
    # Resize and Upsample began at the first element before 11.
    'y = Upsample<mode="linear">(x, s)': ((9,), [1, 1, 1.5, 2.5]),
    'y = Upsample<mode="nearest">(x, s) ': ((9,), [1, 1, 2, 3]),
    'y = Upsample<mode="linear", scales=[1.0, 1.0, 1.5, 2.5]>(x)': ((7, 8), None),
    'y = Resize<mode="linear">(x, s)': ((10,), [1, 1, 2.5, 1.5]),
    'y = Resize<mode="linear">(x, s) ': ((10,), [1, 1, 0.6, 1.7]),
    'y = Resize<mode="nearest">(x, s)': ((10,), [1, 1, 1.3, 2.7]),
    'y = Resize<mode="nearest">(x, s) ': ((10,), [1, 1, 0.34, 0.75]),
    "i = IsInf<detect_negative=0>(x) y = Cast<to=1>(i)": ((10, 13, 18, 20), None),
    "i = IsInf<detect_positive=0>(x) y = Cast<to=1>(i)": ((10, 13, 18, 20), None),
    "i = IsInf<detect_negative=0, detect_positive=0>(x) y = Cast<to=1>(i)": ((10, 20), None),
    "y = SpaceToDepth<blocksize=2>(x)": ((7, 13, 18, 28), None),
    'y = DepthToSpace<blocksize=2, mode="CRD">(x)': ((11, 13, 28), None),
    "y = Softmax<axis=2>(x)": ((7, 11, 13), None),
    "y = GroupNormalization<num_groups=2>(x, s, s)": ((18, 19, 20), [0.5, 2]),
    "y = Dropout<ratio=0.3>(x)": ((7, 10), None),
    "y = Clip<min=-0.5>(x)": ((7, 8), None),
    "y = LpPool<kernel_shape=[3, 2], p=3>(x)": ((7, 11, 18, 22), None),
    # ONNX's reference takes batches for channels, and two axes however many there are.
    "y = LRN<size=3, alpha=0.5>(x)": ((7, 13), None),
    "r = ReduceMax<axes=[2], keepdims=0>(x) y = GlobalMaxPool(r)": ((7, 11), None),
}


@pytest.mark.full
@pytest.mark.parametrize("node", NODES)
def test_a_node_means_what_its_operator_set_says(tmp_path: Path, node: str) -> None:
    sets, scales = NODES[node]
    numbers = np.random.default_rng(2).standard_normal((1, 4, 6, 8)).astype(np.float32)
    numbers[0, 0, 0, :2] = np.inf, -np.inf
    numbers = numbers if "IsInf" in node else np.nan_to_num(numbers, posinf=1, neginf=-1)
    constant = "" if scales is None else f"<float[{len(scales)}] s = {{{str(scales)[1:-1]}}}>"
    for version in sets:
        model = model_of(f"agraph (float[1,4,6,8] x) => (float y) {constant} {{ {node} }}", version)
        model.graph.output[0].type.Clear()
        model.ir_version = 4
        found = network_outputs(loaded(tmp_path, model), {"x": numbers})["y"]
        close(found, onnxruntime_outputs(model, {"x": numbers})["y"], 1e-5)


def test_operands_of_operator_set_6_broadcast_along_the_axis_that_they_name(tmp_path: Path) -> None:
    x = np.random.default_rng(2).standard_normal((1, 4, 4, 4)).astype(np.float32)
    a = np.array([1, 2, 3, 4], np.float32).reshape(4, 1, 1)
    for body, expected in {
        "y = Add<axis=1, broadcast=1>(x, a)": x + a,
        "y = Mul<axis=-1, broadcast=1>(x, a)": x * a.reshape(4),
        "y = PRelu(x, a)": np.where(x < 0, a * x, x),
    }.items():
        graph = f"agraph (float[1,4,4,4] x) => (float y) <float[4] a = {{1, 2, 3, 4}}> {{ {body} }}"
        model = model_of(graph, 6)
        model.graph.output[0].type.Clear()
        close(network_outputs(loaded(tmp_path, model), {"x": x})["y"], expected, 1e-6)


@pytest.mark.parametrize(
    ("body", "opset", "reason"),
    [
        ('y = SpaceToDepth<blocksize=2, mode="CRD">(x)', 18, r"y \(SpaceToDepth\): .*18 .*mode"),
        ("y = Relu<alpha=0.5>(x)", 7, r"y \(Relu\): .*no attribute alpha"),
        ("y = Softmax<axis=0.5>(x)", 13, r"y \(Softmax\): attribute axis is of type FLOAT"),
        ("y = ReduceSum<keepdims=2>(x)", 13, "keepdims is 2, expected 0 or 1"),
        ("y = BatchNormalization<spatial=0>(x, x, x, x, x)", 7, r"y \(Batch.*spatial is 0"),
        ("y = Gelu(x)", 13, r"y \(Gelu\): operator set 13 has no Gelu, set 20 has"),
        ("y = Relu(x)", 99, "operator set is 99, .* knows 1 to"),
        ("y = Add(x, i)", 7, r"y \(Add\): its operands x of type float and i of type int32"),
        ("y = Where(x, x, x)", 9, r"y \(Where\): Where takes no x of type float"),
        ("y = Concat<axis=0>(x, i)", 13, "Concat.*float and i of type int"),
        ("z = ArgMax(x) y = Identity(z)", 13, "gives y of type int64, but the file says float"),
    ],
)
def test_what_contradicts_the_operator_set_is_refused(
    tmp_path: Path, body: str, opset: int, reason: str
) -> None:
    graph = f"agraph (float[1,4,4,4] x, int32[1,4,4,4] i) => (float y) {{ {body} }}"
    model = model_of(graph, opset)
    with pytest.raises(SpmilpError, match=reason):
        loaded(tmp_path, model)
