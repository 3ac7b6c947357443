"""Shortest paths through the links of a machine, and the machine as a graph."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import networkx as nx

from spmilp.machine.machine import Link, Machine
from spmilp.units import Cycles, LinkIdx

Node: TypeAlias = tuple[str, bool]
"""A node of the graph of links; an end is two nodes, one to leave and one (``True``) to enter."""


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """Links one after another; of two paths, the lesser one is preferred.

    Parameters
    ----------
    latency
        Sum over the links, in cycles.
    hops
        Number of links.
    """

    latency: Cycles
    hops: int
    links: tuple[LinkIdx, ...]

    def then(self, *others: "Path") -> "Path":
        """Return this path, followed by others that begin where it ends."""
        parts = (self, *others)
        return Path(
            sum(part.latency for part in parts),
            sum(part.hops for part in parts),
            tuple(link for part in parts for link in part.links),
        )


STAY = Path(0, 0, ())
"""The path from a node to itself."""


class ShortestPaths:
    """Least latency, then fewest links, then the least sequence of link indices.

    Parameters
    ----------
    links
        Those that paths may use; of links side by side, the one of least latency, then index.
    ends
        Nodes at which a path may begin or end, but through which none passes.
    """

    def __init__(self, links: Iterable[Link], ends: frozenset[str]) -> None:
        best: dict[tuple[str, str], Link] = {}
        for link in sorted(links, key=lambda link: (link.latency, link.index)):
            best.setdefault((link.source, link.target), link)
        self._ends = ends
        self._graph = nx.DiGraph()
        # One integer orders paths by latency and then by links: no path has as many links as
        # there are links.
        scale = len(best) + 1
        for link in best.values():
            self._graph.add_edge(
                self._leaving(link.source),
                self._entering(link.target),
                cost=link.latency * scale + 1,
                link=link,
            )
        self._reversed = self._graph.reverse()
        self._distances: dict[Node, dict[Node, int]] = {}

    def between(self, source: str, target: str) -> Path | None:
        """Return the path from one node to another, ``None`` if there is none."""
        here, goal = self._leaving(source), self._entering(target)
        remaining = self._distances_to(goal)
        if here not in remaining:
            return None
        latency, links = 0, []
        while here != goal:
            here, link = min(self._steps_towards(here, remaining), key=lambda step: step[1].index)
            latency += link.latency
            links.append(link.index)
        return Path(latency, len(links), tuple(links))

    def reached_from(self, source: str) -> tuple[str, ...]:
        """Return the ends to which there is a path, sorted by name."""
        here = self._leaving(source)
        if here not in self._graph:
            return ()
        found = nx.descendants(self._graph, here)
        return tuple(sorted(name for name, is_end in found if is_end))

    def reaching(self, target: str) -> tuple[str, ...]:
        """Return the ends from which there is a path, sorted by name."""
        goal = self._entering(target)
        if goal not in self._graph:
            return ()
        found = nx.ancestors(self._graph, goal)
        return tuple(sorted(name for name, _ in found if name in self._ends))

    def _steps_towards(self, here: Node, remaining: dict[Node, int]) -> Iterator[tuple[Node, Link]]:
        for there, edge in self._graph[here].items():
            if there in remaining and remaining[there] + edge["cost"] == remaining[here]:
                yield there, edge["link"]

    def _distances_to(self, goal: Node) -> dict[Node, int]:
        if goal not in self._distances:
            found: dict[Node, int] = {}
            if goal in self._reversed:
                found = nx.single_source_dijkstra_path_length(self._reversed, goal, weight="cost")
            self._distances[goal] = found
        return self._distances[goal]

    def _leaving(self, name: str) -> Node:
        return name, False

    def _entering(self, name: str) -> Node:
        return name, name in self._ends


def as_graph(machine: Machine) -> Any:
    """Return the machine as a ``networkx.DiGraph`` of memories and routers.

    Nodes are names with the attribute ``kind`` (``router`` or the kind of memory), memories have
    ``index``, routers on a grid ``position``. Edges have ``link`` (index), ``rate`` in bytes per
    cycle and ``latency`` in cycles. Of links side by side it has the one that routes use.
    """
    graph = nx.DiGraph(name=machine.name)
    for memory in machine.memories:
        graph.add_node(memory.name, kind=memory.kind.value, index=memory.index)
    positions = dict(machine.positions)
    for link in sorted(machine.links, key=lambda link: (-link.latency, -link.index)):
        for name in (link.source, link.target):
            if name not in graph:
                graph.add_node(name, kind="router")
            if name in positions:
                graph.nodes[name]["position"] = positions[name]
        graph.add_edge(
            link.source, link.target, link=link.index, rate=link.rate, latency=link.latency
        )
    return graph
