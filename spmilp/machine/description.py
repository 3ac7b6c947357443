"""The YAML format of a machine: templates that :mod:`spmilp.machine.expand` writes out.

Units stand in the names of fields. ``sites`` and ``reaches`` are lists of names with ``*``, ``?``
and ``[0-3]`` as in file names. ``docs/machines.md`` explains the format on an example.
"""

from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from spmilp.machine.fields import LARGEST, Amount, Count, FileModel, Flag, Name, Rate, Ratio
from spmilp.units import Bytes

DType: TypeAlias = Literal["float32", "float16", "int8"]
Side: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=1024)]

LOOPS = ("B", "G", "K", "C", "Y", "X", "R", "S")
"""The loops that an array may spread, in the order in which an expanded machine lists them."""


class LinkFields(FileModel):
    """Properties of a link; energy in femtojoules per byte and hop."""

    rate_bytes_per_cycle: Rate
    latency_cycles: Amount = 0
    energy_fj_per_byte: Amount | None = None


class GridFields(LinkFields):
    """A mesh or torus of routers ``r_x_y``."""

    type: Literal["mesh", "torus"]
    columns: Side
    rows: Side
    routing: Literal["xy", "shortest"] = "xy"


class OpposedToriFields(LinkFields):
    """Two tori of one-way links in opposite directions, as on Tenstorrent's chips."""

    type: Literal["opposed_tori"]
    columns: Side
    rows: Side


class RingFields(LinkFields):
    """A ring of routers ``r_i``."""

    type: Literal["ring"]
    routers: Side


class BusFields(LinkFields):
    """One link that all transfers share; its only site is ``bus``."""

    type: Literal["bus"]


class CrossbarFields(LinkFields):
    """A link of its own for each memory to one router; its only site is ``xbar``."""

    type: Literal["crossbar"]


class TreeFields(FileModel):
    """A tree ``t``, ``t_0``, ``t_0_1``; ``levels`` from the root down."""

    class Level(LinkFields):
        """Children of each node of the level above, and the links to them."""

        children: Side

    type: Literal["tree"]
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=8)]


class RouterFields(FileModel):
    """Routers without links, or none at all: ``links`` lists every link."""

    type: Literal["links"]
    routers: tuple[Name, ...] = ()


TopologyFields: TypeAlias = Annotated[
    GridFields
    | OpposedToriFields
    | RingFields
    | BusFields
    | CrossbarFields
    | TreeFields
    | RouterFields,
    Field(discriminator="type"),
]


class ExtraLink(LinkFields):
    """A link between two nodes (routers or memories), both ways unless said otherwise."""

    source: Name
    target: Name
    both_ways: Flag = True


class ArrayFields(FileModel):
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


class KindFields(FileModel):
    """A kind of core; without ``operators`` it runs all."""

    arrays: tuple[ArrayFields, ...] = ()
    lanes: dict[DType, Count] = Field(default_factory=dict)
    launch_cycles: Amount = 0
    operators: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    mac_energy_fj: dict[DType, Amount] = Field(default_factory=dict)


class EngineFields(FileModel):
    """A DMA engine; ``reaches`` names the memories at the other end, all by default."""

    name: Name = "dma"
    reaches: tuple[str, ...] | None = None
    loads: Flag = True
    stores: Flag = True
    channels: Count = 1
    setup_cycles: Amount = 0
    rate_bytes_per_cycle: Rate
    longest_bytes: Count | None = None
    dimensions: Count | None = None
    congruence_bytes: Count = 1
    multicast: Flag = False
    descriptors: Count | None = None
    controller: Name | None = None


class MemoryFields(FileModel):
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

    @model_validator(mode="after")
    def _size_is_given_once(self) -> "MemoryFields":
        given = [self.size_bytes, self.size_kib, self.size_mib]
        if sum(size is not None for size in given) > 1:
            raise ValueError("give one of size_bytes, size_kib, size_mib")
        if self.size is not None and self.size > LARGEST:
            raise ValueError(f"a size of {self.size} B exceeds {LARGEST} B")
        return self

    @model_validator(mode="after")
    def _reserved_ranges_lie_one_behind_the_other(self) -> "MemoryFields":
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
        return self


class SizedFields(MemoryFields):
    """A memory that must have a size, at each of its sites."""

    sites: tuple[str, ...] = ("*",)
    count: Side = 1
    link: LinkFields | None = None

    @model_validator(mode="after")
    def _size_is_given(self) -> "SizedFields":
        if self.size is None:
            raise ValueError("give one of size_bytes, size_kib, size_mib")
        return self


class ScratchpadFields(SizedFields):
    """Equal scratchpads with their cores and engines, ``count`` on each of the sites.

    ``cores`` says how many cores of each kind share one scratchpad.
    """

    name: Name = "spm"
    cores: Annotated[dict[Name, Side], Field(min_length=1)]


class SharedFields(SizedFields):
    """Memories without cores (a second level, memory tiles), ``count`` on each of the sites."""

    name: Name


class DramFields(MemoryFields):
    """A DRAM with one port at each of ``sites``; each port has the whole rate.

    Reads and writes share a port's rate unless it is ``full_duplex``.
    """

    name: Name = "dram"
    sites: tuple[str, ...] = ()
    rate_bytes_per_cycle: Rate | None = None
    latency_cycles: Amount = 0
    full_duplex: Flag = False

    @model_validator(mode="after")
    def _ports_have_a_rate(self) -> "DramFields":
        if self.sites and self.rate_bytes_per_cycle is None:
            raise ValueError("a DRAM with sites needs rate_bytes_per_cycle")
        if not self.sites and self.rate_bytes_per_cycle is not None:
            raise ValueError("a DRAM with rate_bytes_per_cycle needs sites for its ports")
        return self


class CentralEngine(EngineFields):
    """An engine that belongs to no memory and moves data between any two that it reaches."""

    name: Name


class RemoteFields(FileModel):
    """Cores read operands in other scratchpads; see ``RemoteReads``."""

    cycles_per_byte_hop: Ratio
    longest_route_links: Count | None = None


class ProvenanceFields(FileModel):
    """Where the numbers come from: fields by path, with ``*`` for a part of a path."""

    fields: Annotated[tuple[str, ...], Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    verified: Flag = True


class MachineDescription(FileModel):
    """A whole machine file."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str = ""
    frequency_mhz: Rate | None = None
    topology: TopologyFields = RouterFields(type="links")
    core_kinds: Annotated[dict[Name, KindFields], Field(min_length=1)]
    scratchpads: Annotated[tuple[ScratchpadFields, ...], Field(min_length=1)]
    shared: tuple[SharedFields, ...] = ()
    dram: Annotated[tuple[DramFields, ...], Field(min_length=1)]
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
