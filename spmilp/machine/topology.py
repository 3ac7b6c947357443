"""Networks of routers: mesh, torus, ring, bus, crossbar, tree, or routers without links.

A topology has *sites*, where memories are attached, and the connections between its routers. All
rates are bytes per cycle in one direction. ``topology_of`` makes the one that a file asks for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from spmilp.machine import description as given
from spmilp.machine.description import MachineDescription, Wire
from spmilp.machine.machine import Routing


@dataclass(frozen=True, slots=True)
class Connection:
    """A directed link from one node to another."""

    source: str
    target: str
    wire: Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place of a topology where memories are attached.

    Parameters
    ----------
    name
        What a machine file calls it.
    label
        Ends the names of what stands here; empty where the topology has one site.
    leave, enter
        The nodes to which a memory here has links, and from which.
    position
        ``(x, y)`` on the chip.
    inner
        Attached to only when named (the inner nodes of a tree).
    """

    name: str
    label: str
    leave: tuple[str, ...]
    enter: tuple[str, ...]
    position: tuple[int, int] | None = None
    inner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Routers, the links between them, and the sites.

    Parameters
    ----------
    outward, inward
        The links from a memory to its site and back, where a machine does not say otherwise;
        ``None`` where it has to.
    positions
        ``(router, (x, y))`` of the grid, for XY routing.
    """

    sites: tuple[Site, ...]
    connections: tuple[Connection, ...] = ()
    outward: Wire | None = None
    inward: Wire | None = None
    positions: tuple[tuple[str, tuple[int, int]], ...] = ()
    routing: Routing = Routing.SHORTEST

    @property
    def routers(self) -> frozenset[str]:
        """The names of all nodes that are no memories."""
        at_sites = {node for site in self.sites for node in (*site.leave, *site.enter)}
        linked = {node for link in self.connections for node in (link.source, link.target)}
        return frozenset(at_sites | linked)


def mesh(columns: int, rows: int, wire: Wire, routing: Routing = Routing.XY) -> Topology:
    """Return a grid of routers ``r_x_y``, each linked to its neighbours both ways."""
    return _grid(columns, rows, wire, routing, wrap=False)


def torus(columns: int, rows: int, wire: Wire, routing: Routing = Routing.XY) -> Topology:
    """Return a mesh with links both ways from the last router of each row and column to the first.

    Rows and columns of two routers have no further link: they are neighbours already.
    """
    return _grid(columns, rows, wire, routing, wrap=True)


def opposed_tori(columns: int, rows: int, wire: Wire) -> Topology:
    """Return two tori of one-way links; a transfer takes the one that brings it there sooner.

    In the first (routers ``n0_x_y``) data goes in increasing direction along x, then along y; in
    the second (``n1_x_y``) in decreasing direction along y, then along x. Each site has a router in
    both. The order of the links makes the shortest routes turn in this way.
    """
    spots = list(_spots(columns, rows))
    along_x = [((x, y), ((x + 1) % columns, y)) for x, y in spots if columns > 1]
    along_y = [((x, y), (x, (y + 1) % rows)) for x, y in spots if rows > 1]
    ahead = [Connection(_router("n0", a), _router("n0", b), wire) for a, b in (*along_x, *along_y)]
    back = [Connection(_router("n1", b), _router("n1", a), wire) for a, b in (*along_y, *along_x)]
    sites = []
    for spot in spots:
        nodes = (_router("n0", spot), _router("n1", spot))
        label = f"{spot[0]}_{spot[1]}"
        sites.append(Site(name=f"r_{label}", label=label, leave=nodes, enter=nodes, position=spot))
    at_site = Wire(wire.rate_bytes_per_cycle)
    return Topology(
        sites=tuple(sites), connections=(*ahead, *back), outward=at_site, inward=at_site
    )


def ring(count: int, wire: Wire) -> Topology:
    """Return ``count`` routers ``r_i`` in a ring, each linked to both neighbours both ways."""
    pairs = [(i, (i + 1) % count) for i in range(count if count > 2 else count - 1)]
    at_site = Wire(wire.rate_bytes_per_cycle)
    return Topology(
        sites=tuple(_site(f"r_{i}", str(i)) for i in range(count)),
        connections=tuple(both_ways([(f"r_{i}", f"r_{j}") for i, j in pairs], wire)),
        outward=at_site,
        inward=at_site,
    )


def bus(wire: Wire) -> Topology:
    """Return one link that all transfers share, whatever their direction."""
    at_site = Wire(wire.rate_bytes_per_cycle)
    return Topology(
        sites=(Site(name="bus", label="", leave=("bus_in",), enter=("bus_out",)),),
        connections=(Connection("bus_in", "bus_out", wire),),
        outward=at_site,
        inward=at_site,
    )


def crossbar(wire: Wire) -> Topology:
    """Return one router; each memory has a link of its own to it and from it.

    ``wire`` is the link of one memory; its latency and energy are those of one crossing.
    """
    back = Wire(wire.rate_bytes_per_cycle)
    return Topology(sites=(_site("xbar", ""),), outward=wire, inward=back)


def tree(arity: Sequence[int], wires: Sequence[Wire]) -> Topology:
    """Return a tree with its sites at the leaves.

    The root ``t`` has ``arity[0]`` children ``t_0``, ``t_1`` and so on, each of these has
    ``arity[1]``; ``wires[i]`` links a node of level ``i`` to its children, both ways.
    """
    connections: list[Connection] = []
    inner: list[str] = []
    level = ["t"]
    for children, wire in zip(arity, wires, strict=True):
        pairs = [(node, f"{node}_{child}") for node in level for child in range(children)]
        connections += both_ways(pairs, wire)
        inner += level
        level = [child for _, child in pairs]
    at_site = Wire(wires[-1].rate_bytes_per_cycle)
    leaves = tuple(_site(name, name.removeprefix("t_")) for name in level)
    above = tuple(_site(name, name, inner=True) for name in inner)
    return Topology(
        sites=(*leaves, *above),
        connections=tuple(connections),
        outward=at_site,
        inward=at_site,
    )


def routers(names: Sequence[str]) -> Topology:
    """Return routers without links, for machines that list their links one by one."""
    return Topology(sites=tuple(_site(name, name if len(names) > 1 else "") for name in names))


def both_ways(pairs: Sequence[tuple[str, str]], wire: Wire) -> Iterator[Connection]:
    """Yield a link from the first to the second of each pair and one back."""
    for source, target in pairs:
        yield Connection(source, target, wire)
        yield Connection(target, source, wire)


def _grid(columns: int, rows: int, wire: Wire, routing: Routing, *, wrap: bool) -> Topology:
    spots = list(_spots(columns, rows))
    pairs = []
    for x, y in spots:
        if x + 1 < columns or (wrap and columns > 2):
            pairs.append((_router("r", (x, y)), _router("r", ((x + 1) % columns, y))))
        if y + 1 < rows or (wrap and rows > 2):
            pairs.append((_router("r", (x, y)), _router("r", (x, (y + 1) % rows))))
    at_site = Wire(wire.rate_bytes_per_cycle)
    return Topology(
        sites=tuple(_site(_router("r", spot), f"{spot[0]}_{spot[1]}", spot) for spot in spots),
        connections=tuple(both_ways(pairs, wire)),
        outward=at_site,
        inward=at_site,
        positions=tuple((_router("r", spot), spot) for spot in spots),
        routing=routing,
    )


def _spots(columns: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of a grid, row by row."""
    return ((x, y) for y, x in product(range(rows), range(columns)))


def _router(prefix: str, spot: tuple[int, int]) -> str:
    return f"{prefix}_{spot[0]}_{spot[1]}"


def _site(
    name: str, label: str, position: tuple[int, int] | None = None, *, inner: bool = False
) -> Site:
    """Return a site whose links go to one router, of its own name."""
    return Site(
        name=name, label=label, leave=(name,), enter=(name,), position=position, inner=inner
    )


MOST_SITES = 2**16
"""Of one topology; far beyond any chip, it stops a slip of the finger."""


def topology_of(description: MachineDescription) -> Topology:
    """Return the routers and sites that a machine file asks for.

    Raises
    ------
    ValueError
        If there are far more sites than on any chip.
    """
    match description.topology:
        case given.Mesh() as grid:
            _is_a_chip(grid.columns * grid.rows)
            wrap, routing = isinstance(grid, given.Torus), Routing(grid.routing)
            return _grid(grid.columns, grid.rows, grid, routing, wrap=wrap)
        case given.OpposedTori() as tori:
            _is_a_chip(tori.columns * tori.rows)
            return opposed_tori(tori.columns, tori.rows, tori)
        case given.Ring() as circle:
            return ring(circle.routers, circle)
        case given.Bus() as one:
            return bus(one)
        case given.Crossbar() as one:
            return crossbar(one)
        case given.Tree(levels=levels):
            _is_a_chip(prod(level.children for level in levels))
            return tree([level.children for level in levels], levels)
        case given.Routers(routers=names):
            return routers(names)


def _is_a_chip(sites: int) -> None:
    if sites > MOST_SITES:
        raise ValueError(f"topology: {sites} sites, expected at most {MOST_SITES}")
