"""The clean-up changes no number that the network computes."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from spmilp.frontend.load import load_network
from tests.frontend.running import cleaned, given, model_of, onnxruntime_outputs


def kinds(model: ir.Model) -> Counter[str]:
    """Count the nodes of each kind."""
    return Counter(node.op_type for node in model.graph)


def cleaned_to(folder: Path, model: onnx.ModelProto) -> Counter[str]:
    """Return the kinds of nodes after the clean-up, which computes what the model does."""
    after = cleaned(folder, model)
    inputs = given(
        {
            value.name: tuple(length.dim_value for length in value.type.tensor_type.shape.dim)
            for value in model.graph.input
        }
    )
    expected = onnxruntime_outputs(model, inputs)
    found = onnxruntime_outputs(ir.to_proto(after), inputs)
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5)
    return kinds(after)


def with_constants(graph: str, seed: int = 1, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """Return a model with random positive constants added."""
    model = model_of(graph)
    numbers = np.random.default_rng(seed)
    for name, shape in shapes.items():
        values = numbers.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


NORM = {"g": (6,), "b": (6,), "m": (6,), "v": (6,)}
CONV = "agraph (float[2,3,5,5] x) => (float[2,6,3,3] y)"
DECONV = "agraph (float[2,4,5,5] x) => (float[2,6,7,7] y)"


@pytest.mark.parametrize(
    ("graph", "kind", "shapes"),
    [
        (f"{CONV} {{ a = Conv(x, w) NORM }}", "Conv", {"w": (6, 3, 3, 3)}),
        (
            f"{DECONV} {{ a = ConvTranspose<group=2>(x, w, o) NORM }}",
            "ConvTranspose",
            {"w": (4, 3, 3, 3), "o": (6,)},
        ),
        *(
            (
                "agraph (float[4,3] x) => (float[4,6] y) "
                f"{{ a = Gemm<transB={flip}, alpha=0.5, beta=2.0>(x, w, o) NORM }}",
                "Gemm",
                {"w": (6, 3) if flip else (3, 6), "o": c},
            )
            for flip in (0, 1)
            for c in ((6,), (1, 6), (4, 1), ())
        ),
    ],
)
def test_batch_norm_is_folded_into_what_it_alone_reads(
    tmp_path: Path, graph: str, kind: str, shapes: dict[str, tuple[int, ...]]
) -> None:
    text = graph.replace("NORM", "y = BatchNormalization<epsilon=0.1>(a, g, b, m, v)")
    assert cleaned_to(tmp_path, with_constants(text, **shapes, **NORM)) == {kind: 1}


def test_two_batch_norms_may_share_one_weight(tmp_path: Path) -> None:
    graph = """
    agraph (float[1,3,5,5] x, float[1,3,5,5] u) => (float[1,6,3,3] y, float[1,6,3,3] z)
    {
        c = Conv(x, w)
        y = BatchNormalization(c, g, b, m, v)
        d = Conv(u, w)
        z = BatchNormalization(d, b, g, v, m)
    }
    """
    assert cleaned_to(tmp_path, with_constants(graph, w=(6, 3, 3, 3), **NORM)) == {"Conv": 2}


def test_stale_shapes_in_the_file_are_ignored(tmp_path: Path) -> None:
    model = model_of("agraph (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Sqrt(a) }")
    model.graph.value_info.append(helper.make_tensor_value_info("a", 1, [7, 9, 9]))
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 99
    after = cleaned(tmp_path, model)
    assert [list(node.outputs[0].shape) for node in after.graph] == [[2, 3], [2, 3]]


def test_a_constant_written_as_an_expression_is_folded_whatever_its_size(tmp_path: Path) -> None:
    graph = """
    agraph (float[2,300] x) => (float[2,400] y)
    <float[7] base = {0.1, -0.2, 0.3, 0.5, -0.7, 1.1, 1.3}, int64[1] times = {17143},
     int64[1] zero = {0}, int64[1] end = {120000}, int64[2] shape = {300, 400}>
    {
        tiled = Tile(base, times)
        cut = Slice(tiled, zero, end)
        w = Reshape(cut, shape)
        y = MatMul(x, w)
    }
    """
    assert cleaned_to(tmp_path, model_of(graph)) == {"MatMul": 1}


def test_a_constant_that_would_take_gigabytes_is_not_computed(tmp_path: Path) -> None:
    graph = """
    agraph (float[2] x) => (float[90000,90000] y)
    <float[1] base = {0.1}, int64[2] shape = {90000, 90000}>
    {
        huge = Expand(base, shape)
        part = ReduceMean <keepdims: int = 1> (x)
        y = Mul(huge, part)
    }
    """
    assert "Expand" in kinds(cleaned(tmp_path, model_of(graph)))


def test_inputs_that_are_initialisers_are_no_inputs(tmp_path: Path) -> None:
    constants = "<float[2] c = {1.0, 2.0}>"
    model = model_of(
        f"agraph (float[2] x, float[2] c) => (float[2] y) {constants} {{ y = Add(x, c) }}"
    )
    assert [value.name for value in cleaned(tmp_path, model).graph.inputs] == ["x"]


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18, "mine" : 1]>
    agraph (float[2] x) => (float[2] y) { y = mine.twice(x) }
    <domain: "mine", opset_import: ["" : 18]>
    twice (a) => (b) { b = Add(a, a) }
    """
    assert cleaned_to(tmp_path, onnx.parser.parse_model(text)) == {"Add": 1}


@pytest.mark.parametrize(
    "call",
    [
        "MeanVarianceNormalization<axes=[0, 2, 3]>(x)",
        "Shrink<lambd=0.3>(x)",
        # Before operator set 21 it has one scale per group.
        "GroupNormalization<num_groups=2>(x, s, s)",
    ],
)
def test_operators_that_onnx_defines_by_others_are_expanded(tmp_path: Path, call: str) -> None:
    graph = f"agraph (float[2,4,3,5] x, float[2] s) => (float[2,4,3,5] y) {{ y = {call} }}"
    model = model_of(graph)
    if "s, s" not in call:
        del model.graph.input[1]
    assert call.split("<")[0] not in cleaned_to(tmp_path, model)


def test_weights_in_a_file_of_their_own_are_read(tmp_path: Path) -> None:
    graph = "agraph (float[2,40] x) => (float[2,30] y) { y = MatMul(x, w) }"
    model = with_constants(graph, w=(40, 30))
    expected = numpy_helper.to_array(model.graph.initializer[0])
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    np.testing.assert_array_equal(load_network(path).tensors["w"].data, expected)


@pytest.mark.parametrize("length", [None, 0, 100])
def test_weights_whose_file_is_missing_or_too_short_are_shapes(
    tmp_path: Path, length: int | None
) -> None:
    graph = """
    agraph (float[2,3,5,5] x) => (float[2,6,3,3] y)
    { c = Conv(x, w) n = BatchNormalization(c, g, b, m, v) y = Relu(n) }
    """
    model = with_constants(graph, w=(6, 3, 3, 3), **NORM)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    if length is None:
        (tmp_path / "model.data").unlink()
    else:
        (tmp_path / "model.data").write_bytes(bytes(length))

    network = load_network(path)

    (group,) = network.groups
    assert [operator.kind for operator in group.operators] == ["Conv", "Relu"]
    weight, bias = (network.tensors[name] for name in group.inputs[1:])
    assert (weight.shape, bias.shape) == ((6, 3, 3, 3), (6,))
    assert network.inputs == ("x",)
    assert weight.shape_only
    assert bias.shape_only
