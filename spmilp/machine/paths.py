"""Paths through the links of a machine: the shortest, or along x and then y; and its graph."""

from collections.abc import Iterable, Iterator, Sequence
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


Position: TypeAlias = tuple[int, int]


class XyPaths:
    """Paths along x and then along y over the routers that have a position.

    Raises
    ------
    ValueError
        If two routers share a position.
    """

    def __init__(self, machine: Machine) -> None:
        self._position = dict(machine.positions)
        taken = set(self._position.values())
        if len(taken) < len(machine.positions):
            raise ValueError(f"machine {machine.name}: two routers share a position")
        self._columns = _span(x for x, _ in taken)
        self._rows = _span(y for _, y in taken)
        on_grid = [link for link in machine.links if self._lies_on_grid(link)]
        self._step: dict[tuple[Position, Position], Link] = {}
        for link in sorted(on_grid, key=lambda link: (link.latency, link.index)):
            ends = self._position[link.source], self._position[link.target]
            self._step.setdefault(ends, link)
        names = frozenset(memory.name for memory in machine.memories)
        self._access = ShortestPaths(
            (link for link in machine.links if not self._lies_on_grid(link)),
            names | frozenset(self._position),
        )
        self._onto: dict[str, tuple[tuple[str, Path], ...]] = {}
        self._off: dict[str, tuple[tuple[str, Path], ...]] = {}
        self._walked: dict[tuple[int, int, int, int], Path | None] = {}

    def between(self, source: str, target: str) -> Path | None:
        """Return the least path from one memory to another, ``None`` if there is none."""
        beside = self._access.between(source, target)
        candidates: list[tuple[Path, ...]] = [] if beside is None else [(beside,)]
        for first, onto in self._ways_onto_the_grid(source):
            for last, off in self._ways_off_the_grid(target):
                across = self._across(first, last)
                if across is not None:
                    candidates.append((onto, *across, off))
        # Of many candidates few are equally short, and only those need be written out.
        lengths = [_length(parts) for parts in candidates]
        least = min(lengths, default=None)
        shortest = (c for c, length in zip(candidates, lengths, strict=True) if length == least)
        return min((STAY.then(*parts) for parts in shortest), default=None)

    def _ways_onto_the_grid(self, memory: str) -> tuple[tuple[str, Path], ...]:
        if memory not in self._onto:
            routers = (n for n in self._access.reached_from(memory) if n in self._position)
            ways = ((router, self._access.between(memory, router)) for router in routers)
            self._onto[memory] = tuple((router, path) for router, path in ways if path)
        return self._onto[memory]

    def _ways_off_the_grid(self, memory: str) -> tuple[tuple[str, Path], ...]:
        if memory not in self._off:
            routers = (n for n in self._access.reaching(memory) if n in self._position)
            ways = ((router, self._access.between(router, memory)) for router in routers)
            self._off[memory] = tuple((router, path) for router, path in ways if path)
        return self._off[memory]

    def _across(self, first: str, last: str) -> tuple[Path, Path] | None:
        """Walk along x and then along y from one router to another."""
        (x, y), (goal_x, goal_y) = self._position[first], self._position[last]
        along_x = self._along(0, y, x, goal_x)
        along_y = self._along(1, goal_x, y, goal_y)
        return (along_x, along_y) if along_x and along_y else None

    def _along(self, axis: int, line: int, start: int, goal: int) -> Path | None:
        """Walk along one axis: the shorter way, the increasing one when both are equal.

        Parameters
        ----------
        line
            The coordinate on the other axis.
        """
        walk = axis, line, start, goal
        if walk not in self._walked:
            self._walked[walk] = self._walk(*walk)
        return self._walked[walk]

    def _walk(self, axis: int, line: int, start: int, goal: int) -> Path | None:
        first, count = self._rows if axis else self._columns
        ahead = (goal - start) % count
        for steps, direction in sorted([(ahead, 1), ((-ahead) % count, -1)], key=_fewer_steps):
            here, links = start, []
            for _ in range(steps):
                there = first + (here + direction - first) % count
                ends = ((line, here), (line, there)) if axis else ((here, line), (there, line))
                link = self._step.get(ends)
                if link is None:
                    break
                links.append(link)
                here = there
            else:
                latency = sum(link.latency for link in links)
                return Path(latency, len(links), tuple(link.index for link in links))
        return None

    def _lies_on_grid(self, link: Link) -> bool:
        return link.source in self._position and link.target in self._position


def _span(coordinates: Iterable[int]) -> tuple[int, int]:
    """Return the least coordinate and the number of positions up to the greatest."""
    found = list(coordinates)
    return (min(found), max(found) - min(found) + 1) if found else (0, 1)


def _length(parts: Sequence[Path]) -> tuple[Cycles, int]:
    """Return latency and hops of paths one after another."""
    return sum(part.latency for part in parts), sum(part.hops for part in parts)


def _fewer_steps(way: tuple[int, int]) -> tuple[int, int]:
    steps, direction = way
    return steps, -direction
