"""The YAML format of a machine: templates that :mod:`spmilp.machine.expand` writes out.

Units stand in the names of fields. ``sites`` and ``reaches`` are lists of names with ``*``, ``?``
and ``[0-3]`` as in file names. ``docs/machines.md`` explains the format on an example.

A topology has *sites*, where memories are attached, and links between its routers. All rates are
bytes per cycle in one direction.
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import prod
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Meta, field

from spmilp.formats import FileRow
from spmilp.machine.machine import Routing
from spmilp.units import LARGEST, Amount, Bytes, Count

DType: TypeAlias = Literal["float32", "float16", "int8"]
Side: TypeAlias = Annotated[int, Meta(ge=1, le=1024)]
Label: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*$(?!\n)", max_length=64)]

MOST_LETTERS = 1000
"""Longest name of a machine, in letters; the changes of a machine are part of it."""

MOST_SITES = 2**16
"""Most sites of one topology: far beyond any chip, to stop typing errors."""

LOOPS = ("B", "G", "K", "C", "Y", "X", "R", "S")
"""The loops that an array may spread, in the order in which an expanded machine lists them."""

RATES = ("rate_bytes_per_cycle", "frequency_mhz")

UNITS = {
    "rate": "rate_bytes_per_cycle",
    "latency": "latency_cycles",
    "setup": "setup_cycles",
    "launch": "launch_cycles",
    "longest": "longest_bytes",
    "longest_route": "longest_route_links",
    "alignment": "alignment_bytes",
    "congruence": "congruence_bytes",
    "reserved": "reserved_byte_ranges",
    "energy_per_byte": "energy_fj_per_byte",
    "mac_energy": "mac_energy_fj",
    "workspace": "workspace_bytes",
}
"""What files call the fields that :mod:`spmilp.machine.machine` has by these names."""


class Part(FileRow, frozen=True, rename=UNITS):
    """A part of a machine file; rates are positive."""

    def __post_init__(self) -> None:
        names = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        for name, written in names:
            if written in RATES and getattr(self, name) == 0:
                raise ValueError(f"{written}: expected a number > 0; got 0")


class Wire(Part, frozen=True):
    """Properties of a link; energy in femtojoules per byte and hop."""

    rate: Fraction
    latency: Amount = 0
    energy_per_byte: Amount | None = None


class Connection(NamedTuple):
    """A directed link from one node to another."""

    source: str
    target: str
    wire: Wire


class Site(NamedTuple):
    """A place of a topology, by the name in machine files, where memories are attached.

    A memory here has links to the nodes ``leave``, and from ``enter``. The ``label`` ends the names
    of what stands here; it is empty where the topology has one site. What is ``inner`` (in a tree)
    has memories only when named.
    """

    name: str
    label: str
    leave: tuple[str, ...]
    enter: tuple[str, ...]
    position: tuple[int, int] | None = None
    inner: bool = False


class Topology(NamedTuple):
    """Routers, the links between them, and the sites; ``(router, (x, y))`` of a grid's routers.

    The links from a memory to its site and back are ``outward`` and ``inward``, where a machine
    does not say otherwise; without them it has to.
    """

    sites: list[Site]
    links: list[Connection]
    outward: Wire | None = None
    inward: Wire | None = None
    positions: tuple[tuple[str, tuple[int, int]], ...] = ()
    routing: Routing = Routing.SHORTEST

    @property
    def routers(self) -> frozenset[str]:
        """The names of all nodes that are no memories."""
        at_sites = {node for site in self.sites for node in (*site.leave, *site.enter)}
        return frozenset(at_sites.union(*((link.source, link.target) for link in self.links)))


class Mesh(Wire, frozen=True, kw_only=True, tag_field="type", tag="mesh"):
    """A grid of routers ``r_x_y``."""

    columns: Side
    rows: Side
    routing: Literal["xy", "shortest"] = "xy"

    wraps: ClassVar[bool] = False
    """Whether the last router of each row and column is linked to the first as well; those of two
    are neighbours already."""

    def laid_out(self) -> Topology:
        """Link each router to its neighbours, both ways."""
        spots = _spots(self.columns, self.rows)
        pairs = []
        for x, y in spots:
            if x + 1 < self.columns or (self.wraps and self.columns > 2):
                pairs.append((_router("r", x, y), _router("r", (x + 1) % self.columns, y)))
            if y + 1 < self.rows or (self.wraps and self.rows > 2):
                pairs.append((_router("r", x, y), _router("r", x, (y + 1) % self.rows)))
        sites = [_site(_router("r", *spot), _label(*spot), spot) for spot in spots]
        positions = tuple((_router("r", *spot), spot) for spot in spots)
        return _at_full_rate(sites, _both_ways(pairs, self), self)._replace(
            positions=positions, routing=Routing(self.routing)
        )


class Torus(Mesh, frozen=True, kw_only=True, tag="torus"):
    """A mesh whose rows and columns are rings."""

    wraps: ClassVar[bool] = True


class OpposedTori(Wire, frozen=True, kw_only=True, tag_field="type", tag="opposed_tori"):
    """Two tori of one-way links in opposite directions, as on Tenstorrent's chips."""

    columns: Side
    rows: Side

    def laid_out(self) -> Topology:
        """Give each site a router in both tori; a transfer takes the one that is sooner there.

        In the first (routers ``n0_x_y``) data goes in increasing direction along x, then along y;
        in the second (``n1_x_y``) in decreasing direction along y, then along x. The order of the
        links makes the shortest routes turn in this way. The request of a read, or the answer to a
        write, takes the rest of each ring.
        """
        spots = _spots(self.columns, self.rows)
        along_x = [((x, y), ((x + 1) % self.columns, y)) for x, y in spots if self.columns > 1]
        along_y = [((x, y), (x, (y + 1) % self.rows)) for x, y in spots if self.rows > 1]
        ahead = [(_router("n0", *a), _router("n0", *b)) for a, b in (*along_x, *along_y)]
        back = [(_router("n1", *b), _router("n1", *a)) for a, b in (*along_y, *along_x)]
        sites = []
        for spot in spots:
            nodes = (_router("n0", *spot), _router("n1", *spot))
            sites.append(Site(_router("r", *spot), _label(*spot), nodes, nodes, spot))
        links = [Connection(a, b, self) for a, b in (*ahead, *back)]
        return _at_full_rate(sites, links, self)._replace(routing=Routing.ROUND_TRIP)


class Ring(Wire, frozen=True, kw_only=True, tag_field="type", tag="ring"):
    """A ring of routers ``r_i``."""

    routers: Side

    def laid_out(self) -> Topology:
        """Link each router to both neighbours, both ways."""
        count = self.routers
        pairs = [(i, (i + 1) % count) for i in range(count if count > 2 else count - 1)]
        links = _both_ways([(f"r_{i}", f"r_{j}") for i, j in pairs], self)
        return _at_full_rate([_site(f"r_{i}", str(i)) for i in range(count)], links, self)


class Bus(Wire, frozen=True, tag_field="type", tag="bus"):
    """One link that all transfers share; its only site is ``bus``."""

    def laid_out(self) -> Topology:
        """Let every transfer pass the one link, whatever its direction."""
        site = Site("bus", "", ("bus_in",), ("bus_out",))
        return _at_full_rate([site], [Connection("bus_in", "bus_out", self)], self)


class Crossbar(Wire, frozen=True, tag_field="type", tag="crossbar"):
    """A link of its own for each memory to one router; its only site is ``xbar``."""

    def laid_out(self) -> Topology:
        """Count latency and energy of a crossing on the way to the router."""
        return Topology([_site("xbar", "")], [], outward=self, inward=Wire(self.rate))


class Level(Wire, frozen=True, kw_only=True):
    """Children of each node of the level above, and the links to them."""

    children: Side


class Tree(Part, frozen=True, tag_field="type", tag="tree"):
    """A tree ``t``, ``t_0``, ``t_0_1``; ``levels`` from the root down."""

    levels: Annotated[tuple[Level, ...], Meta(min_length=1, max_length=8)]

    def laid_out(self) -> Topology:
        """Link each node to its children, both ways; the leaves are sites, others when named."""
        _is_a_chip(prod(level.children for level in self.levels))
        links: list[Connection] = []
        inner: list[str] = []
        nodes = ["t"]
        for level in self.levels:
            pairs = [(node, f"{node}_{child}") for node in nodes for child in range(level.children)]
            links += _both_ways(pairs, level)
            inner += nodes
            nodes = [child for _, child in pairs]
        leaves = [_site(name, name.removeprefix("t_")) for name in nodes]
        above = [_site(name, name)._replace(inner=True) for name in inner]
        return _at_full_rate([*leaves, *above], links, self.levels[-1])


class Routers(Part, frozen=True, tag_field="type", tag="links"):
    """Routers without links, or none at all: ``links`` lists every link."""

    routers: tuple[Label, ...] = ()

    def laid_out(self) -> Topology:
        """Return routers that only a machine's own links join."""
        several = len(self.routers) > 1
        return Topology([_site(name, name if several else "") for name in self.routers], [])


AnyTopology: TypeAlias = Mesh | Torus | OpposedTori | Ring | Bus | Crossbar | Tree | Routers


def _at_full_rate(sites: list[Site], links: list[Connection], wire: Wire) -> Topology:
    """Return a topology whose sites have links of a wire's rate, without latency or energy."""
    at_site = Wire(wire.rate)
    return Topology(sites, links, outward=at_site, inward=at_site)


def _both_ways(pairs: Iterable[tuple[str, str]], wire: Wire) -> list[Connection]:
    """Return a link from the first to the second of each pair and one back."""
    return [Connection(*ends, wire) for a, b in pairs for ends in ((a, b), (b, a))]


def _spots(columns: int, rows: int) -> list[tuple[int, int]]:
    """Return the positions of a grid, row by row."""
    _is_a_chip(columns * rows)
    return [(x, y) for y, x in product(range(rows), range(columns))]


def _router(prefix: str, x: int, y: int) -> str:
    return f"{prefix}_{_label(x, y)}"


def _label(x: int, y: int) -> str:
    return f"{x}_{y}"


def _site(name: str, label: str, position: tuple[int, int] | None = None) -> Site:
    """Return a site whose links go to one router, of its own name."""
    return Site(name, label, (name,), (name,), position)


def _is_a_chip(sites: int) -> None:
    if sites > MOST_SITES:
        raise ValueError(f"topology: {sites} sites, expected at most {MOST_SITES}")


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
    launch: Amount = 0
    operators: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    mac_energy: dict[DType, Amount] = field(default_factory=dict)
    workspace: dict[str, Amount] = field(default_factory=dict)


class EngineFields(Part, frozen=True, kw_only=True):
    """A DMA engine; ``reaches`` names the memories at the other end, all by default."""

    name: Label = "dma"
    reaches: tuple[str, ...] | None = None
    loads: bool = True
    stores: bool = True
    channels: Count = 1
    setup: Amount = 0
    pipelined: bool = False
    rate: Fraction
    longest: Count | None = None
    dimensions: Count | None = None
    congruence: Count = 1
    multicast: bool = False
    descriptors: Count | None = None
    controller: Label | None = None


class MemoryFields(Part, frozen=True, kw_only=True):
    """Fields common to all memories; the size in one of three units."""

    size_bytes: Count | None = None
    size_kib: Count | None = None
    size_mib: Count | None = None
    alignment: Count = 1
    reserved: tuple[tuple[Amount, Amount], ...] = ()
    banks: Count | None = None
    energy_per_byte: Amount | None = None
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
    rate: Fraction | None = None
    latency: Amount = 0
    full_duplex: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sites and self.rate is None:
            raise ValueError("a DRAM with sites needs rate_bytes_per_cycle")
        if not self.sites and self.rate is not None:
            raise ValueError("a DRAM with rate_bytes_per_cycle needs sites for its ports")


class CentralEngine(EngineFields, frozen=True, kw_only=True):
    """An engine that belongs to no memory and moves data between any two that it reaches."""

    name: Label


class RemoteFields(Part, frozen=True, kw_only=True):
    """Cores read operands in other scratchpads; see ``RemoteReads``."""

    cycles_per_byte_hop: Fraction
    longest_route: Count | None = None


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
