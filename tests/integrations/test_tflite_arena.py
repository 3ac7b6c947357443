"""Plans for the arena of TensorFlow Lite Micro, judged by its own interpreter."""

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="pip install 'spmilp[tflite]'")
micro = pytest.importorskip("tflite_micro", reason="pip install tflite-micro").runtime

from ai_edge_litert import schema_py_generated as schema  # noqa: E402
from ai_edge_litert.interpreter import Interpreter, OpResolverType  # noqa: E402

from spmilp.errors import SpmilpError  # noqa: E402
from spmilp.frontend.tflite.file import read_tflite  # noqa: E402
from spmilp.integrations.tflite import METADATA, plan_arena  # noqa: E402
from tests.acceptance.doors import Run  # noqa: E402
from tests.integrations.tflite_models import Graph, Model  # noqa: E402

MODELS = Path(os.environ.get("SPMILP_TFLITE_MODELS", "models/tflite"))
"""A folder of models that a converter made; what is not there is skipped."""


def residual(graph: Graph, source: int) -> int:
    """Two bottlenecks with a residual each, as in a ResNet."""
    for _ in range(2):
        source = graph.add(source, graph.conv(graph.conv(source, 24), 4, kernel=3))
    return graph.conv(source, 3, stride=2)


def inception(graph: Graph, source: int) -> int:
    """Two cells of three branches each, as in GoogLeNet."""
    for _ in range(2):
        wide = graph.conv(graph.conv(source, 4), 8, kernel=3)
        wider = graph.conv(graph.conv(source, 2), 4, kernel=5)
        source = graph.concat(graph.conv(source, 6), wide, wider)
    return graph.conv(source, 3)


def dense(graph: Graph, source: int) -> int:
    """Four layers that see all before them, as in a DenseNet."""
    for _ in range(4):
        source = graph.concat(source, graph.conv(graph.conv(source, 16), 4, kernel=3))
    return graph.conv(source, 3)


def upsampled(graph: Graph, source: int) -> int:
    """A transposed convolution, whose kernel claims a scratch buffer for its sums."""
    source, shape = graph.conv(source, 4), [1, 32, 32, 4]
    extents = graph.tensor([4], "INT32", data=np.array(shape, np.int32))
    filters = graph.random.integers(-99, 99, (4, 3, 3, 4), np.int8)
    weights = graph.tensor(filters.shape, scale=[0.01] * 4, data=filters)
    output = graph.tensor(shape, scale=0.1)
    options = schema.TransposeConvOptionsT(padding=0, strideH=2, strideW=2)
    graph.operator("TRANSPOSE_CONV", [extents, weights, source], [output], options, version=2)
    return graph.conv(output, 2)


def filtered(graph: Graph, source: int, units: int = 16) -> int:
    """A stateful filter: a variable, and two scratch buffers of the kernel."""
    (batch, width), rank, memory = graph.shape(source), 2, 6
    features = graph.random.integers(-99, 99, (units * rank, width), np.int8)
    times = graph.random.integers(-99, 99, (units * rank, memory), np.int16)
    inputs = [
        source,
        graph.tensor(features.shape, scale=0.01, data=features),
        graph.tensor(times.shape, "INT16", scale=0.001, data=times),
        graph.tensor([units], "INT32", scale=0.00001, data=np.zeros(units, np.int32)),
        graph.tensor([batch, units * rank * memory], "INT16", scale=0.01, is_variable=True),
    ]
    output = graph.tensor([batch, units], scale=0.01)
    options = schema.SVDFOptionsT(rank=rank, fusedActivationFunction=1)
    graph.operator("SVDF", inputs, [output], options, version=3)
    return output


def network(build: Callable[[Graph, int], int], *shape: int) -> bytes:
    model = Model()
    graph = Graph(model)
    source = graph.tensor(shape or (1, 16, 16, 4), scale=0.1)
    graph.ends([source], [build(graph, source)])
    return model.content()


def controlled(kind: str) -> bytes:
    """A network with an operator that runs two other subgraphs."""
    model = Model()
    graph, *called = (Graph(model) for _ in range(3))
    shape = [1, 8, 8, 4]
    source, other = graph.tensor(shape, scale=0.1), graph.tensor([1], "BOOL")
    before, output = graph.conv(source, 4), graph.tensor(shape, scale=0.1)
    if kind == "IF":
        options: Any = schema.IfOptionsT(thenSubgraphIndex=1, elseSubgraphIndex=2)
        graph.operator("IF", [other, before], [output], options)
    else:
        options = schema.WhileOptionsT(condSubgraphIndex=1, bodySubgraphIndex=2)
        graph.operator("WHILE", [other, before], [graph.tensor([1], "BOOL"), output], options)
    graph.ends([source, other], [graph.add(graph.conv(output, 4), before)])
    for one in called:
        ends = [] if kind == "IF" else [one.tensor([1], "BOOL")]
        data = one.tensor(shape, scale=0.1)
        # A loop ends after its body has run once: a constant goes round.
        stop = one.tensor([1], "BOOL", data=np.zeros(1, np.bool_))
        result = one.conv(one.conv(data, 8), 4, kernel=3)
        outputs = {"IF": [result], "WHILE": [stop, result]}[kind]
        if kind == "WHILE" and one is called[0]:
            result, outputs = -1, ends
        one.ends([*ends, data], outputs)
    return model.content()


def values(content: bytes, index: int) -> Any:
    """Return random values for an input; a condition is true."""
    graph = schema.ModelT.InitFromPackedBuf(content, 0).subgraphs[0]
    tensor = graph.tensors[graph.inputs[index]]
    if tensor.type == schema.TensorType.BOOL:
        return np.ones(tensor.shape, np.bool_)
    return np.random.default_rng(index).integers(-128, 128, tensor.shape, np.int8)


def run_micro(content: bytes, times: int = 2) -> tuple[list[Any], int, int]:
    """Run a model several times; return its last outputs, and the bytes of head and tail."""
    interpreter = micro.Interpreter.from_bytes(content, arena_size=1 << 20)
    graph = schema.ModelT.InitFromPackedBuf(content, 0).subgraphs[0]
    for _ in range(times):
        for index in range(len(graph.inputs)):
            interpreter.set_input(values(content, index), index)
        interpreter.invoke()
    outputs = [interpreter.get_output(index) for index in range(len(graph.outputs))]
    with tempfile.TemporaryFile() as file:
        # The library writes to the descriptor itself.
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            interpreter.print_allocations()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        text = file.read().decode()
    head, tail = (int(re.search(rf"{part} (\d+) bytes", text)[1]) for part in ("head", "tail"))
    return outputs, head, tail


CONVERTED = ("autoenc_int8", "resnet8_int8")
BUILT: dict[str, tuple[bytes, Mapping[str, int]]] = {
    "residual": (network(residual), {}),
    "inception": (network(inception), {}),
    "dense": (network(dense), {}),
    "upsampled": (network(upsampled), {"TRANSPOSE_CONV": 32 * 32 * 4 * 4}),
    "filtered": (network(filtered, 1, 40), {"0": 32 * 4 + 16 * 4}),
    "if": (controlled("IF"), {}),
    "while": (controlled("WHILE"), {}),
}
"""Each with what its kernels claim."""

BYTES = {"autoenc_int8": 768, "resnet8_int8": 49152, "residual": 8192, "inception": 9216} | {
    "dense": 10240,
    "upsampled": 21504,
    "filtered": 256,
    "if": 1296,
    "while": 1328,
}


@pytest.mark.parametrize("name", [*CONVERTED, *BUILT])
def test_tensorflow_lite_micro_runs_a_plan_in_the_bytes_that_it_says(
    name: str, tmp_path: Path
) -> None:
    file, output = tmp_path / "in.tflite", tmp_path / "out.tflite"
    if name in CONVERTED and not (MODELS / f"{name}.tflite").exists():
        pytest.skip(f"SPMILP_TFLITE_MODELS names no folder with {name}.tflite")
    given = (MODELS / f"{name}.tflite").read_bytes() if name in CONVERTED else BUILT[name][0]
    file.write_bytes(given)
    plan = plan_arena(file, output, workspace=dict(BUILT.get(name, (b"", {}))[1]))
    planned = output.read_bytes()

    expected, head, tail = run_micro(given)
    outputs, planned_head, planned_tail = run_micro(planned)
    print(f"{name}: {head} B by itself, {planned_head} B by the plan")
    assert (plan.status, plan.height) == ("optimal", BYTES[name])
    assert (planned_head, planned_tail) == (plan.height, tail)
    assert planned_head < head if name in ("residual", "dense") else planned_head <= head
    reference = Interpreter(
        model_content=planned, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    reference.allocate_tensors()
    for _ in range(2):
        for index, detail in enumerate(reference.get_input_details()):
            reference.set_tensor(detail["index"], values(planned, index))
        reference.invoke()
    for one, other, detail in zip(outputs, expected, reference.get_output_details(), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, reference.get_tensor(detail["index"]))


def as_data(value: Any) -> Any:
    """Return an object of the schema as plain data."""
    if isinstance(value, list):
        return [as_data(one) for one in value]
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return {n: as_data(v) for n, v in vars(value).items()} if hasattr(value, "__dict__") else value


def test_all_but_the_plan_stays_and_a_new_plan_takes_the_place_of_the_old(
    run: Run, tmp_path: Path
) -> None:
    model, file = Model(), tmp_path / "a.tflite"
    graph = Graph(model)
    source = graph.tensor([1, 16, 16, 4], scale=0.1)
    graph.ends([source], [residual(graph, source)])
    model.built.metadata = [schema.MetadataT(name=b"note", buffer=model.buffer(np.arange(9)))]
    model.built.description = "a network"
    file.write_bytes(model.content())

    ended = run("pack", file, "-o", tmp_path / "b.tflite", "--json")
    assert (ended.code, ended.json["height"], ended.json["gap"]) == (0, 8192, 0.0)
    planned, content = read_tflite(tmp_path / "b.tflite")
    assert planned.metadata.pop().name == METADATA
    plan = planned.buffers.pop().data.view("<i4")
    offsets = list(ended.json["offsets"].values())
    assert [*plan[:3]] == [0, 1, len(planned.subgraphs[0].tensors)]
    assert len(plan) == 3 + plan[2]
    assert [one for one in plan[3:] if one >= 0] == offsets
    assert as_data(planned) == as_data(read_tflite(file)[0])
    flat = schema.Model.GetRootAs(content)
    datas = [flat.Buffers(index).DataAsNumpy() for index in range(flat.BuffersLength())]
    start = np.frombuffer(content, np.uint8).ctypes.data
    assert {(one.ctypes.data - start) % 16 for one in datas if not isinstance(one, int)} == {0}

    # In its own place, at another capacity: the bytes of the plan are used again.
    (tmp_path / "c.tflite").write_bytes(content)
    assert run("pack", tmp_path / "c.tflite", "-o", tmp_path / "c.tflite").code == 0
    assert (tmp_path / "c.tflite").read_bytes() == content


def test_what_cannot_be_planned_is_said(run: Run, tmp_path: Path) -> None:
    file, output = tmp_path / "a.tflite", tmp_path / "b.tflite"
    file.write_bytes(network(residual))
    for arguments, code, said in (
        (("-c", "8000"), 4, r"cannot be packed inside 8,000 B: 8,192 B in all"),
        (("-o", tmp_path / "b.csv"), 2, "a .tflite file"),
        (("-o", output, "--pool", "sram=4K"), 2, "one memory"),
        (("--workspace", "SOFTMAX=64"), 3, "'SOFTMAX', .* known: ADD, CONV_2D"),
        (("--workspace", "3"), 2, "no size in bytes"),
    ):
        ended = run("pack", file, *arguments)
        assert ended.code == code
        assert re.search(said, " ".join(ended.err.replace("│", " ").split()))
    file.write_bytes(b"id,lower,upper,size")
    assert "is not a TensorFlow Lite model" in run("pack", file).err

    # TensorFlow Lite Micro 2026 looks up variables of all subgraphs among the offsets of the first.
    model = Model()
    graph, called = Graph(model), Graph(model)
    source = graph.tensor([1, 40], scale=0.1)
    for _ in range(4):
        graph.tensor([1, 40], scale=0.1)
    graph.operator("CALL_ONCE", [], [], schema.CallOnceOptionsT(initSubgraphIndex=1))
    graph.ends([source], [source])
    called.ends([], [filtered(called, called.tensor([1, 40], scale=0.1))])
    file.write_bytes(model.content())
    assert "tensor 4 of subgraph 1 is a variable" in run("pack", file).err
    assert not output.exists()


def test_broken_files_are_refused_or_planned(tmp_path: Path) -> None:
    random, file, sound = Random(0), tmp_path / "a.tflite", controlled("IF")
    planned = 0
    for attempt in range(200):
        broken = bytearray(sound)
        for _ in range(random.choice((1, 3, 20))):
            broken[random.randrange(len(broken))] = random.randrange(256)
        file.write_bytes(broken[: random.randrange(len(broken)) if attempt % 4 == 0 else None])
        with suppress(SpmilpError):
            plan_arena(file, tmp_path / "b.tflite")
            planned += 1
    assert 0 < planned < 150
