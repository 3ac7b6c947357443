"""Immediate post-dominators: operators that a result has to pass, views looked through."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.reshape import keeps_boxes
from spmilp.frontend.outputs import is_view
from spmilp.frontend.unfused import UnfusedNetwork


@dataclass(frozen=True, slots=True)
class Flow:
    """Readers of the results of the operators that compute.

    Parameters
    ----------
    operators
        Those that are no views, in topological order; positions in it stand for them.
    readers
        For each, the positions of the operators that read its result, directly or through views
        that only add or drop axes of length 1; ``None`` when it must be in memory because it is an
        output or because another view shows it.
    dominator
        For each, the first operator that all paths from its result go through; ``None`` if none.
    origin
        The operator whose result a tensor is, directly or seen through such views.
    """

    operators: tuple[Operator, ...]
    readers: tuple[tuple[int, ...] | None, ...]
    dominator: tuple[int | None, ...]
    origin: Mapping[str, int]

    def between(self, first: int, last: int) -> tuple[int, ...]:
        """Return the operators on the paths from ``first`` to its dominator ``last``, and it."""
        found = {last}
        waiting = list(self.readers[first] or ())
        while waiting:
            position = waiting.pop()
            if position not in found:
                found.add(position)
                waiting.extend(self.readers[position] or ())
        return tuple(sorted(found))


def flow_of(network: UnfusedNetwork) -> Flow:
    """Return the edges from writers to readers of a network."""
    operators = tuple(operator for operator in network.operators if not is_view(operator))
    positions = {operator.output: at for at, operator in enumerate(operators)}
    consumers = network.consumers()
    readers: list[tuple[int, ...] | None] = []
    for operator in operators:
        found = [*_readers(network, consumers, operator.output)]
        escapes = any(reader is None for reader in found)
        known = sorted({positions[reader.output] for reader in found if reader is not None})
        readers.append(None if escapes else tuple(known))
    origin = dict(positions)
    for operator in network.operators:
        if (
            is_view(operator)
            and operator.inputs[0] in origin
            and keeps_boxes(operator, network.tensors)
        ):
            origin[operator.output] = origin[operator.inputs[0]]
    return Flow(operators, tuple(readers), _dominators(readers), origin)


def _readers(
    network: UnfusedNetwork, consumers: dict[str, list[Operator]], name: str
) -> Iterator[Operator | None]:
    """Yield the operators that read a tensor, ``None`` for a reader that needs it in memory."""
    if name in network.outputs:
        yield None
    for reader in consumers.get(name, []):
        if not is_view(reader):
            yield reader
        elif keeps_boxes(reader, network.tensors):
            yield from _readers(network, consumers, reader.output)
        else:
            yield None


def _dominators(readers: list[tuple[int, ...] | None]) -> tuple[int | None, ...]:
    """Return immediate post-dominators: the nearest common one of all readers (a tree)."""
    parent: list[int | None] = [None] * len(readers)
    depth = [0] * len(readers)
    for position in reversed(range(len(readers))):
        common: int | None = None
        for at, reader in enumerate(readers[position] or ()):
            common = reader if at == 0 else _common(common, reader, parent, depth)
        parent[position] = common
        depth[position] = 0 if common is None else depth[common] + 1
    return tuple(parent)


def _common(a: int | None, b: int | None, parent: list[int | None], depth: list[int]) -> int | None:
    while a is not None and b is not None and a != b:
        if depth[a] >= depth[b]:
            a = parent[a]
        else:
            b = parent[b]
    return a if a == b else None
