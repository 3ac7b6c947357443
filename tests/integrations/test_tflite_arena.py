"""Plans for the arena of TensorFlow Lite Micro, judged by its own interpreter."""

import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="pip install 'spmilp[tflite]'")

from spmilp.errors import SpmilpError
from spmilp.frontend.tflite.file import read_tflite, schema
from spmilp.integrations.tflite import METADATA, plan_arena
from tests.acceptance.doors import Run
from tests.frontend.tflite_cases import EXACT, written
from tests.frontend.tflite_models import Builder

SHARED = Path(__file__).parents[3] / "shared" / "data" / "tflite"


class Layers(Builder):
    """Adds layers of int8 with random weights; each returns its result."""

    def __init__(self, other: Builder | None = None) -> None:
        super().__init__(other)
        self.random = np.random.default_rng(0)

    def values(self, shape: tuple[int, ...], dtype: str = "int8", scale: float = 0.01) -> int:
        scales = [scale] * shape[0]
        return self.tensor(shape, dtype, scales, data=self.random.integers(-99, 99, shape))

    def shape(self, tensor: int) -> tuple[int, ...]:
        return tuple(map(int, self.tensors[tensor].shape))

    def conv(self, source: int, channels: int, kernel: int = 1, stride: int = 1) -> int:
        _, height, width, depth = self.shape(source)
        weights = self.values((channels, kernel, kernel, depth))
        inputs = [source, weights, self.values((channels,), "int32", 0.001)]
        output = self.tensor([1, height // stride, width // stride, channels], scale=0.1)
        strides = {"strideH": stride, "strideW": stride}
        self.operator("CONV_2D", inputs, [output], table="Conv2DOptions", **strides)
        return output

    def add(self, first: int, second: int) -> int:
        output = self.tensor(self.shape(first), scale=0.1)
        self.operator("ADD", [first, second], [output], table="AddOptions")
        return output

    def concat(self, *sources: int) -> int:
        channels = sum(self.shape(source)[-1] for source in sources)
        output = self.tensor([*self.shape(sources[0])[:-1], channels], scale=0.1)
        self.operator("CONCATENATION", sources, [output], table="ConcatenationOptions", axis=3)
        return output


def residual(net: Layers, source: int) -> int:
    """Two bottlenecks with a sum each, as in a ResNet."""
    for _ in range(2):
        source = net.add(source, net.conv(net.conv(source, 24), 4, kernel=3))
    return net.conv(source, 3, stride=2)


def dense(net: Layers, source: int) -> int:
    """Four layers that see all before them, as in a DenseNet."""
    for _ in range(4):
        source = net.concat(source, net.conv(net.conv(source, 16), 4, kernel=3))
    return net.conv(source, 3)


def upsampled(net: Layers, source: int) -> int:
    """A transposed convolution, whose kernel claims a scratch buffer for its sums."""
    source, shape = net.conv(source, 4), [1, 32, 32, 4]
    inputs = [net.tensor([4], "int32", data=shape), net.values((4, 3, 3, 4)), source]
    output = net.tensor(shape, scale=0.1)
    strides = {"strideH": 2, "strideW": 2}
    net.operator("TRANSPOSE_CONV", inputs, [output], table="TransposeConvOptions", **strides)
    return net.conv(output, 2)


def filtered(net: Layers, source: int) -> int:
    """A filter with a state, a variable, and two scratch buffers of its kernel."""
    width = net.shape(source)[1]
    inputs = [
        source,
        net.tensor([32, width], scale=0.01, data=net.random.integers(-99, 99, (32, width))),
        net.tensor([32, 6], "int16", 0.001, data=net.random.integers(-99, 99, (32, 6))),
        net.tensor([16], "int32", 0.00001, data=np.zeros(16)),
        net.tensor([1, 32 * 6], "int16", 0.01),
    ]
    net.tensors[-1].isVariable = True
    output = net.tensor([1, 16], scale=0.01)
    options = {"rank": 2, "fusedActivationFunction": 1}
    net.operator("SVDF", inputs, [output], table="SVDFOptions", **options)
    return output


def network(path: Path, build: Callable[[Layers, int], int], *shape: int) -> Path:
    """Write a network of one input."""
    net = Layers()
    source = net.tensor(shape or (1, 16, 16, 4), scale=0.1)
    return net.write(path, [source], [build(net, source)])


def controlled(path: Path, kind: str) -> Path:
    """Write a network with an operator that runs two other subgraphs; a loop turns once."""
    net, shape = Layers(), (1, 8, 8, 4)
    source, flag = net.tensor(shape, scale=0.1), net.tensor([1], "bool")
    before, is_loop = net.conv(source, 4), kind == "WHILE"
    names = ("condSubgraphIndex", "bodySubgraphIndex")
    names = names if is_loop else ("thenSubgraphIndex", "elseSubgraphIndex")
    output = [*([net.tensor([1], "bool")] if is_loop else []), net.tensor(shape, scale=0.1)]
    options = {"table": "WhileOptions" if is_loop else "IfOptions", names[0]: 1, names[1]: 2}
    net.operator(kind, [flag, before], output, **options)
    result = net.add(net.conv(output[-1], 4), before)
    for name in names:
        one = Layers(net)
        flags = [one.tensor([1], "bool")] if is_loop else []
        data = one.tensor(shape, scale=0.1)
        stop = [one.tensor([1], "bool", data=[False])] if is_loop else []
        last = [*stop, one.conv(one.conv(data, 8), 4, kernel=3)]
        one.write(path, [*flags, data], flags if name == "condSubgraphIndex" else last)
    return net.write(path, [source, flag], [result])


def values(content: bytes) -> list[Any]:
    """Return random values for the inputs; a condition is true."""
    graph = schema().ModelT.InitFromPackedBuf(content, 0).subgraphs[0]
    random = np.random.default_rng(0)
    return [
        np.ones(1, np.bool_) if len(one.shape) == 1 else random.integers(-128, 128, one.shape, "i1")
        for one in (graph.tensors[index] for index in graph.inputs)
    ]


def run_micro(content: bytes) -> tuple[list[Any], int, int]:
    """Run a model twice; return its last outputs, and the bytes of head and tail."""
    runtime = pytest.importorskip("tflite_micro", reason="pip install tflite-micro").runtime
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 20)
    for _ in range(2):
        for index, given in enumerate(values(content)):
            interpreter.set_input(given, index)
        interpreter.invoke()
    with tempfile.TemporaryFile() as file:
        # The library writes to the descriptor itself.
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        interpreter.print_allocations()
        os.dup2(kept, 2)
        os.close(kept)
        file.seek(0)
        text = file.read().decode()
    head, tail = (int(re.findall(rf"{part} (\d+) bytes", text)[0]) for part in ("head", "tail"))
    return [interpreter.get_output(0)], head, tail


def run_reference(content: bytes) -> list[Any]:
    """Run a model twice with LiteRT's reference kernels; return its last outputs."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    for _ in range(2):
        for detail, given in zip(interpreter.get_input_details(), values(content), strict=True):
            interpreter.set_tensor(detail["index"], given)
        interpreter.invoke()
    return [interpreter.get_tensor(one["index"]) for one in interpreter.get_output_details()]


CASES: dict[str, tuple[int, dict[str, int], Callable[[Path], Path]]] = {
    "autoenc_int8": (768, {}, lambda path: SHARED / "autoenc_int8.tflite"),
    "resnet8_int8": (49152, {}, lambda path: SHARED / "resnet8_int8.tflite"),
    "residual": (8192, {}, lambda path: network(path, residual)),
    "dense": (10240, {}, lambda path: network(path, dense)),
    "scratch": (21504, {"TRANSPOSE_CONV": 16384}, lambda path: network(path, upsampled)),
    "variable": (256, {"0": 32 * 4 + 16 * 4}, lambda path: network(path, filtered, 1, 40)),
    "if": (1296, {}, lambda path: controlled(path, "IF")),
    "while": (1328, {}, lambda path: controlled(path, "WHILE")),
}
"""The bytes of each, and what its kernels claim."""


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_tensorflow_lite_micro_runs_a_plan_in_the_bytes_that_it_says(
    name: str, tmp_path: Path
) -> None:
    height, workspace, build = CASES[name]
    file, output = build(tmp_path / "in.tflite"), tmp_path / "out.tflite"
    if not file.exists():
        pytest.skip(f"not there: {file.name} of the shared data")
    plan = plan_arena(file, output, workspace=workspace)
    assert (plan.status, plan.height) == ("optimal", height)

    expected, head, tail = run_micro(file.read_bytes())
    outputs, planned_head, planned_tail = run_micro(output.read_bytes())
    print(f"{name}: head of {head} B, with the plan {planned_head} B")
    assert (planned_head, planned_tail) == (height, tail)
    assert planned_head < head if name in ("residual", "dense") else planned_head <= head
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(outputs, run_reference(output.read_bytes()))


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
    file, output = network(tmp_path / "a.tflite", residual), tmp_path / "b.tflite"
    ended = run("pack", file, "-o", output, "--json")
    assert (ended.code, ended.json["height"], ended.json["gap"]) == (0, 8192, 0.0)
    planned, content = read_tflite(output)
    assert planned.metadata.pop().name == METADATA
    plan = planned.buffers.pop().data.view("<i4")
    # No more and no less: https://github.com/tensorflow/tflite-micro/pull/3649.
    assert [*plan[:3]] == [0, 1, len(planned.subgraphs[0].tensors)] == [0, 1, len(plan) - 3]
    assert plan[3:][plan[3:] >= 0].tolist() == list(ended.json["offsets"].values())
    planned.metadata = None
    assert as_data(planned) == as_data(read_tflite(file)[0])

    flat, start = schema().Model.GetRootAs(content), np.frombuffer(content, "u1").ctypes.data
    buffers = [flat.Buffers(index) for index in range(flat.BuffersLength())]
    data = [one.DataAsNumpy() for one in buffers if one.DataLength()]
    assert {(one.ctypes.data - start) % 16 for one in data} == {0}

    assert run("pack", output, "-o", output).code == 0
    assert output.read_bytes() == content


def test_what_cannot_be_planned_is_said(run: Run, tmp_path: Path) -> None:
    file, output = network(tmp_path / "a.tflite", residual), tmp_path / "b.tflite"
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
    open_batch = written(EXACT["open batch"], tmp_path)
    said = "has shape [1, 1] in the file, but [1, 24] when it runs"
    assert said in " ".join(run("pack", open_batch).err.split())

    file.write_bytes(b"id,lower,upper,size")
    assert "is not a TensorFlow Lite model" in run("pack", file).err

    # TensorFlow Lite Micro of October 2026 looks up variables of all subgraphs in the first.
    net = Layers()
    source, *_ = (net.tensor([1, 40], scale=0.1) for _ in range(5))
    net.operator("CALL_ONCE", [], [], table="CallOnceOptions", initSubgraphIndex=1)
    called = Layers(net)
    called.write(file, [], [filtered(called, called.tensor([1, 40], scale=0.1))])
    net.write(file, [source], [source])
    assert "is a variable, and tensor 4 of subgraph 0 is planned" in run("pack", file).err
    assert not output.exists()


def test_broken_files_are_refused_or_planned(tmp_path: Path) -> None:
    random, file = Random(0), tmp_path / "a.tflite"
    sound, planned = controlled(file, "IF").read_bytes(), 0
    for attempt in range(200):
        broken = bytearray(sound)
        for _ in range(random.choice((1, 3, 20))):
            broken[random.randrange(len(broken))] = random.randrange(256)
        file.write_bytes(broken[: random.randrange(len(broken)) if attempt % 4 == 0 else None])
        with suppress(SpmilpError):
            plan_arena(file, tmp_path / "b.tflite")
            planned += 1
    assert 0 < planned < 150
