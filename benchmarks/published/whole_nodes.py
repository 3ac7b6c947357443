"""OnSRAM's view of a network: whole nodes of the unfused graph, one after another, on one core.

The time of a node is the greatest of its arithmetic, its bytes from and to DRAM, and all of its
bytes from and to the scratchpad; tiles, prefetches and what streams through the scratchpad are
taken to be ideal, so only what is pinned takes room.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import onnx
from onnx import ModelProto, NodeProto

from spmilp.policies.structures import (
    Overwrite,
    Pins,
    Step,
    Structure,
    Structures,
    breadth_or_depth_first,
    by_activations,
)
from spmilp.units import Bytes, Cycles

ITEM = 2
"""Bytes of an element."""
DRAM_RATE, SPM_RATE = 32, 384
"""Bytes in a cycle of a nanosecond, from or to DRAM and the scratchpad."""
DENSE_RATE, SIMD_RATE = 3000, 375
"""Operations in a cycle of the matrix array and of the other one."""
SPM_BYTES = 2 << 20
DENSE = ("Conv", "Gemm", "MatMul")
VIEWS = ("Dropout", "Reshape", "Flatten", "Identity", "Squeeze", "Unsqueeze")
WINDOWS = ("MaxPool", "AveragePool", "LRN")
PER_ELEMENT = {"BatchNormalization": 2, "Softmax": 3, "Concat": 0, "Transpose": 0}
"""Operations for each element of the result; 1 for all others that are not in a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: the activations that it reads and the one that it writes.

    Parameters
    ----------
    work
        Of its arithmetic, in cycles.
    weights
        Bytes of constants.
    is_elementwise
        Whether a result may take the place of an operand of its size.
    """

    name: str
    reads: tuple[str, ...]
    writes: str
    work: Cycles
    weights: Bytes
    is_elementwise: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNodes:
    """A network in topological order; ``sizes`` are the bytes of each activation."""

    name: str
    nodes: tuple[Node, ...]
    sizes: Mapping[str, Bytes]
    inputs: frozenset[str]
    outputs: frozenset[str]


def whole_nodes(model: ModelProto) -> WholeNodes:
    """Return the nodes of a model; biases are nodes of their own, views are none."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    shapes = {
        one.name: tuple(d.dim_value for d in one.type.tensor_type.shape.dim) for one in values
    }
    shapes.update({one.name: tuple(one.dims) for one in graph.initializer})
    constants = {one.name for one in graph.initializer}
    same: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.node:
        if node.op_type in ("Constant", "ConstantOfShape"):
            constants.update(node.output)
        elif node.op_type in VIEWS and node.input[0] in constants:
            constants.add(node.output[0])
        elif node.op_type in VIEWS:
            same[node.output[0]] = same.get(node.input[0], node.input[0])
        else:
            nodes += _nodes_of(node, shapes, constants, same)
    written = {node.writes for node in nodes}
    read = {name for node in nodes for name in node.reads}
    sizes = {
        name: ITEM * prod(shapes[name.removesuffix(UNBIASED)]) for name in sorted(read | written)
    }
    return WholeNodes(
        name=graph.name,
        nodes=tuple(nodes),
        sizes=sizes,
        inputs=frozenset(read - written),
        outputs=frozenset(same.get(one.name, one.name) for one in graph.output),
    )


UNBIASED = " without its bias"


def _nodes_of(
    node: NodeProto,
    shapes: Mapping[str, tuple[int, ...]],
    constants: set[str],
    same: Mapping[str, str],
) -> Iterator[Node]:
    """Yield a node, and one that adds its bias."""
    given = [name for name in node.input if name]
    constant = [name for name in given if name in constants]
    reads = tuple(dict.fromkeys(same.get(name, name) for name in given if name not in constants))
    output = node.output[0]
    elements = prod(shapes[output])
    if node.op_type not in DENSE:
        work = -(-elements * _operations(node) // SIMD_RATE)
        weights = ITEM * sum(prod(shapes[name]) for name in constant)
        yield Node(
            name=node.name or output,
            reads=reads,
            writes=output,
            work=work,
            weights=weights,
            is_elementwise=node.op_type not in WINDOWS,
        )
        return
    weight = shapes[given[1]]
    products = elements * (prod(weight) // weight[_result_axis(node)])
    bias = given[2:]
    yield Node(
        name=node.name or output,
        reads=reads,
        writes=output + UNBIASED if bias else output,
        work=-(-2 * products // DENSE_RATE),
        weights=ITEM * prod(weight),
        is_elementwise=False,
    )
    if bias:
        yield Node(
            name=f"bias of {node.name or output}",
            reads=(output + UNBIASED,),
            writes=output,
            work=-(-elements // SIMD_RATE),
            weights=ITEM * prod(shapes[bias[0]]),
        )


def _result_axis(node: NodeProto) -> int:
    """Return the axis of the weights along which results lie."""
    if node.op_type == "Conv":
        return 0
    transposed = any(one.name == "transB" and one.i for one in node.attribute)
    return 0 if node.op_type == "Gemm" and transposed else -1


def _operations(node: NodeProto) -> int:
    """Return the operations for each element of the result."""
    attributes = {one.name: one for one in node.attribute}
    if node.op_type == "LRN":
        return attributes["size"].i + 3
    if "kernel_shape" in attributes:
        return prod(attributes["kernel_shape"].ints)
    return PER_ELEMENT.get(node.op_type, max(1, len(node.input) - 1))


def structures_of(network: WholeNodes, capacity: Bytes | None) -> Structures:
    """Return what OnSRAM may pin, in its order of the nodes."""
    nodes = [network.nodes[index] for index in _order(network)]
    uses: dict[str, list[int]] = defaultdict(list)
    for number, node in enumerate(nodes):
        for name in (*node.reads, node.writes):
            uses[name].append(number)
    inner = [name for name in uses if name not in network.inputs | network.outputs]
    index = {name: number for number, name in enumerate(inner)}
    structures = [
        _structure(index[name], network.sizes[name], sorted(set(uses[name]))) for name in inner
    ]
    overwrites: list[list[Overwrite]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for position, name in enumerate(node.reads if node.is_elementwise else ()):
            is_same = network.sizes[name] == network.sizes[node.writes]
            if is_same and {name, node.writes} <= index.keys() and uses[name][-1] == number:
                both = frozenset((index[name], index[node.writes]))
                size = network.sizes[name]
                one = Overwrite(position, index[node.writes], size, None, both)
                overwrites[number].append(one)
    steps = [_step(n, network, overwrites[number]) for number, n in enumerate(_order(network))]
    return Structures(steps, structures, [capacity] * len(steps))


def _order(network: WholeNodes) -> list[int]:
    writer = {node.writes: number for number, node in enumerate(network.nodes)}
    before = [[writer[name] for name in node.reads if name in writer] for node in network.nodes]
    classes = []
    for node in network.nodes:
        moved = sum(network.sizes[name] for name in (*node.reads, node.writes))
        times = (_cycles(node.weights), _cycles(moved))
        classes.append(by_activations(node.work, *times))
    return breadth_or_depth_first(before, classes)


def _step(number: int, network: WholeNodes, overwrites: Iterable[Overwrite]) -> Step:
    node = network.nodes[number]
    return Step(
        task=number,
        memory=0,
        work=max(node.work, -(-sum(_moved(node, network)) // SPM_RATE)),
        overwrites=tuple(overwrites),
    )


def _moved(node: Node, network: WholeNodes) -> tuple[Bytes, ...]:
    return (node.weights, *(network.sizes[name] for name in (*node.reads, node.writes)))


def node_time(network: WholeNodes, structures: Structures, pins: Pins) -> Cycles:
    """Return the sum over all nodes of their work or their transfers', the greater."""
    moving = [
        sum(map(_cycles, _moved(network.nodes[step.task], network))) for step in structures.steps
    ]
    for one in pins:
        for step, cycles in structures.all[one].moving.items():
            moving[step] -= cycles
    return sum(max(step.work, own) for step, own in zip(structures.steps, moving, strict=True))


def _cycles(size: Bytes) -> Cycles:
    return -(-size // DRAM_RATE)


def _structure(index: int, size: Bytes, uses: list[int]) -> Structure:
    cycles = _cycles(size)
    return Structure(
        index=index,
        buffer=index,
        memory=0,
        uses=tuple(uses),
        extra=dict.fromkeys(range(uses[0], uses[-1] + 1), size),
        moving=dict.fromkeys(uses, cycles),
        saved_bytes=size * len(uses),
    )
