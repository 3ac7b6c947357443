"""Routes between memories, computed once for each pair that is asked for.

Two rules, named by :class:`~spmilp.machine.machine.Routing`. In both, a path passes through routers
only; memories are its ends.

``shortest``
    Least latency, then fewest links, then the least sequence of link indices.
``xy``
    The grid is the routers that have a position and the links between them. A path leaves its
    memory by the shortest way to a router of the grid, goes along x, then along y, and by the
    shortest way to the other memory. Each axis takes the way of fewer steps, wrap-around links
    included, the increasing one when both are equally long. Where a memory has several ways to the
    grid (a DRAM with several ports), and for a path beside the grid, the least path in the sense
    of ``shortest`` is taken. A pair without any such path has the ``shortest`` one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from spmilp.cached import cached
from spmilp.machine.machine import Engine, Machine, MemoryKind, Routing
from spmilp.machine.paths import STAY, Path, ShortestPaths, XyPaths, as_graph
from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, MemoryIdx

__all__ = ["Route", "Routes", "as_graph", "multicast_route", "transfer_cycles", "transfer_rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The links that a transfer holds.

    Parameters
    ----------
    links
        In the order of the path; for several destinations the union of the paths, each link once,
        in the order of first use.
    latency
        Cycles until the first byte has arrived, at the last of several destinations.
    rate
        Bytes per cycle of the slowest link; ``None`` without links (a copy inside one memory).
    """

    links: tuple[LinkIdx, ...]
    latency: Cycles
    rate: Fraction | None

    @property
    def hops(self) -> int:
        """Number of links."""
        return len(self.links)


class Routes:
    """The routes, engines and staging paths of one machine, found when first asked for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        memories = frozenset(memory.name for memory in machine.memories)
        self._shortest = ShortestPaths(machine.links, memories)
        self._xy = XyPaths(machine) if machine.routing is Routing.XY else None
        self._found: dict[tuple[MemoryIdx, MemoryIdx], Route | None] = {}
        self._serving: dict[tuple[MemoryIdx, MemoryIdx], tuple[EngineIdx, ...]] = {}
        self._staging: dict[tuple[MemoryIdx, MemoryIdx], tuple[MemoryIdx, ...] | None] = {}
        # Ranks of rates are compared, because fractions are slow to compare.
        self._rates = sorted({link.rate for link in machine.links})
        rank = {rate: position for position, rate in enumerate(self._rates)}
        self._rank = tuple(rank[link.rate] for link in machine.links)
        self._central = tuple(e.index for e in machine.engines if e.owner is None)
        self._owned: dict[MemoryIdx, list[EngineIdx]] = {}
        for engine in machine.engines:
            if engine.owner is not None:
                self._owned.setdefault(engine.owner, []).append(engine.index)

    def between(self, source: MemoryIdx, destination: MemoryIdx) -> Route | None:
        """Return the route from one memory to another, ``None`` if no links lead there."""
        pair = source, destination
        if pair not in self._found:
            path = self._path(source, destination)
            self._found[pair] = None if path is None else self._route(path)
        return self._found[pair]

    def engines_for(self, source: MemoryIdx, destination: MemoryIdx) -> tuple[EngineIdx, ...]:
        """Return the engines that can move data from one memory to another, by index."""
        pair = source, destination
        if pair not in self._serving:
            near = {*self._owned.get(source, ()), *self._owned.get(destination, ())}
            serving = tuple(
                index
                for index in sorted(near.union(self._central))
                if self.machine.engines[index].serves(source, destination)
            )
            linked = serving and self.between(source, destination) is not None
            self._serving[pair] = serving if linked else ()
        return self._serving[pair]

    def staging_path(
        self, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[MemoryIdx, ...] | None:
        """Return the memories through which transfers bring data from one memory to another.

        Both ends are included: ``(dram, l1)`` when an engine connects them, ``(dram, l2, l1)`` when
        data has to stop on the way; ``None`` when no chain of engines leads there. The path has
        the fewest transfers, then passes the fewest scratchpads, then has the least latency, then
        the least sequence of memory indices.
        """
        pair = source, destination
        if pair not in self._staging:
            self._staging[pair] = _staging_path(self, source, destination)
        return self._staging[pair]

    def _path(self, source: MemoryIdx, destination: MemoryIdx) -> Path | None:
        if source == destination:
            return STAY
        start = self.machine.memories[source].name
        end = self.machine.memories[destination].name
        path = self._xy.between(start, end) if self._xy is not None else None
        return self._shortest.between(start, end) if path is None else path

    def _route(self, path: Path) -> Route:
        return Route(links=path.links, latency=path.latency, rate=self.slowest(path.links))

    def slowest(self, links: Iterable[LinkIdx]) -> Fraction | None:
        """Return the bytes per cycle of the slowest of some links; ``None`` without any."""
        slowest = min((self._rank[link] for link in links), default=None)
        return None if slowest is None else self._rates[slowest]


def _staging_path(
    routes: Routes, source: MemoryIdx, destination: MemoryIdx
) -> tuple[MemoryIdx, ...] | None:
    """Return the memories of the best chain of transfers, both ends included.

    Fewest transfers, then fewest scratchpads in between (they have other work), then least
    latency, then the least sequence of memory indices.
    """
    if source == destination:
        return (source,)
    if routes.engines_for(source, destination):
        return source, destination
    memories = routes.machine.memories
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
        for memory in memories:
            there = memory.index
            if there in settled or not routes.engines_for(here, there):
                continue
            route = routes.between(here, there)
            if route is not None:
                longer = latency + route.latency
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
    links = tuple(dict.fromkeys(link for route in found for link in route.links))
    return Route(
        links=links,
        latency=max((route.latency for route in found), default=0),
        rate=routes.slowest(links),
    )


def transfer_rate(engine: Engine, route: Route) -> Fraction:
    """Return the bytes per cycle that a transfer holds on every link of its route."""
    return engine.rate if route.rate is None else min(engine.rate, route.rate)


def transfer_cycles(engine: Engine, route: Route, count: Bytes) -> Cycles:
    """Return the cycles of a transfer of ``count`` bytes: set-up, latency, then the bytes."""
    rate = transfer_rate(engine, route)
    moving = -(-count * rate.denominator // rate.numerator)
    return engine.setup + route.latency + moving


@cached
def routes_of(machine: Machine) -> Routes:
    """Return the routes of a machine that all who ask for them share."""
    return Routes(machine)
