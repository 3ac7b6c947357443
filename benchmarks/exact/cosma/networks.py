"""Networks for COSMA's setting: random cells, and the activations of ONNX models."""

from math import prod
from random import Random

from spmilp.frontend.find import find_model
from spmilp.frontend.graph import Network as Graph
from spmilp.frontend.graph import Operator as Node
from spmilp.frontend.load import load_network
from spmilp.policies.cosma import Network, Operator

WINDOW = 4


def random_network(tensors: int, seed: int) -> Network:
    """Return operators that each read one to three of the last tensors, or one that none read."""
    random = Random(seed)
    sizes = tuple(16 * random.randint(8, 64) for _ in range(tensors))
    operators = []
    unread = {0}
    for tensor in range(1, tensors):
        recent = range(max(0, tensor - WINDOW), tensor)
        some = set(random.sample(recent, min(len(recent), random.choice([1, 2, 2, 3]))))
        if unread and min(unread) <= tensor - WINDOW:
            some.add(min(unread))
        unread -= some
        unread.add(tensor)
        operators.append(Operator(name=f"op{tensor}", reads=tuple(sorted(some)), writes=tensor))
    return Network(
        name=f"random {tensors}", sizes=sizes, operators=tuple(operators), outputs=frozenset(unread)
    )


def model_network(model: str, *, fused: bool = True) -> Network:
    """Return the activations of a model with one byte for each element; constants are left out.

    Parameters
    ----------
    model
        A file, or ``onnx:NAME`` for a graph of the ``onnx`` package.
    fused
        Whether an operator is a group of the front end (a convolution with its batch norm and Relu,
        a concatenation with the batch norm and Relu that read it) or a node of the graph.
    """
    graph = load_network(find_model(model), {})
    if fused:
        steps = [(group.name, group.inputs, group.output) for group in graph.groups]
    else:
        nodes = {node.output: node for group in graph.groups for node in group.operators}
        steps = [(node.name, node.inputs, node.output) for node in _in_order(nodes)]
    # Constants, and what is computed from constants alone, are no activations.
    number = {name: index for index, name in enumerate(graph.inputs)}
    operators = []
    for name, inputs, output in steps:
        reads = tuple(sorted({number[each] for each in inputs if each in number}))
        if reads:
            number[output] = len(number)
            operators.append(Operator(name=name, reads=reads, writes=number[output]))
    return Network(
        name=graph.name + ("" if fused else ", unfused"),
        sizes=tuple(_elements(graph, name) for name in number),
        operators=tuple(operators),
        outputs=frozenset(number[name] for name in graph.outputs),
    )


def _in_order(nodes: dict[str, Node]) -> list[Node]:
    """Return nodes, by the name of what they write, so that each comes after what it reads."""
    found: dict[str, Node] = {}
    waiting = list(reversed(nodes.values()))
    while waiting:
        node = waiting[-1]
        missing = [nodes[name] for name in node.inputs if name in nodes and name not in found]
        if missing:
            waiting += reversed(missing)
        else:
            found.setdefault(waiting.pop().output, node)
    return list(found.values())


def _elements(graph: Graph, name: str) -> int:
    return prod(graph.tensors[name].shape)
