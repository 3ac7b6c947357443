"""From the templates of a machine file to the machine: every memory, core, link and engine."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

from spmilp.formats import near_matches
from spmilp.machine.description import (
    LOOPS,
    MOST_SITES,
    Connection,
    DramFields,
    EngineFields,
    KindFields,
    MachineDescription,
    MemoryFields,
    ScratchpadFields,
    Site,
    SizedFields,
    Wire,
    topology_of,
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
from spmilp.units import KindIdx, MemoryIdx


def expand(description: MachineDescription) -> Machine:
    """Return the machine that a description stands for.

    Raises
    ------
    ValueError
        If a name leads nowhere or is given twice, or an object breaks its own rules.
    """
    return _Expansion(description).machine()


class _Expansion:
    """Collects the objects of one machine in the order of their indices."""

    def __init__(self, description: MachineDescription) -> None:
        self._given = description
        self._topology = topology_of(description)
        self._memories: list[Memory] = []
        self._cores: list[Core] = []
        self._connections = list(self._topology.connections)
        self._engines: list[tuple[EngineFields, str, MemoryIdx | None]] = []
        self._kinds = {name: index for index, name in enumerate(description.core_kinds)}

    def machine(self) -> Machine:
        """Expand everything."""
        for dram in self._given.dram:
            self._add_dram(dram)
        for shared in self._given.shared:
            places = list(self._places(shared, f"shared {shared.name}"))
            for site, own in places:
                label = own if len(places) > 1 else ""
                self._add_memory(shared, MemoryKind.SHARED, _joined(shared.name, label))
                self._attach(shared.link, site, f"shared {shared.name}")
                self._add_engines(shared, f"{shared.name}_", label)
        for scratchpad in self._given.scratchpads:
            for site, label in self._places(scratchpad, f"scratchpads {scratchpad.name}"):
                self._add_scratchpad(scratchpad, site, label)
        for link in self._given.links:
            self._add_link(link.source, link.target, link, both_ways=link.both_ways)
        self._engines += [(engine, engine.name, None) for engine in self._given.engines]
        remote = self._given.remote_reads
        return Machine(
            name=self._given.name,
            description=self._given.description,
            frequency=self._given.frequency,
            memories=tuple(self._memories),
            kinds=tuple(
                _kind_of(i, n, k) for i, (n, k) in enumerate(self._given.core_kinds.items())
            ),
            cores=tuple(self._cores),
            links=tuple(self._numbered_links()),
            engines=tuple(self._numbered_engines()),
            routing=self._topology.routing,
            positions=self._topology.positions,
            remote=None
            if remote is None
            else RemoteReads(
                cycles_per_byte_hop=remote.cycles_per_byte_hop,
                longest_route=remote.longest_route_links,
            ),
            events=self._given.events,
            event_maximum=self._given.event_maximum,
        )

    def _add_dram(self, dram: DramFields) -> None:
        memory = self._add_memory(dram, MemoryKind.DRAM, dram.name)
        for number, site in enumerate(self._sites(dram.sites, f"dram {dram.name}")):
            rate = dram.rate_bytes_per_cycle or Fraction(1)
            delayed, prompt = Wire(rate, dram.latency_cycles), Wire(rate)
            if dram.full_duplex:
                self._connect(memory.name, site, delayed, delayed)
                continue
            # Reads and writes pass the same link, so they share its rate.
            inside, outside = f"{memory.name}_port{number}_in", f"{memory.name}_port{number}_out"
            self._connections += [
                Connection(memory.name, inside, prompt),
                Connection(inside, outside, delayed),
                Connection(outside, memory.name, prompt),
                *(Connection(outside, node, prompt) for node in site.leave),
                *(Connection(node, inside, prompt) for node in site.enter),
            ]
        self._add_engines(dram, f"{dram.name}_", "")

    def _add_scratchpad(self, given: ScratchpadFields, site: Site | None, label: str) -> None:
        memory = self._add_memory(given, MemoryKind.SPM, _joined(given.name, label))
        self._attach(given.link, site, f"scratchpads {given.name}")
        for kind, sharing in given.cores.items():
            if kind not in self._kinds:
                raise ValueError(
                    f"scratchpads {given.name}: no core kind {kind}"
                    f"{near_matches(kind, tuple(self._kinds))}"
                )
            for number in range(sharing):
                mine = str(number) if sharing > 1 else ""
                self._is_a_chip(len(self._cores), "cores")
                self._cores.append(
                    Core(
                        index=len(self._cores),
                        name=_joined(kind, label, mine),
                        kind=self._kinds[kind],
                        memory=memory.index,
                        position=site.position if site else None,
                    )
                )
        self._add_engines(given, "" if given.name == "spm" else f"{given.name}_", label)

    def _add_memory(self, given: MemoryFields, kind: MemoryKind, name: str) -> Memory:
        self._is_a_chip(len(self._memories), "memories")
        memory = Memory(
            index=len(self._memories),
            name=name,
            kind=kind,
            size=given.size,
            alignment=given.alignment_bytes,
            reserved=tuple(ByteRange(start, end) for start, end in given.reserved_byte_ranges),
            banks=given.banks,
            energy_per_byte=given.energy_fj_per_byte,
        )
        self._memories.append(memory)
        return memory

    def _is_a_chip(self, count: int, what: str) -> None:
        if count >= MOST_SITES:
            raise ValueError(f"more than {MOST_SITES} {what}; no chip has as many")

    def _add_engines(self, given: MemoryFields, prefix: str, label: str) -> None:
        owner = self._memories[-1].index
        self._engines += [
            (engine, _joined(f"{prefix}{engine.name}", label), owner) for engine in given.dma
        ]

    def _attach(self, link: Wire | None, site: Site | None, who: str) -> None:
        """Link the newest memory to its site."""
        if site is None:
            return
        outward, inward = self._topology.outward, self._topology.inward
        if link is not None:
            outward = inward = link
        if outward is None or inward is None:
            raise ValueError(f"{who}: give its link, this topology has none of its own")
        self._connect(self._memories[-1].name, site, outward, inward)

    def _connect(self, memory: str, site: Site, outward: Wire, inward: Wire) -> None:
        self._connections += [Connection(memory, node, outward) for node in site.leave]
        self._connections += [Connection(node, memory, inward) for node in site.enter]

    def _add_link(self, source: str, target: str, wire: Wire, *, both_ways: bool) -> None:
        nodes = {memory.name for memory in self._memories} | self._topology.routers
        for name in (source, target):
            if name not in nodes:
                near = near_matches(name, sorted(nodes))
                raise ValueError(
                    f"link {source} -> {target}: no router or memory is called {name}{near}"
                )
        self._connections.append(Connection(source, target, wire))
        if both_ways:
            self._connections.append(Connection(target, source, wire))

    def _places(self, given: SizedFields, who: str) -> Iterator[tuple[Site | None, str]]:
        """Yield the site and the label of each memory of a group."""
        sites: Sequence[Site | None] = self._sites(given.sites, who)
        for site in sites or [None]:
            for number in range(given.count):
                label = site.label if site else ""
                yield site, _joined(label, str(number)) if given.count > 1 else label

    def _sites(self, patterns: Sequence[str], who: str) -> list[Site]:
        """Return the sites that match, in the topology's order."""
        known = [site.name for site in self._topology.sites]
        for pattern in patterns:
            if pattern != "*" and not any(fnmatchcase(name, pattern) for name in known):
                raise ValueError(
                    f"{who}: no site is called {pattern}{near_matches(pattern, known)}"
                )
        return [
            site
            for site in self._topology.sites
            if any(_chosen(site, pattern) for pattern in patterns)
        ]

    def _numbered_links(self) -> Iterator[Link]:
        memories = {memory.name for memory in self._memories}
        both = sorted(memories & self._topology.routers)
        if both:
            raise ValueError(f"{both[0]} names a memory and a router; rename the memory")
        taken: set[tuple[str, str]] = set()
        for index, connection in enumerate(self._connections):
            ends = connection.source, connection.target
            if ends in taken:
                raise ValueError(f"two links lead from {ends[0]} to {ends[1]}; give one their rate")
            taken.add(ends)
            wire = connection.wire
            yield Link(
                index=index,
                source=connection.source,
                target=connection.target,
                rate=wire.rate_bytes_per_cycle,
                latency=wire.latency_cycles,
                energy_per_byte=wire.energy_fj_per_byte,
            )

    def _numbered_engines(self) -> Iterator[Engine]:
        for index, (given, name, owner) in enumerate(self._engines):
            yield Engine(
                index=index,
                name=name,
                owner=owner,
                reaches=self._reached(given, name),
                loads=given.loads,
                stores=given.stores,
                channels=given.channels,
                setup=given.setup_cycles,
                rate=given.rate_bytes_per_cycle,
                longest=given.longest_bytes,
                dimensions=given.dimensions,
                congruence=given.congruence_bytes,
                multicast=given.multicast,
                descriptors=given.descriptors,
                controller=given.controller,
            )

    def _reached(self, given: EngineFields, name: str) -> tuple[MemoryIdx, ...] | None:
        if given.reaches is None:
            return None
        known = [memory.name for memory in self._memories]
        for pattern in given.reaches:
            if not any(fnmatchcase(memory, pattern) for memory in known):
                near = near_matches(pattern, known)
                raise ValueError(f"engine {name}: reaches no memory called {pattern}{near}")
        return tuple(
            memory.index
            for memory in self._memories
            if any(fnmatchcase(memory.name, pattern) for pattern in given.reaches)
        )


def _chosen(site: Site, pattern: str) -> bool:
    if pattern == "*":
        return not site.inner
    return fnmatchcase(site.name, pattern)


def _joined(*parts: str) -> str:
    """Join the parts of a name that are not empty."""
    return "_".join(part for part in parts if part)


def _kind_of(index: KindIdx, name: str, given: KindFields) -> CoreKind:
    """Return a kind of core."""
    arrays = []
    for array in given.arrays:
        sizes = ((loop, getattr(array, loop)) for loop in LOOPS)
        unroll = tuple((loop, size) for loop, size in sizes if size > 1)
        arrays.append(MacArray(dtype=array.dtype, unroll=unroll))
    return CoreKind(
        index=index,
        name=name,
        arrays=tuple(arrays),
        lanes=tuple(given.lanes.items()),
        launch=given.launch_cycles,
        operators=None if given.operators is None else frozenset(given.operators),
        mac_energy=tuple(given.mac_energy_fj.items()),
    )
