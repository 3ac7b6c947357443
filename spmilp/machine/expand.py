"""From the templates of a machine file to the machine: every memory, core, link and engine."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from spmilp.formats import near_matches
from spmilp.machine.description import (
    LOOPS,
    Connection,
    DramFields,
    EngineFields,
    KindFields,
    MachineDescription,
    MemoryFields,
    Part,
    ScratchpadFields,
    Site,
    SizedFields,
    Wire,
)
from spmilp.machine.machine import (
    ByteRange,
    Core,
    CoreKind,
    Engine,
    Link,
    MacArray,
    Machine,
    Memory,
    MemoryKind,
    RemoteReads,
)
from spmilp.units import MemoryIdx


def expand(description: MachineDescription) -> Machine:
    """Return the machine that a description stands for.

    Raises a ``ValueError`` if a name leads nowhere or is given twice, or an object breaks its own
    rules.
    """
    return _Expansion(description).machine()


class _Expansion:
    """Collects the objects of one machine in the order of their indices."""

    def __init__(self, description: MachineDescription) -> None:
        self._given = description
        self._topology = description.topology.laid_out()
        self._memories: list[Memory] = []
        self._cores: list[Core] = []
        self._links = list(self._topology.links)
        self._engines: list[tuple[EngineFields, str, MemoryIdx | None]] = []
        self._kinds = {name: index for index, name in enumerate(description.core_kinds)}

    def machine(self) -> Machine:
        """Expand everything."""
        given, topology = self._given, self._topology
        for dram in given.dram:
            self._add_memory(dram, MemoryKind.DRAM, dram.name)
            self._add_ports(dram)
            self._add_engines(dram, f"{dram.name}_", "")
        for shared in given.shared:
            places = list(self._places(shared, f"shared {shared.name}"))
            for site, own in places:
                label = own if len(places) > 1 else ""
                self._add_memory(shared, MemoryKind.SHARED, _joined(shared.name, label))
                self._attach(shared.link, site, f"shared {shared.name}")
                self._add_engines(shared, f"{shared.name}_", label)
        for scratchpad in given.scratchpads:
            for site, label in self._places(scratchpad, f"scratchpads {scratchpad.name}"):
                self._add_scratchpad(scratchpad, site, label)
        for link in given.links:
            self._add_link(link.source, link.target, link, both_ways=link.both_ways)
        self._engines += [(engine, engine.name, None) for engine in given.engines]
        megahertz, remote = given.frequency_mhz, given.remote_reads
        return Machine(
            **_same(given, Machine, "description", "events", "event_maximum"),
            name=given.name,
            frequency=None if megahertz is None else int(megahertz * 10**6),
            memories=tuple(self._memories),
            kinds=tuple(_kind_of(i, n, k) for i, (n, k) in enumerate(given.core_kinds.items())),
            cores=tuple(self._cores),
            links=tuple(self._numbered_links()),
            engines=tuple(self._numbered_engines()),
            routing=topology.routing,
            positions=topology.positions,
            remote=None if remote is None else RemoteReads(**_same(remote, RemoteReads)),
        )

    def _add_ports(self, dram: DramFields) -> None:
        """Link the newest memory, a DRAM, to its sites."""
        for number, site in enumerate(self._sites(dram.sites, f"dram {dram.name}")):
            rate = dram.rate or Fraction(1)
            delayed, prompt = Wire(rate, dram.latency), Wire(rate)
            if dram.full_duplex:
                self._connect(dram.name, site, delayed, delayed)
                continue
            # Reads and writes pass the same link, so they share its rate.
            inside, outside = f"{dram.name}_port{number}_in", f"{dram.name}_port{number}_out"
            self._links += [
                Connection(dram.name, inside, prompt),
                Connection(inside, outside, delayed),
                Connection(outside, dram.name, prompt),
                *(Connection(outside, node, prompt) for node in site.leave),
                *(Connection(node, inside, prompt) for node in site.enter),
            ]

    def _add_scratchpad(self, given: ScratchpadFields, site: Site | None, label: str) -> None:
        self._add_memory(given, MemoryKind.SPM, _joined(given.name, label))
        self._attach(given.link, site, f"scratchpads {given.name}")
        for kind, sharing in given.cores.items():
            if kind not in self._kinds:
                near = near_matches(kind, tuple(self._kinds))
                raise ValueError(f"scratchpads {given.name}: no core kind {kind}{near}")
            for number in range(sharing):
                mine = str(number) if sharing > 1 else ""
                self._cores.append(
                    Core(
                        index=len(self._cores),
                        name=_joined(kind, label, mine),
                        kind=self._kinds[kind],
                        memory=self._memories[-1].index,
                        position=site.position if site else None,
                    )
                )
        self._add_engines(given, "" if given.name == "spm" else f"{given.name}_", label)

    def _add_memory(self, given: MemoryFields, kind: MemoryKind, name: str) -> None:
        fields = _same(given, Memory, "size", "alignment", "banks", "energy_per_byte")
        reserved = tuple(ByteRange(start, end) for start, end in given.reserved)
        index = len(self._memories)
        self._memories.append(
            Memory(index=index, name=name, kind=kind, reserved=reserved, **fields)
        )

    def _add_engines(self, given: MemoryFields, prefix: str, label: str) -> None:
        owner = self._memories[-1].index
        names = (_joined(f"{prefix}{engine.name}", label) for engine in given.dma)
        self._engines += zip(given.dma, names, [owner] * len(given.dma), strict=True)

    def _attach(self, link: Wire | None, site: Site | None, who: str) -> None:
        """Link the newest memory to its site."""
        outward, inward = link or self._topology.outward, link or self._topology.inward
        if site is None:
            return
        if outward is None or inward is None:
            raise ValueError(f"{who}: give its link, this topology has none of its own")
        self._connect(self._memories[-1].name, site, outward, inward)

    def _connect(self, memory: str, site: Site, outward: Wire, inward: Wire) -> None:
        self._links += [Connection(memory, node, outward) for node in site.leave]
        self._links += [Connection(node, memory, inward) for node in site.enter]

    def _add_link(self, source: str, target: str, wire: Wire, *, both_ways: bool) -> None:
        nodes = {memory.name for memory in self._memories} | self._topology.routers
        for name in (source, target):
            if name not in nodes:
                near = near_matches(name, sorted(nodes))
                raise ValueError(
                    f"link {source} -> {target}: no router or memory is called {name}{near}"
                )
        self._links.append(Connection(source, target, wire))
        if both_ways:
            self._links.append(Connection(target, source, wire))

    def _places(self, given: SizedFields, who: str) -> Iterator[tuple[Site | None, str]]:
        """Yield the site and the label of each memory of a group."""
        sites: Sequence[Site | None] = self._sites(given.sites, who)
        for site in sites or [None]:
            for number in range(given.count):
                label = site.label if site else ""
                yield site, _joined(label, str(number)) if given.count > 1 else label

    def _sites(self, patterns: Sequence[str], who: str) -> list[Site]:
        """Return the sites that match, in the topology's order."""
        sites = self._topology.sites
        _all_match(patterns, [site.name for site in sites], f"{who}: no site is called")
        return [
            site
            for site in sites
            if any(
                not site.inner if pattern == "*" else fnmatchcase(site.name, pattern)
                for pattern in patterns
            )
        ]

    def _numbered_links(self) -> Iterator[Link]:
        both = sorted({memory.name for memory in self._memories} & self._topology.routers)
        if both:
            raise ValueError(f"{both[0]} names a memory and a router; rename the memory")
        taken: set[tuple[str, str]] = set()
        for index, (source, target, wire) in enumerate(self._links):
            if (source, target) in taken:
                raise ValueError(f"two links lead from {source} to {target}; give one their rate")
            taken.add((source, target))
            fields = _same(wire, Link, "rate", "latency", "energy_per_byte")
            yield Link(index=index, source=source, target=target, **fields)

    def _numbered_engines(self) -> Iterator[Engine]:
        names = [memory.name for memory in self._memories]
        for index, (given, name, owner) in enumerate(self._engines):
            reaches: tuple[MemoryIdx, ...] | None = None
            if given.reaches is not None:
                _all_match(given.reaches, names, f"engine {name}: reaches no memory called")
                reaches = tuple(
                    memory
                    for memory, each in enumerate(names)
                    if any(fnmatchcase(each, pattern) for pattern in given.reaches)
                )
            own = {"index": index, "name": name, "owner": owner, "reaches": reaches}
            yield Engine(**{**_same(given, Engine), **own})


def _same(given: Part, kind: type, *names: str) -> dict[str, Any]:
    """Return the fields of a template that a class of the machine has by the same name."""
    own = names or [one.name for one in fields(kind) if hasattr(given, one.name)]
    return {name: getattr(given, name) for name in own}


def _all_match(patterns: Iterable[str], known: Sequence[str], said: str) -> None:
    for pattern in patterns:
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in known):
            raise ValueError(f"{said} {pattern}{near_matches(pattern, known)}")


def _joined(*parts: str) -> str:
    """Join the parts of a name that are not empty."""
    return "_".join(part for part in parts if part)


def _kind_of(index: int, name: str, given: KindFields) -> CoreKind:
    """Return a kind of core."""
    arrays = []
    for array in given.arrays:
        unroll = tuple((loop, n) for loop in LOOPS if (n := getattr(array, loop)) > 1)
        arrays.append(MacArray(dtype=array.dtype, unroll=unroll))
    return CoreKind(
        index=index,
        name=name,
        arrays=tuple(arrays),
        lanes=tuple(given.lanes.items()),
        launch=given.launch,
        operators=None if given.operators is None else frozenset(given.operators),
        mac_energy=tuple(given.mac_energy.items()),
        workspace=tuple(given.workspace.items()) or None,
    )
