"""The YAML format of a machine: templates that :mod:`spmilp.machine.expand` writes out.

Units stand in the names of fields. ``sites`` and ``reaches`` are lists of names with ``*``, ``?``
and ``[0-3]`` as in file names. ``docs/machines.md`` explains the format on an example.
"""

from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from spmilp.formats import FileRow
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
