"""Partitions of an address space: one for each colour of an interference graph."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import networkx as nx

Range = Collection[Hashable]
"""The points at which a value takes memory."""


@dataclass(slots=True, kw_only=True)
class Partition:
    """Place for values of which no two are live at one point.

    Parameters
    ----------
    size
        That of the largest of them, in the unit of the values.
    values
        By number.
    points
        At which one of them is live.
    """

    size: int = 0
    values: list[int] = field(default_factory=list)
    points: set[Hashable] = field(default_factory=set)

    def add(self, value: int, size: int, points: Range) -> None:
        """Put a value into it, which makes it as large as that."""
        self.size = max(self.size, size)
        self.values.append(value)
        self.points.update(points)


def interference_graph(ranges: Sequence[Range]) -> "nx.Graph[int]":
    """Return a graph of all values in which an edge joins two that are live at one point."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(ranges)))
    live: dict[Hashable, list[int]] = defaultdict(list)
    for value, points in enumerate(ranges):
        for point in points:
            live[point].append(value)
    for together in {tuple(some) for some in live.values()}:
        graph.add_edges_from(combinations(together, 2))
    return graph


def coloured(ranges: Sequence[Range], sizes: Sequence[int]) -> list[Partition]:
    """Return the partitions of a greedy colouring, values by decreasing size."""

    def by_size(graph: "nx.Graph[int]", colours: Any) -> Iterator[int]:
        return iter(sorted(graph, key=lambda value: (-sizes[value], value)))

    colours = nx.greedy_color(interference_graph(ranges), by_size)
    partitions = [Partition() for _ in range(1 + max(colours.values(), default=-1))]
    for value, colour in sorted(colours.items()):
        partitions[colour].add(value, sizes[value], ranges[value])
    return partitions


def height(partitions: Iterable[Partition]) -> int:
    """Return what all partitions take beside each other."""
    return sum(one.size for one in partitions)


class Remainder:
    """What is left of an address space beside its partitions; promoted values share it likewise."""

    def __init__(self, size: int | None) -> None:
        self._left = size
        self.partitions: list[Partition] = []

    def takes(self, value: int, size: int, points: Range) -> bool:
        """Give a value its place, if there is room, and say whether there was."""
        able = [one for one in self.partitions if one.points.isdisjoint(points)]
        chosen = min(able, key=lambda one: (max(0, size - one.size), one.size), default=Partition())
        growth = max(0, size - chosen.size)
        if self._left is not None and growth > self._left:
            return False
        if not chosen.values:
            self.partitions.append(chosen)
        chosen.add(value, size, points)
        if self._left is not None:
            self._left -= growth
        return True
