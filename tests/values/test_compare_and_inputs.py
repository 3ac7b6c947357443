"""Tolerances, references, and inputs that are random or come from a file."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spmilp.checker.values.compare import compare, reference_outputs
from spmilp.checker.values.inputs import random_inputs, read_values
from spmilp.checker.values.nodes import compare_nodes
from spmilp.checker.values.state import ValuesError
from spmilp.errors import FileError
from spmilp.frontend.graph import Group, Network, Operator, Quantisation, Scale, Tensor
from tests.frontend.running import model_of, saved
from values.small_network import NETWORK


def network_of(
    operators: list[Operator], tensors: dict[str, Any], inputs: tuple[str, ...]
) -> Network:
    """Return a network of groups of one operator; tensors are ``(shape, dtype)``."""
    return Network(
        name="few",
        tensors={
            name: Tensor(name=name, shape=shape, dtype=np.dtype(dtype))
            for name, (shape, dtype) in tensors.items()
        },
        groups=tuple(
            Group(
                index=index,
                name=one.name,
                operators=(one,),
                anchor=0,
                inputs=one.inputs,
                output=one.output,
            )
            for index, one in enumerate(operators)
        ),
        inputs=inputs,
        outputs=(operators[-1].output,),
        sha256="",
    )


def test_what_is_not_a_number_equals_itself_only() -> None:
    both = np.array([np.nan, np.inf, 1.0], dtype=np.float32)
    (same,) = compare({"z": both}, {"z": both}, NETWORK)
    assert same.absolute == 0
    (other,) = compare({"z": np.array([np.nan, 0.0, 1.0], np.float32)}, {"z": both}, NETWORK)
    assert other.absolute == np.inf
    assert not other.within
    ends = [np.array([-number, 1.0], np.float16) for number in (np.inf, 65504)]
    assert compare({"z": ends[0]}, {"z": ends[1]}, NETWORK)[0].within


def test_an_output_may_have_another_shape_of_the_same_elements() -> None:
    values = np.arange(6, dtype=np.float32)
    (found,) = compare({"z": values.reshape(2, 3)}, {"z": values}, NETWORK)
    assert found.absolute == 0
    with pytest.raises(ValuesError, match=r"expected \(7,\)"):
        compare({"z": values}, {"z": np.zeros(7, np.float32)}, NETWORK)
    with pytest.raises(ValuesError, match=r"output z has no reference; .* are q"):
        compare({"z": values}, {"q": values}, NETWORK)


SCALE = Scale(
    scale=np.array([0.5], dtype=np.float32),
    zero_point=np.array([0], dtype=np.int32),
    axis=None,
    dtype=np.dtype(np.int8),
)


def quantised_network(last: bool) -> Network:
    """Return integers from floats; with ``last``, floats from integers again behind them."""
    down = Operator(
        name="down",
        kind="QuantizeLinear",
        inputs=("x",),
        output="q",
        quantisation=Quantisation(inputs=(None,), output=SCALE),
    )
    up = Operator(
        name="up",
        kind="DequantizeLinear",
        inputs=("q",),
        output="z",
        quantisation=Quantisation(inputs=(SCALE,), output=None),
    )
    tensors = {"x": ((3,), "float32"), "q": ((3,), "int8"), "z": ((3,), "float32")}
    return network_of([down, up] if last else [down], tensors, ("x",))


def copied(kind: str) -> Network:
    """Return a network that copies what it is given, three numbers of a kind."""
    copy = Operator(name="copy", kind="Identity", inputs=("x",), output="z")
    return network_of([copy], dict.fromkeys("xz", ((3,), kind)), ("x",))


@pytest.mark.parametrize(
    ("network", "output", "dtype", "apart", "within"),
    [
        *((NETWORK, "z", "float32", *case) for case in ((0.9e-3, True), (1.1e-3, False))),
        (NETWORK, "z", "float16", 0.19, True),
        *((quantised_network(False), "q", "int8", *case) for case in ((1, True), (2, False))),
        *((quantised_network(True), "z", "float32", *case) for case in ((0.5, True), (0.6, False))),
        (copied("int64"), "z", "int64", 1, False),
        (copied("bool"), "z", "bool", 1, False),
    ],
)
def test_numbers_may_differ_by_a_share_of_the_largest_or_a_step_or_not_at_all(
    network: Network, output: str, dtype: str, apart: float, within: bool
) -> None:
    numbers = np.array([0, 0, 1]) if dtype == "bool" else np.array([1, -10, 3])
    reference = numbers.astype(dtype)
    values = (reference + np.asarray(apart, dtype)).astype(dtype)
    (found,) = compare({output: values}, {output: reference}, network)
    assert found.within is within
    assert found.absolute == pytest.approx(apart, rel=0.02)
    assert found.relative == pytest.approx(apart / np.abs(numbers).max(), rel=0.02)


def test_random_inputs_are_the_same_for_the_same_seed() -> None:
    first, again, other = (random_inputs(NETWORK, seed)["x"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_indices_lie_in_the_table_that_they_index() -> None:
    cast = Operator(name="cast", kind="Cast", inputs=("ids",), output="wide")
    gather = Operator(
        name="gather", kind="Gather", inputs=("table", "wide"), output="z", attributes={"axis": 0}
    )
    tensors = {
        "ids": ((400,), "int32"),
        "wide": ((400,), "int64"),
        "table": ((30, 4), "float32"),
        "z": ((400, 4), "float32"),
        "mask": ((50,), "int64"),
        "bytes": ((900,), "int8"),
        "on": ((50,), "bool"),
    }
    network = network_of([cast, gather], tensors, ("ids", "mask", "bytes", "on"))
    values = random_inputs(network, 0)
    assert set(values["ids"].tolist()) == set(range(30))
    assert set(values["mask"].tolist()) == {0, 1}
    assert values["bytes"].min() < -100
    assert values["bytes"].max() > 100
    assert values["on"].dtype == np.bool_
    assert [values[name].dtype.name for name in ("ids", "mask")] == ["int32", "int64"]


def test_no_random_divisor_is_zero_and_no_index_out_of_range() -> None:
    operators = [
        Operator(name="neg", kind="Cast", inputs=("d",), output="wide"),
        Operator(name="div", kind="Div", inputs=("n", "wide"), output="q"),
        Operator(name="pick", kind="GatherND", inputs=("table", "ids"), output="z"),
    ]
    shapes = {"d": (90,), "wide": (90,), "n": (90,), "q": (90,), "ids": (90, 2)}
    tensors = {name: (shape, "int64") for name, shape in shapes.items()}
    tensors |= {"table": ((3, 7, 4), "float32"), "z": ((90, 4), "float32")}
    values = random_inputs(network_of(operators, tensors, ("d", "n", "ids", "table")), 0)
    assert (values["d"] != 0).all()
    assert set(values["n"].tolist()) == {0, 1}
    assert set(values["ids"].ravel().tolist()) == {0, 1, 2}


def shares(text: str, inputs: dict[str, Any], computed: dict[str, Any]) -> list[float]:
    """Return of each result how far it is from its node's, as a share of what is allowed."""
    model = model_of(f"few {text}")
    given = {name: (array, np.ones(array.shape, np.bool_)) for name, array in computed.items()}
    return [one.share for one in compare_nodes(model, inputs, given)]


def test_a_sum_that_cancels_may_lose_digits_and_one_that_does_not_may_not() -> None:
    text = "(float[3] x, float[1] far) => (float[3] z) { y = Add(x, far)  z = Sub(y, far) }"
    x = np.float32([1, 2, 3])
    wrong = {"z": x + np.float32([0, 0, 1e-3])}
    (explained,) = shares(text, {"x": x, "far": np.float32([1e4])}, wrong)
    (error,) = shares(text, {"x": x, "far": np.float32([1])}, wrong)
    assert explained <= 1 < error


def test_a_step_is_allowed_only_where_rounding_may_go_either_way() -> None:
    text = """(float[2,2] x) => (int8[2,2] z) <float s = {0.1}, int8 o = {0}>
        { y = Mul(x, x)  z = QuantizeLinear(y, s, o) }"""
    x = np.sqrt(np.float32([[0.15, 0.17], [0.25, 0.31]]))
    near, far = np.int8([[1, 2], [3, 3]]), np.int8([[2, 1], [2, 3]])
    down = np.int8([[2, 2], [2, 3]])
    assert [shares(text, {"x": x}, {"z": z}) for z in (near, down)] == [[1.0], [0.0]]
    assert shares(text, {"x": x}, {"z": far}) == [np.inf]


def test_an_index_may_differ_only_where_the_values_do_not() -> None:
    text = """(float[1,3] x) => (int64[1] z) <float[3,3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1}>
        { y = MatMul(x, w)  z = ArgMax<axis=1, keepdims=0>(y) }"""
    tie, other = np.float32([[1, 1 - 1e-7, 0]]), np.float32([[1, 0.999, 0]])
    one = {"z": np.int64([1])}
    assert shares(text, {"x": tie}, one) == [0.0]
    assert shares(text, {"x": other}, one) == [np.inf]
    # On the plan's own values it does not round.
    assert shares(text, {"x": tie}, {"y": tie, **one}) == [0.0, np.inf]


def test_inputs_are_read_from_a_file(tmp_path: Path) -> None:
    data = np.ones((1, 2, 6, 4), dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=data, other=np.zeros(3))
    found, reference = read_values(tmp_path / "in.npz", NETWORK)
    assert reference is None
    assert list(found) == ["x"]
    np.testing.assert_array_equal(found["x"], data)


def test_bfloat16_is_read_from_what_numpy_makes_of_it(tmp_path: Path) -> None:
    x = replace(NETWORK.tensors["x"], dtype=np.dtype("bfloat16"))
    np.savez(tmp_path / "in.npz", x=np.full(x.shape, 0.5, x.dtype))
    network = replace(NETWORK, tensors={**NETWORK.tensors, "x": x})
    found, _ = read_values(tmp_path / "in.npz", network)
    np.testing.assert_array_equal(found["x"], np.full(x.shape, 0.5, x.dtype))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": np.zeros(3)}, "no array x for that network input; it has y"),
        ({"x": np.zeros((1, 2, 6, 4))}, "array x is float64 of shape .* expected float32"),
        ({"x": np.zeros((6, 4), np.float32)}, r"shape \(6, 4\), expected .* \(1, 2, 6, 4\)"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "in.npz", **arrays)
    with pytest.raises(FileError, match=message):
        read_values(tmp_path / "in.npz", NETWORK)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_values(tmp_path / "none.npz", NETWORK)
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(FileError, match=r"no \.npz file of arrays"):
        read_values(tmp_path / "text.npz", NETWORK)
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(FileError, match=r"no \.npz file of arrays"):
        read_values(tmp_path / "empty.npz", NETWORK)
    with pytest.raises(FileError, match="it is a device"):
        read_values(Path("/dev/zero"), NETWORK)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(FileError, match="one array without a name"):
        read_values(tmp_path / "one.npy", NETWORK)


@pytest.mark.full
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_file_is_refused_or_holds_what_its_checksum_says(
    save: Callable[..., None], tmp_path: Path
) -> None:
    """Damaged archives make the library raise a dozen kinds of exceptions."""
    save(tmp_path / "in.npz", x=np.ones((1, 2, 6, 4), np.float32))
    whole = (tmp_path / "in.npz").read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x5A
        (tmp_path / "in.npz").write_bytes(damaged)
        with suppress(FileError):
            np.testing.assert_array_equal(read_values(tmp_path / "in.npz", NETWORK)[0]["x"], 1)
        (tmp_path / "in.npz").write_bytes(whole[:position])
        with pytest.raises(FileError):
            read_values(tmp_path / "in.npz", NETWORK)


def written(text: str, folder: Path, opset: int = 18) -> Path:
    model = model_of(f"few {text}", opset)
    model.ir_version = 3 if opset < 7 else 9
    return saved(folder, model)


def test_the_reference_is_the_models_own_output(tmp_path: Path) -> None:
    text = "(float[3] x, int64[n] unused) => (float[3] z) { z = Add(x, x) }"
    found = reference_outputs(written(text, tmp_path), {"x": np.ones(3, dtype=np.float32)})
    np.testing.assert_array_equal(found["z"], [2, 2, 2])


def test_where_onnxruntime_has_no_kernel_onnx_s_reference_takes_its_place(tmp_path: Path) -> None:
    text = "(float[1,2,3] x, float[2] a) => (float[1,2,3] y) { y = PRelu(x, a) }"
    old = written(text, tmp_path, opset=6)
    given = {"x": np.full((1, 2, 3), -1, np.float32), "a": np.array([2, 3], np.float32)}
    with pytest.warns(UserWarning, match="ONNX's reference instead of onnxruntime"):
        found = reference_outputs(old, given)
    np.testing.assert_array_equal(found["y"], [[[-2] * 3, [-3] * 3]])


def test_a_model_that_cannot_be_run_is_an_error_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "no.onnx").write_text("no model")
    with pytest.raises(FileError, match=r"no\.onnx: onnxruntime cannot run it"):
        reference_outputs(tmp_path / "no.onnx", {})


def test_sums_of_the_largest_products_of_bytes_are_not_cut_off(tmp_path: Path) -> None:
    """Not even on x86 processors without an instruction for them."""
    weights = ", ".join(["127"] * 16)
    text = f"(uint8[1,8] x) => (int32[1,2] y) <int8[8,2] w = {{{weights}}}>"
    product = written(f"{text} {{ y = MatMulInteger(x, w) }}", tmp_path)
    found = reference_outputs(product, {"x": np.full((1, 8), 255, np.uint8)})
    assert found["y"].tolist() == [[8 * 255 * 127] * 2]
