"""Networks of one operator, with inputs and what they give: ONNX's own cases, and random ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from operators.operator_sets import onnx_s_own, with_constants
from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.frontend.operators.registry import known_kinds
from tests.frontend.running import Array, onnxruntime_outputs, saved


@dataclass(frozen=True)
class Sample:
    """A network, its inputs, and its one output."""

    name: str
    network: Network
    feeds: Mapping[str, Array]
    expected: Array
    rtol: float = 1e-5


NOT_COMPARED = (
    # Values without shape; sums that ONNX's reference rounds after each step, in halves.
    *("test_cast_", "test_attention_"),
    # Downsampled along an axis that becomes one element long: onnxruntime begins at 0, as we do.
    *("test_resize_downsample_scales_linear_align_corners",),
    *("test_resize_downsample_scales_cubic_align_corners",),
)
"""Beginnings of names of cases."""


def onnx_cases(folder: Path, each: int | None = None) -> Iterator[Sample]:
    """Yield those of ONNX's cases that the front end reads.

    With ``each``, at most so many of each operator that it computes as it is. Their first output is
    compared. Where all inputs are given at run time, and that is refused, all but the first become
    constants.
    """
    found: dict[str, int] = {}
    for case, given, outputs in onnx_s_own():
        kind, names = case.model.graph.node[0].op_type, list(given)
        (_, expected), *_ = outputs.items()
        # Expanded functions are many of the operators that the other cases have.
        if "_expanded" in case.name or case.name.startswith(NOT_COMPARED) or expected.size == 0:
            continue
        if each and (found.get(kind, 0) == each or kind not in known_kinds()):
            continue
        for at_run_time in (names, names[:1]):
            feeds = {name: given[name] for name in at_run_time}
            constants = {name: array for name, array in given.items() if name not in feeds}
            model = with_constants(case.model, constants)
            del model.graph.output[1:]
            try:
                network = load_network(saved(folder, model))
            except SpmilpError:
                continue
            yield Sample(case.name, network, feeds, expected, max(case.rtol, 1e-5))
            found[kind] = found.get(kind, 0) + 1
            break


def random_window(numbers: np.random.Generator) -> onnx.ModelProto:
    """Return a convolution or pooling with any strides, dilations, pads and groups."""
    kind = str(numbers.choice(["Conv", "Conv", "ConvTranspose", "MaxPool", "AveragePool"]))
    rank, group = int(numbers.integers(1, 4)), int(numbers.integers(1, 4))
    kernel, strides, room = (numbers.integers(1, 4, rank).tolist() for _ in range(3))
    dilations = numbers.integers(1, 3, rank).tolist()
    pads = [int(numbers.integers(0, k)) for k in (*kernel, *kernel)]
    spatial = [(k - 1) * d + more + 1 for k, d, more in zip(kernel, dilations, room, strict=True)]
    given = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    if kind.endswith("Pool"):
        given["ceil_mode"] = int(numbers.integers(0, 2))
        return model_of(kind, {"x": random(numbers, 2, 3, *spatial)}, {}, **given)
    depth, width = numbers.integers(1, 4, 2).tolist()
    channels = (group * depth, width) if kind == "ConvTranspose" else (group * width, depth)
    constants = {"w": random(numbers, *channels, *kernel), "b": random(numbers, group * width)}
    return model_of(
        kind, {"x": random(numbers, 2, group * depth, *spatial)}, constants, group=group, **given
    )


def random_slice(numbers: np.random.Generator) -> onnx.ModelProto:
    """Return a Slice with any starts, ends and steps, backwards too, that leave something."""
    shape, steps = numbers.integers(1, 8, 3), numbers.choice([1, 2, 3, -1, -2], 3)
    ends = np.sort(numbers.integers(0, shape, (2, 3)), axis=0)
    starts = np.where(steps > 0, ends[0], ends[1])
    stops = np.where(steps > 0, ends[1] + 1, ends[0] - 1)
    stops = np.where(stops < 0, -shape - 1, stops)
    constants = {"s": starts, "e": stops, "a": np.arange(3), "t": steps}
    return model_of("Slice", {"x": random(numbers, *shape)}, constants)


def random_pad(numbers: np.random.Generator) -> onnx.ModelProto:
    """Return a Pad of any mode; pieces may be cut off."""
    mode, shape = str(numbers.choice(["constant", "reflect", "edge", "wrap"])), [5, 3, 4]
    pads = numbers.integers(-1 if mode == "constant" else 0, 3, 6)
    constants = {"p": pads, "v": np.float32(0.25)}
    return model_of("Pad", {"x": random(numbers, *shape)}, constants, mode=mode)


def random_reshape(numbers: np.random.Generator) -> onnx.ModelProto:
    """Return a Reshape between two factorisations of one number of elements."""
    factors = numbers.choice([1, 2, 2, 3, 4], 5).tolist()

    def grouped() -> list[int]:
        cuts = sorted({0, 5, *numbers.integers(0, 6, 3).tolist()})
        return [prod(factors[a:b]) for a, b in pairwise(cuts)]

    return model_of("Reshape", {"x": random(numbers, *grouped())}, {"s": np.array(grouped()[::-1])})


def random(numbers: np.random.Generator, *shape: int) -> Array:
    return numbers.standard_normal(shape).astype(np.float32)


def model_of(
    kind: str, feeds: Mapping[str, Array], constants: Mapping[str, Array], **attributes: object
) -> onnx.ModelProto:
    """Return a model of one node; its inputs have random values."""
    node = helper.make_node(kind, [*feeds, *constants], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        kind,
        [helper.make_tensor_value_info(name, 1, array.shape) for name, array in feeds.items()],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


RANDOM = (random_window, random_slice, random_pad, random_reshape)


def random_cases(folder: Path, count: int) -> Iterator[Sample]:
    """Yield random operators, and what onnxruntime says of them."""
    for make in RANDOM:
        for seed in range(count):
            numbers = np.random.default_rng(seed)
            model = make(numbers)
            shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
            feeds = {"x": random(numbers, *shape)}
            expected = onnxruntime_outputs(model, feeds)["y"]
            network = load_network(saved(folder, model))
            yield Sample(f"{make.__name__} {seed}", network, feeds, expected)
