"""Hardware files of Stream, whose cores are in ZigZag's form, as machine files.

A file names the YAML file of each core, beside it, and what connects them. Sizes are in bits, rates
in bits per cycle, energies in pJ. The largest memory of a core is its scratchpad; smaller ones feed
the array and are left out. Neither format says anything of DMA engines, alignment or the loops that
an array spreads (a mapping does): see :data:`ASSUMED`. DRAM counts as unbounded, as in Stream.
"""

from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.formats import converted, fields_of
from spmilp.machine.description import Label
from spmilp.units import Amount, Count

KEYS = {"core_connectivity", "offchip_core_id", "operational_array"}
"""Fields that a machine file never has."""

DTYPES = ("int8", "float16", "float32")
BITS, CHANNELS, ALIGNMENT = 8, 4, 8
"""Of a byte; of a core's DMA engine; in bytes."""

ASSUMED = (
    "Assumed: in Stream a transfer takes nothing but the cycles of its bytes, at any address, and "
    "a MAC of any data type one cycle; an array spreads K, C, X and Y, or R, S and K for pooling, "
    "in the order of its dimensions; a core for all operators has a lane for each K; an access "
    "costs what the dearer of reading and writing does."
)
ASSUMED_FIELDS = (
    *("core_kinds.*.arrays", "core_kinds.*.lanes", "core_kinds.*.mac_energy_fj"),
    *("scratchpads.*.dma", "scratchpads.*.alignment_bytes", "scratchpads.*.energy_fj_per_byte"),
    *("dram.*.alignment_bytes", "dram.*.energy_fj_per_byte"),
)
POOLING = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})

Cost = Annotated[float, Meta(ge=0, le=1e12)]


class Port(Struct, frozen=True):
    """A port of a memory; bits per cycle."""

    type: Literal["read", "write", "read_write"]
    bandwidth_max: Count


class MemoryLevel(Struct, frozen=True):
    """A memory: bits, pJ of an access over a whole port, and cycles."""

    size: Count
    r_cost: Cost
    w_cost: Cost
    ports: Annotated[tuple[Port, ...], Meta(min_length=1)]
    latency: Amount = 1

    def energy_per_byte(self) -> int:
        """Return the femtojoules of the dearer of reading and writing a byte."""
        costs = (("read", self.r_cost), ("write", self.w_cost))
        ways = (
            (cost, [p.bandwidth_max for p in self.ports if way in p.type]) for way, cost in costs
        )
        return round(max(1000 * cost * BITS / max(widths) for cost, widths in ways if widths))


class OperationalArray(Struct, frozen=True):
    """Multipliers; pJ of a MAC."""

    unit_energy: Cost
    sizes: Annotated[tuple[Amount, ...], Meta(min_length=1, max_length=4)]


class CoreFile(Struct, frozen=True):
    """A core; without ``operator_types`` it runs all."""

    name: Label
    memories: Annotated[dict[Label, MemoryLevel], Meta(min_length=1)]
    operational_array: OperationalArray
    operator_types: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None

    def largest(self) -> tuple[str, MemoryLevel]:
        """Return the largest memory, and its name."""
        return max(self.memories.items(), key=lambda one: one[1].size)


class Connection(Struct, frozen=True):
    """A link between two cores both ways, or a bus; bits per cycle."""

    type: Literal["link", "bus"]
    cores: Annotated[tuple[Amount, ...], Meta(min_length=2)]
    bandwidth: Count


class StreamHardware(Struct, frozen=True):
    """A hardware file: files of cores by number; pJ per cycle of a connection."""

    name: str
    cores: Annotated[dict[Amount, str], Meta(min_length=2)]
    offchip_core_id: Amount
    core_connectivity: Annotated[tuple[Connection, ...], Meta(min_length=1)]
    unit_energy_cost: Cost = 0.0
    core_memory_sharing: tuple[Any, ...] = ()

    def wire(self, one: Connection) -> dict[str, Any]:
        """Return a link's rate, and its energy where it is not 0."""
        energy = round(1000 * self.unit_energy_cost * BITS / one.bandwidth)
        fields = {"energy_fj_per_byte": energy} if energy else {}
        return {"rate_bytes_per_cycle": f"{one.bandwidth}/{BITS}", **fields}


def is_zigzag(content: Mapping[str, object]) -> bool:
    """Say whether a YAML file is of Stream or ZigZag rather than a machine file."""
    return not KEYS.isdisjoint(content)


def machine_of_zigzag(content: dict[str, Any], origin: str) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a machine file, and the bytes of the cores' files.

    Raises a ``FileError`` if a core's file cannot be used, and a ``ValueError`` if a field is
    missing, of another type, or contradicts another one.
    """
    if "operational_array" in content:
        raise ValueError("operational_array: a core alone; give the file that lists it under cores")
    given = converted(content, StreamHardware)
    _every_number_is_a_core(given)
    files, read = dict[str, CoreFile](), b""
    for name in dict.fromkeys(given.cores.values()):
        path = str(Path(origin).parent / name)
        data = read_bytes(path)
        read += data
        try:
            files[name] = converted(fields_of(data, path, "the fields of a core"), CoreFile)
        except ValueError as error:
            raise FileError(f"{path}: {error}") from error
    return _machine(given, files), read


def _every_number_is_a_core(given: StreamHardware) -> None:
    outside = given.offchip_core_id
    if outside not in given.cores:
        raise ValueError(f"offchip_core_id: {outside}; the cores are {_listed(given.cores)}")
    for number, one in enumerate(given.core_connectivity):
        if not given.cores.keys() >= set(one.cores) or (one.type == "link" and len(one.cores) != 2):
            raise ValueError(
                f"core_connectivity.{number}.cores: {_listed(one.cores)}; expected "
                f"{'two' if one.type == 'link' else 'some'} of {_listed(given.cores)}"
            )
    if given.core_memory_sharing:
        raise ValueError("core_memory_sharing: is not read; a machine file can say as much")
    if (buses := sum(one.type == "bus" for one in given.core_connectivity)) > 1:
        raise ValueError(f"core_connectivity: {buses} buses, expected at most 1")


def _machine(given: StreamHardware, files: Mapping[str, CoreFile]) -> dict[str, Any]:
    outside, wires = given.offchip_core_id, given.core_connectivity
    bus = next((one for one in wires if one.type == "bus"), None)
    on_bus = set(bus.cores) if bus else set[int]()
    names, kinds, scratchpads = {outside: "dram"}, {}, []
    for name, file in files.items():
        mine = [core for core, own in given.cores.items() if own == name and core != outside]
        if not mine:
            continue
        if file.name in kinds:
            raise ValueError(f"cores: two files have the name {file.name}; give each its own")
        kinds[file.name] = _kind(file)
        memory = f"{file.name}_{file.largest()[0]}"
        names |= {core: f"{memory}_{n}" if mine[1:] else memory for n, core in enumerate(mine)}
        there = on_bus.intersection(mine)
        if there and there != set(mine):
            raise ValueError(
                f"core_connectivity: of the cores {_listed(mine)} of {name} only {_listed(there)} "
                "are on the bus; give the others a file of their own"
            )
        rates = [one.bandwidth for one in wires if not set(mine).isdisjoint(one.cores)]
        where = {"name": memory, "sites": ["bus"] if there else [], "count": len(mine)}
        scratchpads.append({**where, **_scratchpad(file, max(rates, default=BITS))})
    return {
        "name": given.name,
        "topology": {"type": "bus", **given.wire(bus)} if bus else {"type": "links"},
        "core_kinds": kinds,
        "scratchpads": scratchpads,
        "dram": [_dram(files[given.cores[outside]].largest()[1], is_on_bus=outside in on_bus)],
        "links": [
            {"source": names[one.cores[0]], "target": names[one.cores[1]], **given.wire(one)}
            for one in wires
            if one.type == "link"
        ],
        "provenance": [
            {"fields": ["*"], "source": "The hardware file and those of its cores."},
            {"fields": list(ASSUMED_FIELDS), "source": ASSUMED, "verified": False},
        ],
    }


def _kind(core: CoreFile) -> dict[str, Any]:
    sizes, operators = core.operational_array.sizes, core.operator_types
    if 0 in sizes:
        raise ValueError(f"operational_array.sizes of {core.name}: got 0; expected 1 or more")
    pools = operators is not None and POOLING.issuperset(operators) and len(sizes) == 3
    loops = dict(zip("RSK" if pools else "KCXY", sizes, strict=False))
    return {
        "arrays": [{"dtype": dtype, **loops} for dtype in DTYPES],
        "lanes": dict.fromkeys(DTYPES, loops["K"] if operators is None else prod(sizes)),
        "mac_energy_fj": dict.fromkeys(DTYPES, round(1000 * core.operational_array.unit_energy)),
        **({} if operators is None else {"operators": list(operators)}),
    }


def _scratchpad(core: CoreFile, bandwidth: int) -> dict[str, Any]:
    """Return a core's scratchpad, with an engine as quick as the core's widest connection."""
    name, memory = core.largest()
    if memory.size % BITS:
        said = f"memories.{name}.size of {core.name}: {memory.size} bit"
        raise ValueError(f"{said}; expected a multiple of {BITS}")
    rate = f"{bandwidth}/{BITS}"
    return {
        "cores": {core.name: 1},
        "size_bytes": memory.size // BITS,
        "alignment_bytes": ALIGNMENT,
        "energy_fj_per_byte": memory.energy_per_byte(),
        "dma": [{"channels": CHANNELS, "pipelined": True, "rate_bytes_per_cycle": rate}],
    }


def _dram(memory: MemoryLevel, *, is_on_bus: bool) -> dict[str, Any]:
    energy = {"alignment_bytes": ALIGNMENT, "energy_fj_per_byte": memory.energy_per_byte()}
    if not is_on_bus:
        return energy
    both, read, write = (
        sum(port.bandwidth_max for port in memory.ports if port.type == way)
        for way in ("read_write", "read", "write")
    )
    port = {"rate_bytes_per_cycle": f"{both or min(read, write)}/{BITS}", "full_duplex": not both}
    return {"sites": ["bus"], "latency_cycles": memory.latency, **port, **energy}


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
