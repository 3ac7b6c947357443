"""Large weights that take few bytes in the file: one short random vector, repeated.

A weight of ``n`` elements is a subgraph of constants that yields it whole when it is folded, as
onnxruntime does when it loads the model::

    base[8191] -> Tile -> Slice [start, start + n) -> Reshape -> Mul (one factor) -> the weight

The period is a prime, so that it divides no row of any weight: rows, filters and layers differ.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from random_numbers import RandomNumbers

PERIOD = 8191
BASE_NAME = "weight_base"
SMALLEST = 2048
"""Weights with fewer elements stay as they are."""


def large_weights(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Name the large initializers that are weights of a layer or an embedding, in graph order."""
    sizes = {t.name: int(np.prod(t.dims)) for t in graph.initializer}
    weights: dict[str, None] = {}
    for node in graph.node:
        place = {"Conv": 1, "Gemm": 1, "MatMul": 1, "Gather": 0}.get(node.op_type)
        if place is not None and sizes.get(node.input[place], 0) >= SMALLEST:
            weights[node.input[place]] = None
    return tuple(weights)


def fill(graph: onnx.GraphProto, weights: Sequence[str], seed: int) -> None:
    """Give the weights the values, of unit variance, that ``fold_up`` stores with factor 1."""
    base = _base(seed)
    starts = _starts(graph, weights)
    for tensor in graph.initializer:
        if tensor.name in starts:
            index = starts[tensor.name] + np.arange(np.prod(tensor.dims))
            values = base[index % PERIOD].reshape(tensor.dims)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def fold_up(
    graph: onnx.GraphProto, weights: Sequence[str], factors: Mapping[str, float], seed: int
) -> None:
    """Replace the weights by subgraphs that yield the values of ``fill`` times their factor."""
    starts = _starts(graph, weights)
    tensors = {t.name: t for t in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, NDArray[np.generic]] = {BASE_NAME: _base(seed)}
    for name in weights:
        shape = tuple(tensors[name].dims)
        end = starts[name] + int(np.prod(shape))
        steps: tuple[tuple[str, dict[str, NDArray[np.generic]]], ...] = (
            ("Tile", {"repeats": np.array([-(-end // PERIOD)])}),
            ("Slice", {"starts": np.array([starts[name]]), "ends": np.array([end])}),
            ("Reshape", {"shape": np.array(shape)}),
            ("Mul", {"factor": np.array(factors.get(name, 1.0), dtype=np.float32)}),
        )
        value = BASE_NAME
        for kind, operands in steps:
            constants |= {f"{name}/{role}": array for role, array in operands.items()}
            inputs = [value, *(f"{name}/{role}" for role in operands)]
            value = name if kind == "Mul" else f"{name}/{kind}"
            nodes.append(helper.make_node(kind, inputs, [value], f"{name}/{kind}"))
        graph.initializer.remove(tensors[name])
    graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in constants.items())
    layers = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *layers])


def _base(seed: int) -> NDArray[np.float32]:
    return RandomNumbers(seed).uniform((PERIOD,), -(3**0.5), 3**0.5)


def _starts(graph: onnx.GraphProto, weights: Sequence[str]) -> dict[str, int]:
    """Where each weight begins in the period: where the one before it has ended."""
    sizes = {t.name: int(np.prod(t.dims)) for t in graph.initializer}
    ends = np.cumsum([0, *(sizes[name] for name in weights)])
    return {name: int(end) % PERIOD for name, end in zip(weights, ends, strict=False)}
