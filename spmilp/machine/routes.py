"""Routes between memories, found once for each pair, and what transfers take and hold.

Three rules, named by :class:`~spmilp.machine.machine.Routing`. In each, a path passes through
routers only; memories are its ends.

``shortest``
    Least latency, then fewest links, then the least sequence of link indices.
``xy``
    The grid is the routers that have a position and the links between them. A path leaves its
    memory by the shortest way to a router of the grid, goes along x, then along y, and by the
    shortest way to the other memory. Each axis takes the way of fewer steps, wrap-around links
    included, the increasing one when both are equally long. Where a memory has several ways to the
    grid (a DRAM with several ports), and for a path beside the grid, the least path in the sense
    of ``shortest`` is taken. A pair without any such path has the ``shortest`` one.
``round_trip``
    The path of ``shortest``. Its latency is also that of the shortest way from its last router to
    its first, which the request of a read or the answer to a write takes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import starmap
from math import gcd, lcm
from typing import Any, NamedTuple, TypeAlias

import networkx as nx

from spmilp.cached import Cache, cached
from spmilp.machine.machine import Engine, Link, Machine, MemoryKind, Routing
from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The links over which a transfer sends.

    They are in the order of the path; for several destinations the union of the paths, each link
    once, in the order of first use. The latency is the cycles from sending a byte until it has
    arrived, at the last of several destinations; the rate is bytes per cycle of the slowest link,
    ``None`` without links (a copy inside one memory).
    """

    links: tuple[LinkIdx, ...]
    latency: Cycles
    rate: Fraction | None

    @property
    def hops(self) -> int:
        """Number of links."""
        return len(self.links)


Path: TypeAlias = tuple[Link, ...]
"""Links one after another."""


def _preference(path: Path) -> tuple[Cycles, int, tuple[LinkIdx, ...]]:
    """Return latency, number of links and their indices: of two paths, the least is taken."""
    return sum(link.latency for link in path), len(path), tuple(link.index for link in path)


class _ShortestPaths:
    """Least latency, then fewest links, then the least sequence of link indices.

    Paths begin or end at ``ends``, but pass through none: in the graph an end is two nodes, one to
    leave and one (``True``) to enter. Of links side by side, the one of least latency, then index,
    is used.
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
            there = link.target, link.target in ends
            cost = link.latency * scale + 1
            self._graph.add_edge((link.source, False), there, cost=cost, link=link)
        self._reversed = self._graph.reverse()
        self.cache = Cache()

    def between(self, source: str, target: str) -> Path | None:
        """Return the path from one node to another, ``None`` if there is none."""
        here, goal = (source, False), (target, target in self._ends)
        remaining = self._distances(goal)
        if here not in remaining:
            return None
        links = []
        while here != goal:
            steps = (
                (edge["link"].index, edge["link"], there)
                for there, edge in self._graph[here].items()
                if there in remaining and remaining[there] + edge["cost"] == remaining[here]
            )
            _, link, here = min(steps, key=lambda step: step[0])
            links.append(link)
        return tuple(links)

    @cached
    def _distances(self, goal: tuple[str, bool]) -> dict[Any, int]:
        if goal not in self._graph:
            return {}
        return dict(nx.single_source_dijkstra_path_length(self._reversed, goal, weight="cost"))


Position: TypeAlias = tuple[int, int]


class _XyPaths:
    """Paths along x and then along y over the routers that have a position.

    Raises a ``ValueError`` if two routers share a position.
    """

    def __init__(self, machine: Machine) -> None:
        self._position = dict(machine.positions)
        taken = set(self._position.values())
        if len(taken) < len(machine.positions):
            raise ValueError(f"machine {machine.name}: two routers share a position")
        # Of each axis the least coordinate, and the number of positions up to the greatest.
        self._spans = [(min(axis), max(axis) - min(axis) + 1) for axis in zip(*taken, strict=True)]
        self._step: dict[tuple[Position, Position], Link] = {}
        beside = []
        for link in sorted(machine.links, key=lambda link: (link.latency, link.index)):
            if link.source in self._position and link.target in self._position:
                ends = self._position[link.source], self._position[link.target]
                self._step.setdefault(ends, link)
            else:
                beside.append(link)
        names = frozenset(memory.name for memory in machine.memories)
        self._access = _ShortestPaths(beside, names | frozenset(self._position))
        self.cache = Cache()

    def between(self, source: str, target: str) -> Path | None:
        """Return the least path from one memory to another, ``None`` if there is none."""
        beside = self._access.between(source, target)
        candidates = [] if beside is None else [beside]
        for (x, y), onto in self._ways(source, onwards=True):
            for (goal_x, goal_y), off in self._ways(target, onwards=False):
                along_x = self._along(0, y, x, goal_x)
                along_y = self._along(1, goal_x, y, goal_y)
                if along_x is not None and along_y is not None:
                    candidates.append((*onto, *along_x, *along_y, *off))
        return min(candidates, key=_preference, default=None)

    @cached
    def _ways(self, memory: str, *, onwards: bool) -> list[tuple[Position, Path]]:
        """Return where the grid is entered from a memory, or left for it, and how."""
        ends = ((memory, one) if onwards else (one, memory) for one in self._position)
        paths = zip(self._position.values(), starmap(self._access.between, ends), strict=True)
        return [(position, path) for position, path in paths if path is not None]

    def _along(self, axis: int, line: int, start: int, goal: int) -> Path | None:
        """Walk along one axis: the shorter way, the increasing one when both are equal.

        ``line`` is the coordinate on the other axis.
        """
        count = self._spans[axis][1]
        ahead, back = (goal - start) % count, (start - goal) % count
        ways = [(ahead, 1), (back, -1)] if ahead <= back else [(back, -1), (ahead, 1)]
        paths = (self._steps(axis, line, start, *way) for way in ways)
        return next((path for path in paths if path is not None), None)

    def _steps(self, axis: int, line: int, here: int, steps: int, direction: int) -> Path | None:
        """Take a number of steps; ``None`` where a link is missing."""
        first, count = self._spans[axis]
        links = []
        for _ in range(steps):
            there = first + (here + direction - first) % count
            ends = ((line, here), (line, there)) if axis else ((here, line), (there, line))
            if ends not in self._step:
                return None
            links.append(self._step[ends])
            here = there
        return tuple(links)


class Routes:
    """The routes, engines and staging paths of one machine, found when first asked for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        memories = frozenset(memory.name for memory in machine.memories)
        self._shortest = _ShortestPaths(machine.links, memories)
        self._xy = _XyPaths(machine) if machine.routing is Routing.XY else None
        self.cache = Cache()
        self._engines_of: dict[MemoryIdx | None, list[EngineIdx]] = {}
        for engine in machine.engines:
            self._engines_of.setdefault(engine.owner, []).append(engine.index)

    @cached
    def between(self, source: MemoryIdx, destination: MemoryIdx) -> Route | None:
        """Return the route from one memory to another, ``None`` if no links lead there."""
        path: Path | None = ()
        if source != destination:
            start, end = (self.machine.memories[one].name for one in (source, destination))
            path = None if self._xy is None else self._xy.between(start, end)
            path = self._shortest.between(start, end) if path is None else path
        if path is None:
            return None
        latency, _, links = _preference(path)
        if self.machine.routing is Routing.ROUND_TRIP and len(path) > 1:
            latency += _preference(self._shortest.between(path[-1].source, path[0].target) or ())[0]
        rate = min((link.rate for link in path), default=None)
        return Route(links=links, latency=latency, rate=rate)

    @cached
    def engines_for(self, source: MemoryIdx, destination: MemoryIdx) -> tuple[EngineIdx, ...]:
        """Return the engines that can move data from one memory to another, by index."""
        owners, engines = (source, destination, None), self.machine.engines
        near = {e for owner in owners for e in self._engines_of.get(owner, ())}
        serving = tuple(e for e in sorted(near) if engines[e].serves(source, destination))
        linked = serving and self.between(source, destination) is not None
        return serving if linked else ()

    @cached
    def staging_path(
        self, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[MemoryIdx, ...] | None:
        """Return the memories through which transfers bring data from one memory to another.

        Both ends are included: ``(dram, l1)`` when an engine connects them, ``(dram, l2, l1)`` when
        data has to stop on the way; ``None`` when no chain of engines leads there. The path has
        the fewest transfers, then passes the fewest scratchpads (they have other work), then has
        the least latency, then the least sequence of memory indices.
        """
        if source == destination:
            return (source,)
        if self.engines_for(source, destination):
            return source, destination
        memories = self.machine.memories
        waiting: list[tuple[int, int, Cycles, tuple[MemoryIdx, ...]]] = [(0, 0, 0, (source,))]
        settled: set[MemoryIdx] = set()
        while waiting:
            transfers, scratchpads, latency, path = heappop(waiting)
            here = path[-1]
            if here == destination:
                return path
            if here in settled:
                continue
            settled.add(here)
            passed = scratchpads + (here != source and memories[here].kind is MemoryKind.SPM)
            for there in range(len(memories)):
                if there not in settled and self.engines_for(here, there):
                    route = self.between(here, there)
                    longer = latency + (route.latency if route else 0)
                    heappush(waiting, (transfers + 1, passed, longer, (*path, there)))
        return None


def multicast_route(
    routes: Routes, source: MemoryIdx, destinations: Sequence[MemoryIdx]
) -> Route | None:
    """Return the union of the single routes to several memories; ``None`` if one has no route.

    A transfer over it lasts as long as :func:`transfer_cycles` says of any route.
    """
    single = [routes.between(source, destination) for destination in destinations]
    found = [route for route in single if route is not None]
    if len(found) < len(single):
        return None
    return Route(
        links=tuple(dict.fromkeys(link for route in found for link in route.links)),
        latency=max((route.latency for route in found), default=0),
        rate=min((route.rate for route in found if route.rate is not None), default=None),
    )


def transfer_rate(engine: Engine, route: Route) -> Fraction:
    """Return the bytes per cycle that a transfer holds on every link of its route."""
    return engine.rate if route.rate is None else min(engine.rate, route.rate)


class TransferCycles(NamedTuple):
    """When a transfer does what, in cycles from its start; ``docs/format.md``, section 2.3.

    It holds its rate on the links of its route from ``on_links`` to ``sent``, and its channel until
    ``busy``. Its source must hold the bytes until ``sent``; its destinations are valid from
    ``arrived`` on, its end.
    """

    on_links: Cycles
    sent: Cycles
    busy: Cycles
    arrived: Cycles


def transfer_cycles(engine: Engine, route: Route, count: Bytes) -> TransferCycles:
    """Return the cycles of a transfer of ``count`` bytes: set-up, the bytes, latency."""
    rate = transfer_rate(engine, route)
    sent = engine.setup - (-count * rate.denominator // rate.numerator)
    arrived = sent + route.latency
    return TransferCycles(engine.setup, sent, engine.busy_until(sent, arrived), arrived)


@cached
def routes_of(machine: Machine) -> Routes:
    """Return the routes of a machine that all who ask for them share."""
    return Routes(machine)


class DramTransfer(NamedTuple):
    """What moves from a DRAM to another memory or back; the rate is in bytes per cycle."""

    engine: EngineIdx
    other: MemoryIdx
    route: Route
    rate: Fraction


def dram_transfers(routes: Routes, dram: MemoryIdx, *, outwards: bool) -> Iterator[DramTransfer]:
    """Yield the transfers out of a DRAM, or into it, one of those that are alike.

    Alike are those over the same links that take as long and hold the same rate.
    """
    seen, engines = set(), routes.machine.engines
    for memory in routes.machine.memories:
        ends = (dram, memory.index) if outwards else (memory.index, dram)
        route = None if memory.index == dram else routes.between(*ends)
        if route is None:
            continue
        for index in routes.engines_for(*ends):
            rate = transfer_rate(engines[index], route)
            key = (engines[index].setup, rate, route.latency, route.links)
            if key not in seen:
                seen.add(key)
                yield DramTransfer(index, memory.index, route, rate)


def usable_rates(machine: Machine, transfers: Iterable[DramTransfer]) -> tuple[Fraction, ...]:
    """Return the bytes per cycle that some transfers can use of each link at most; 0 if none.

    A multicast has the rate of one of those to its destinations, on the links of all of them.
    """
    over = [set[Fraction]() for _ in machine.links]
    for one in transfers:
        for index in one.route.links:
            over[index].add(one.rate)
    if any(engine.multicast for engine in machine.engines):
        rates = set[Fraction]().union(*over)
        over = [rates if some else some for some in over]
    keys = [(link.rate, frozenset(rates)) for link, rates in zip(machine.links, over, strict=True)]
    known = {key: most_in_use(*key) for key in dict.fromkeys(keys)}
    return tuple(known[key] for key in keys)


def most_in_use(capacity: Fraction, rates: Iterable[Fraction]) -> Fraction:
    """Return bytes per cycle of a link; transfers of these rates never use more at one time.

    A transfer holds its rate on the link, no part of it: of a link of 48 bytes per cycle,
    transfers of 32 use no more than 32. What several transfers hold is a multiple of the rates'
    greatest common divisor, so the largest one within the capacity is returned.
    """
    fitting = sorted({rate for rate in rates if 0 < rate <= capacity})
    if not fitting:
        return Fraction(0)
    scale = lcm(*(rate.denominator for rate in fitting))
    step = Fraction(gcd(*(int(rate * scale) for rate in fitting)), scale)
    return capacity // step * step
