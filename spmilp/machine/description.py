"""The YAML format of a machine: templates that :mod:`spmilp.machine.expand` writes out.

Units stand in the names of fields. ``sites`` and ``reaches`` are lists of names with ``*``, ``?``
and ``[0-3]`` as in file names. ``docs/machines.md`` explains the format on an example.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from spmilp.formats import FileRow
from spmilp.machine.machine import Routing
from spmilp.units import LARGEST, Amount, Bytes, Count

DType: TypeAlias = Literal["float32", "float16", "int8"]
Side: TypeAlias = Annotated[int, Meta(ge=1, le=1024)]
Label: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*$(?!\n)", max_length=64)]

MOST_LETTERS = 1000
"""Of a machine's name; changes of a machine stand in it."""

LOOPS = ("B", "G", "K", "C", "Y", "X", "R", "S")
"""The loops that an array may spread, in the order in which an expanded machine lists them."""

RATES = ("rate_bytes_per_cycle", "frequency_mhz")


class Part(FileRow, frozen=True):
    """A part of a machine file; rates are positive."""

    def __post_init__(self) -> None:
        for name in RATES:
            if getattr(self, name, None) == 0:
                raise ValueError(f"{name}: expected a number > 0; got 0")


class Wire(Part, frozen=True):
    """Properties of a link; energy in femtojoules per byte and hop."""

    rate_bytes_per_cycle: Fraction
    latency_cycles: Amount = 0
    energy_fj_per_byte: Amount | None = None


class Mesh(Wire, frozen=True, kw_only=True, tag_field="type", tag="mesh"):
    """A grid of routers ``r_x_y``."""

    columns: Side
    rows: Side
    routing: Literal["xy", "shortest"] = "xy"


class Torus(Mesh, frozen=True, kw_only=True, tag="torus"):
    """A mesh whose rows and columns are rings."""


class OpposedTori(Wire, frozen=True, kw_only=True, tag_field="type", tag="opposed_tori"):
    """Two tori of one-way links in opposite directions, as on Tenstorrent's chips."""

    columns: Side
    rows: Side


class Ring(Wire, frozen=True, kw_only=True, tag_field="type", tag="ring"):
    """A ring of routers ``r_i``."""

    routers: Side


class Bus(Wire, frozen=True, tag_field="type", tag="bus"):
    """One link that all transfers share; its only site is ``bus``."""


class Crossbar(Wire, frozen=True, tag_field="type", tag="crossbar"):
    """A link of its own for each memory to one router; its only site is ``xbar``."""


class Level(Wire, frozen=True, kw_only=True):
    """Children of each node of the level above, and the links to them."""

    children: Side


class Tree(Part, frozen=True, tag_field="type", tag="tree"):
    """A tree ``t``, ``t_0``, ``t_0_1``; ``levels`` from the root down."""

    levels: Annotated[tuple[Level, ...], Meta(min_length=1, max_length=8)]


class Routers(Part, frozen=True, tag_field="type", tag="links"):
    """Routers without links, or none at all: ``links`` lists every link."""

    routers: tuple[Label, ...] = ()


AnyTopology: TypeAlias = Mesh | Torus | OpposedTori | Ring | Bus | Crossbar | Tree | Routers


class ExtraLink(Wire, frozen=True, kw_only=True):
    """A link between two nodes (routers or memories), both ways unless said otherwise."""

    source: Label
    target: Label
    both_ways: bool = True


class ArrayFields(Part, frozen=True, kw_only=True):
    """Multipliers of one data type, spread over loops; see ``MacArray``."""

    dtype: DType
    B: Count = 1
    G: Count = 1
    K: Count = 1
    C: Count = 1
    Y: Count = 1
    X: Count = 1
    R: Count = 1
    S: Count = 1


class KindFields(Part, frozen=True, kw_only=True):
    """A kind of core; without ``operators`` it runs all."""

    arrays: tuple[ArrayFields, ...] = ()
    lanes: dict[DType, Count] = field(default_factory=dict)
    launch_cycles: Amount = 0
    operators: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    mac_energy_fj: dict[DType, Amount] = field(default_factory=dict)


class EngineFields(Part, frozen=True, kw_only=True):
    """A DMA engine; ``reaches`` names the memories at the other end, all by default."""

    name: Label = "dma"
    reaches: tuple[str, ...] | None = None
    loads: bool = True
    stores: bool = True
    channels: Count = 1
    setup_cycles: Amount = 0
    rate_bytes_per_cycle: Fraction
    longest_bytes: Count | None = None
    dimensions: Count | None = None
    congruence_bytes: Count = 1
    multicast: bool = False
    descriptors: Count | None = None
    controller: Label | None = None


class MemoryFields(Part, frozen=True, kw_only=True):
    """Fields common to all memories; the size in one of three units."""

    size_bytes: Count | None = None
    size_kib: Count | None = None
    size_mib: Count | None = None
    alignment_bytes: Count = 1
    reserved_byte_ranges: tuple[tuple[Amount, Amount], ...] = ()
    banks: Count | None = None
    energy_fj_per_byte: Amount | None = None
    dma: tuple[EngineFields, ...] = ()

    @property
    def size(self) -> Bytes | None:
        """The size in bytes; ``None`` when it is not given."""
        units = ((self.size_bytes, 1), (self.size_kib, 2**10), (self.size_mib, 2**20))
        return next((given * unit for given, unit in units if given is not None), None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(size is not None for size in (self.size_bytes, self.size_kib, self.size_mib)) > 1:
            raise ValueError("give one of size_bytes, size_kib, size_mib")
        if self.size is not None and self.size > LARGEST:
            raise ValueError(f"a size of {self.size} B exceeds {LARGEST} B")
        last = 0
        for start, end in self.reserved_byte_ranges:
            if not last <= start < end:
                why = (
                    "is empty" if start >= end else f"begins before {last}, where the last one ends"
                )
                raise ValueError(f"reserved_byte_ranges: [{start}, {end}) {why}")
            last = end
        if self.size is not None and last > self.size:
            raise ValueError(f"reserved_byte_ranges: end at {last} B > size {self.size} B")


class SizedFields(MemoryFields, frozen=True, kw_only=True):
    """A memory that must have a size, at each of its sites."""

    sites: tuple[str, ...] = ("*",)
    count: Side = 1
    link: Wire | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is None:
            raise ValueError("give one of size_bytes, size_kib, size_mib")


class ScratchpadFields(SizedFields, frozen=True, kw_only=True):
    """Equal scratchpads with their cores and engines, ``count`` on each of the sites.

    ``cores`` says how many cores of each kind share one scratchpad.
    """

    name: Label = "spm"
    cores: Annotated[dict[Label, Side], Meta(min_length=1)]


class SharedFields(SizedFields, frozen=True, kw_only=True):
    """Memories without cores (a second level, memory tiles), ``count`` on each of the sites."""

    name: Label


class DramFields(MemoryFields, frozen=True, kw_only=True):
    """A DRAM with one port at each of ``sites``; each port has the whole rate.

    Reads and writes share a port's rate unless it is ``full_duplex``.
    """

    name: Label = "dram"
    sites: tuple[str, ...] = ()
    rate_bytes_per_cycle: Fraction | None = None
    latency_cycles: Amount = 0
    full_duplex: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sites and self.rate_bytes_per_cycle is None:
            raise ValueError("a DRAM with sites needs rate_bytes_per_cycle")
        if not self.sites and self.rate_bytes_per_cycle is not None:
            raise ValueError("a DRAM with rate_bytes_per_cycle needs sites for its ports")


class CentralEngine(EngineFields, frozen=True, kw_only=True):
    """An engine that belongs to no memory and moves data between any two that it reaches."""

    name: Label


class RemoteFields(Part, frozen=True, kw_only=True):
    """Cores read operands in other scratchpads; see ``RemoteReads``."""

    cycles_per_byte_hop: Fraction
    longest_route_links: Count | None = None


class ProvenanceFields(Part, frozen=True, kw_only=True):
    """Where the numbers come from: fields by path, with ``*`` for a part of a path."""

    fields: Annotated[tuple[str, ...], Meta(min_length=1)]
    source: Annotated[str, Meta(min_length=1)]
    verified: bool = True


class MachineDescription(Part, frozen=True, kw_only=True):
    """A whole machine file."""

    name: Annotated[str, Meta(min_length=1, max_length=MOST_LETTERS)]
    description: str = ""
    frequency_mhz: Fraction | None = None
    topology: AnyTopology = Routers()
    core_kinds: Annotated[dict[Label, KindFields], Meta(min_length=1)]
    scratchpads: Annotated[tuple[ScratchpadFields, ...], Meta(min_length=1)]
    shared: tuple[SharedFields, ...] = ()
    dram: Annotated[tuple[DramFields, ...], Meta(min_length=1)]
    links: tuple[ExtraLink, ...] = ()
    engines: tuple[CentralEngine, ...] = ()
    remote_reads: RemoteFields | None = None
    events: Count | None = None
    event_maximum: Count | None = None
    provenance: tuple[ProvenanceFields, ...] = ()

    @property
    def frequency(self) -> int | None:
        """Cycles per second, ``None`` when it is not given."""
        if self.frequency_mhz is None:
            return None
        return int(self.frequency_mhz * Fraction(10**6))


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
        case Mesh() as grid:
            _is_a_chip(grid.columns * grid.rows)
            wrap, routing = isinstance(grid, Torus), Routing(grid.routing)
            return _grid(grid.columns, grid.rows, grid, routing, wrap=wrap)
        case OpposedTori() as tori:
            _is_a_chip(tori.columns * tori.rows)
            return opposed_tori(tori.columns, tori.rows, tori)
        case Ring() as circle:
            return ring(circle.routers, circle)
        case Bus() as one:
            return bus(one)
        case Crossbar() as one:
            return crossbar(one)
        case Tree(levels=levels):
            _is_a_chip(prod(level.children for level in levels))
            return tree([level.children for level in levels], levels)
        case Routers(routers=names):
            return routers(names)


def _is_a_chip(sites: int) -> None:
    if sites > MOST_SITES:
        raise ValueError(f"topology: {sites} sites, expected at most {MOST_SITES}")
