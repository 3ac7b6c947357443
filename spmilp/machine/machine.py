"""The hardware: memories, cores, links, DMA engines. Integers and exact fractions only."""

from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol

from spmilp.cached import Cache
from spmilp.machine.controllers import CONTROLLERS
from spmilp.units import (
    Amount,
    Bytes,
    Coordinate,
    CoreIdx,
    Count,
    Cycles,
    EngineIdx,
    KindIdx,
    LinkIdx,
    MemoryIdx,
    Name,
    indices_are_positions,
)


class MemoryKind(StrEnum):
    """Level of a memory in the hierarchy."""

    DRAM = "dram"
    SHARED = "shared"
    SPM = "spm"


class Routing(StrEnum):
    """How the path of a transfer is chosen; see :mod:`spmilp.machine.routes`."""

    SHORTEST = "shortest"
    XY = "xy"
    ROUND_TRIP = "round_trip"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The addresses ``[start, end)`` of one memory, in bytes."""

    start: Bytes
    end: Bytes

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"byte range [{self.start}, {self.end}) is empty or negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory; its name is also its node in the graph of links.

    Parameters
    ----------
    size
        Bytes, reserved ones included; ``None`` for a DRAM without limit.
    alignment
        Offsets of residencies are multiples of this. A power of two.
    reserved
        Addresses that no plan may touch (stack, vector table, runtime), sorted and disjoint.
    banks
        Number of equal banks, for reports; ``None`` where unknown.
    energy_per_byte
        For one byte read or written by a transfer; ``None`` where unknown.
    """

    index: MemoryIdx
    name: Name
    kind: MemoryKind
    size: Count | None
    alignment: Count = 1
    reserved: tuple[ByteRange, ...] = ()
    banks: Count | None = None
    energy_per_byte: Amount | None = None

    def __post_init__(self) -> None:
        if self.size is None and self.kind is not MemoryKind.DRAM:
            raise ValueError(f"memory {self.name}: only a DRAM may be without a size")
        if self.alignment.bit_count() != 1:
            raise ValueError(f"memory {self.name}: alignment {self.alignment} B, no power of 2")
        last = 0
        for taken in self.reserved:
            if taken.start < last:
                raise ValueError(
                    f"memory {self.name}: reserved [{taken.start}, {taken.end}) begins before "
                    f"{last}, where the last one ends"
                )
            last = taken.end
        if self.size is not None and last > self.size:
            raise ValueError(f"memory {self.name}: reserved up to {last} B > size {self.size} B")

    @property
    def usable(self) -> Bytes | None:
        """Bytes that plans may use; ``None`` without limit."""
        if self.size is None:
            return None
        return self.size - sum(taken.end - taken.start for taken in self.reserved)


@dataclass(frozen=True, slots=True, kw_only=True)
class MacArray:
    """One way in which a core's multipliers work side by side for one data type.

    ``dtype`` is the ONNX data type of the operands, in lower case: ``float32``, ``float16``,
    ``int8``. ``unroll`` has ``(loop, size)`` for each loop spread over the array. Loops: ``B``
    batch, ``G`` groups, ``K`` output channels or columns, ``C`` input channels or reduction,
    ``Y``/``X`` output rows and columns, ``R``/``S`` kernel rows and columns. A tile whose loop does
    not divide by ``size`` leaves multipliers idle; an empty tuple is one MAC per cycle.
    """

    dtype: Name
    unroll: tuple[tuple[Name, Count], ...]


class MeasuredCycles(Protocol):
    """Knows cycles of tiles from measurements on the machine, and the hash of its file."""

    @property
    def sha256(self) -> str: ...

    def cycles(self, operator: str, work: Any, rule: Cycles) -> Cycles | None:
        """Return the cycles of a tile; ``None`` where it lies outside of what was measured.

        ``work`` is the tile's :class:`~spmilp.frontend.operators.geometry.Work`, ``operator`` the
        ONNX type that its group is built around, and ``rule`` the cycles by arrays, lanes and
        launch.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreKind:
    """Capabilities and speed of equal cores.

    Parameters
    ----------
    arrays
        Alternatives; for a data type the best one is used for each tile.
    lanes
        ``(dtype, elements per cycle)`` of element-wise work.
    launch
        Cycles to start a task, part of every task's cycles.
    operators
        ONNX operator types that it can run; ``None`` for all.
    mac_energy
        ``(dtype, femtojoules per MAC)`` where known.
    workspace
        ``(ONNX operator type, bytes)`` that kernels of its own need besides operands and result,
        ``*`` for all other types; the reference kernels' needs where it says nothing.
    measured
        What is known from measurements, in place of arrays, lanes and launch; no part of a file.
    """

    index: KindIdx
    name: Name
    arrays: tuple[MacArray, ...] = ()
    lanes: tuple[tuple[Name, Count], ...] = ()
    launch: Cycles = 0
    operators: frozenset[Name] | None = None
    mac_energy: tuple[tuple[Name, Amount], ...] = ()
    workspace: tuple[tuple[Name, Amount], ...] | None = None
    measured: MeasuredCycles | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A core: its kind, the memory its tasks work in, and where it lies on the chip."""

    index: CoreIdx
    name: Name
    kind: KindIdx
    memory: MemoryIdx
    position: tuple[Coordinate, Coordinate] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A directed connection between two nodes (memories or routers).

    ``rate`` is in bytes per cycle, exact; the transfers that use the link at one time reserve parts
    of it. ``latency`` is in cycles for the first byte, ``energy_per_byte`` for one byte over this
    hop; ``None`` where unknown.
    """

    index: LinkIdx
    source: Name
    target: Name
    rate: Fraction
    latency: Cycles = 0
    energy_per_byte: Amount | None = None

    def __post_init__(self) -> None:
        if self.source == self.target:
            raise ValueError(f"link {self.source} -> {self.target}: leads from a node to itself")
        if self.rate <= 0:
            raise ValueError(f"link {self.source} -> {self.target}: rate {self.rate}, expected > 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A DMA engine and the limits of its transfers.

    Parameters
    ----------
    owner
        The memory it belongs to: one end of each of its transfers. ``None`` for a central engine
        that moves data between any two memories it reaches.
    reaches
        The memories at the other end (both ends for a central engine), ``None`` for every one that
        has a route.
    loads, stores
        Whether it moves data into its owner, and out of it.
    channels
        Transfers at one time.
    setup
        Cycles of a channel before the first byte of each transfer.
    pipelined
        Whether a channel takes its next transfer once the last byte is sent; else when it has
        arrived.
    rate
        Bytes per cycle at most, exact.
    longest
        Bytes of one transfer at most; ``None`` without limit.
    dimensions
        Nested strides of one descriptor, the contiguous run included: 1 for a plain copy, 2 for
        rows at a stride. ``None`` without limit.
    congruence
        First source and first destination address of a transfer are equal modulo this; 1 for none.
    multicast
        Whether one transfer may have several destinations.
    descriptors
        Entries that one channel can queue; ``None`` where unknown.
    controller
        Its kind, one of :data:`~spmilp.machine.controllers.CONTROLLERS`. A transfer is allowed only
        if a chain of this controller's descriptors can express it. ``None`` if the controller is
        not known, which allows all.
    """

    index: EngineIdx
    name: Name
    owner: MemoryIdx | None
    reaches: tuple[MemoryIdx, ...] | None = None
    loads: bool = True
    stores: bool = True
    channels: Count = 1
    setup: Cycles = 0
    pipelined: bool = False
    rate: Fraction
    longest: Count | None = None
    dimensions: Count | None = None
    congruence: Count = 1
    multicast: bool = False
    descriptors: Count | None = None
    controller: str | None = None

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise ValueError(f"engine {self.name}: rate {self.rate} B/cycle, expected > 0")
        if self.controller is not None and self.controller not in CONTROLLERS:
            raise ValueError(
                f"engine {self.name}: no controller {self.controller}; there are "
                f"{', '.join(CONTROLLERS)}"
            )

    def busy_until(self, sent: Cycles, arrived: Cycles) -> Cycles:
        """Return when the channel of a transfer takes the next one."""
        return sent if self.pipelined else arrived

    def serves(self, source: MemoryIdx, destination: MemoryIdx) -> bool:
        """Return whether it may move data from ``source`` to ``destination``, routes left aside."""
        from_there = self.reaches is None or source in self.reaches
        to_there = self.reaches is None or destination in self.reaches
        if self.owner is None:
            return from_there and to_there
        loads = destination == self.owner and self.loads and from_there
        return loads or (source == self.owner and self.stores and to_there)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteReads:
    """A core may read an operand in another scratchpad while its task runs.

    Each byte and each link of the route from the operand's memory to the core's take
    ``cycles_per_byte_hop`` extra; a task's extra is the sum over its remote operands, each rounded
    up. A route has at most ``longest_route`` links; ``None`` without limit.
    """

    cycles_per_byte_hop: Fraction
    longest_route: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A many-core machine, complete and consistent.

    Parameters
    ----------
    frequency
        Cycles per second; ``None`` where times in seconds make no sense.
    positions
        ``(router, (x, y))`` of the routers that XY routing uses.
    remote
        How cores read remote scratchpads; ``None`` if they cannot.
    events
        Hardware events that firmware may wait for; ``None`` without limit.
    event_maximum
        What an event can count to: 1 where it is set or not set, ``None`` without limit.
    unverified
        The parameters that no source confirms; shown to the user.

    Attributes
    ----------
    cache
        Values computed from it; see :mod:`spmilp.cached`.

    Raises
    ------
    ValueError
        If an index is not a position, a name occurs twice, or a reference leads nowhere.
    """

    name: Name
    description: str = ""
    frequency: Count | None = None
    memories: tuple[Memory, ...]
    kinds: tuple[CoreKind, ...]
    cores: tuple[Core, ...]
    links: tuple[Link, ...] = ()
    engines: tuple[Engine, ...] = ()
    routing: Routing = Routing.SHORTEST
    positions: tuple[tuple[Name, tuple[Coordinate, Coordinate]], ...] = ()
    remote: RemoteReads | None = None
    events: Count | None = None
    event_maximum: Count | None = None
    unverified: tuple[str, ...] = ()
    cache: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named: dict[str, tuple[Memory | CoreKind | Core | Engine, ...]] = {
            "memory": self.memories,
            "kind": self.kinds,
            "core": self.cores,
            "engine": self.engines,
        }
        for what, rows in {**named, "link": self.links}.items():
            indices_are_positions(what, (row.index for row in rows))
        for what, owners in named.items():
            for name, count in Counter(row.name for row in owners).most_common(1):
                if count > 1:
                    raise ValueError(f"the {what} name {name} is given {count} times")
        if not self.cores:
            raise ValueError(f"machine {self.name} has no core")
        for core in self.cores:
            if not 0 <= core.kind < len(self.kinds):
                raise ValueError(f"core {core.name}: no kind {core.kind}")
            if not 0 <= core.memory < len(self.memories):
                raise ValueError(f"core {core.name}: no memory {core.memory}")
        for engine in self.engines:
            ends = (engine.owner, *(engine.reaches or ()))
            for memory in ends:
                if memory is not None and not 0 <= memory < len(self.memories):
                    raise ValueError(f"engine {engine.name}: no memory {memory}")

    @property
    def spms(self) -> tuple[Memory, ...]:
        """The scratchpads, in order of index."""
        return tuple(memory for memory in self.memories if memory.kind is MemoryKind.SPM)

    @property
    def drams(self) -> tuple[Memory, ...]:
        """The DRAMs, in order of index."""
        return tuple(memory for memory in self.memories if memory.kind is MemoryKind.DRAM)


YOUNGER = ("event_maximum", "controller", "workspace")
"""Fields that came after the format: left out where ``None``, so that older files keep their
hashes."""


def machine_to_json(machine: Any) -> Any:
    """Return a machine, or a part of one, as JSON data."""
    if is_dataclass(machine):
        # What has no part in comparisons is no part of the machine's description either.
        named = ((one.name, getattr(machine, one.name)) for one in fields(machine) if one.compare)
        written = ((n, value) for n, value in named if value is not None or n not in YOUNGER)
        return {name: machine_to_json(value) for name, value in written}
    if isinstance(machine, tuple | frozenset):
        rows = sorted(machine) if isinstance(machine, frozenset) else machine
        return [machine_to_json(row) for row in rows]
    if isinstance(machine, Fraction):
        return f"{machine.numerator}/{machine.denominator}"
    return machine.value if isinstance(machine, StrEnum) else machine
