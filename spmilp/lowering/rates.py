"""Capacities and rates of a machine for estimates: how much its parts hold, how fast data moves."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import inf
from typing import NamedTuple

from spmilp.cached import cached
from spmilp.machine.machine import Core, Engine, Link, Machine, MemoryKind
from spmilp.machine.routes import Routes, dram_transfers, routes_of, usable_rates
from spmilp.units import Bytes, CoreIdx, Cycles, LinkIdx, MemoryIdx

SAMPLED_PAIRS = 64
"""About so many pairs of scratchpads are looked at for the mean route between two."""

NO_LIMIT: Bytes = 1 << 62
"""Stands for the size of a memory without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRates:
    """Capacities and rates of a machine, as floats: for estimates, not for plans.

    Parameters
    ----------
    dram_out, dram_in
        Bytes per cycle that all DRAMs together can send, and take; infinite without links.
    inbound, outbound
        Bytes per cycle over the links into a core's memory, and out of it: the least over these
        memories.
    channels, each
        Transfers at one time into a core's memory, where these are slowest, and bytes per cycle of
        each.
    from_dram, from_core
        Cycles that a transfer from DRAM, or from another core's memory, holds a channel besides
        those for its bytes.
    start
        Cycles of set-up and latency of a transfer from DRAM.
    on_chip
        Bytes per cycle of all links between scratchpads, divided by the mean number of links of
        such a route: what the cores can exchange in all. Zero where no transfer leads from one
        scratchpad to another.
    homes
        The memory in which each core works, by core.
    capacity
        Usable bytes of each core's memory, by core.
    alignment
        The largest alignment of the cores' memories, in bytes.
    sharers
        Cores that share each core's memory, by core.
    aggregate
        Usable bytes of all memories in which cores work.
    staging
        Usable bytes of the shared memories in which data stops between DRAM and these.
    """

    dram_out: float
    dram_in: float
    inbound: float
    outbound: float
    channels: float
    each: float
    from_dram: float
    from_core: float
    start: float
    on_chip: float
    homes: tuple[MemoryIdx, ...]
    capacity: tuple[Bytes, ...]
    alignment: Bytes
    sharers: tuple[int, ...]
    aggregate: Bytes
    staging: Bytes

    def share_of(self, core: CoreIdx) -> Bytes:
        """Return a core's share of the memory in which it works."""
        return self.capacity[core] // self.sharers[core]

    @property
    def least_share(self) -> Bytes:
        """The least share of a memory that a core has."""
        return min(map(self.share_of, range(len(self.capacity))))

    @property
    def pieces_are_shared(self) -> bool:
        """Whether a core can use what another one has loaded, without DRAM."""
        return self.on_chip > 0 or max(self.sharers) > 1


@cached
def machine_rates(machine: Machine) -> MachineRates:
    """Summarise a machine."""
    routes = routes_of(machine)
    homes = tuple(dict.fromkeys(core.memory for core in machine.cores))
    sharers = {home: sum(core.memory == home for core in machine.cores) for home in homes}
    dma = min((_inbound(machine, home, homes) for home in homes), key=lambda one: one.rate)
    inbound, outbound = (
        min(_port(machine, home, outgoing=way) for home in homes) for way in (False, True)
    )
    from_drams = (routes.between(dram.index, dma.into) for dram in machine.drams)
    far = max((route.latency for route in from_drams if route is not None), default=0)
    on_chip, latency = _exchange(machine, routes, homes)
    return MachineRates(
        dram_out=dram_rate(machine, outgoing=True),
        dram_in=dram_rate(machine, outgoing=False),
        inbound=inbound,
        outbound=outbound,
        channels=dma.channels,
        each=dma.each,
        from_dram=dma.setup + (0 if dma.pipelined else far),
        from_core=dma.setup + (0 if dma.pipelined else latency),
        start=dma.setup + far,
        on_chip=on_chip,
        homes=tuple(core.memory for core in machine.cores),
        capacity=tuple(usable_bytes(machine, core) for core in machine.cores),
        alignment=max(machine.memories[home].alignment for home in homes),
        sharers=tuple(sharers[core.memory] for core in machine.cores),
        aggregate=sum(machine.memories[home].usable or NO_LIMIT for home in homes),
        staging=_staging(machine, routes, homes),
    )


def _staging(machine: Machine, routes: Routes, homes: tuple[MemoryIdx, ...]) -> Bytes:
    """Return the bytes of the shared memories on the way from DRAM to those in which cores work."""
    paths = (routes.staging_path(dram.index, home) for dram in machine.drams for home in homes)
    passed = {machine.memories[memory] for path in paths for memory in (path or ())[1:-1]}
    return sum(one.usable or NO_LIMIT for one in passed if one.kind is MemoryKind.SHARED)


def usable_bytes(machine: Machine, core: Core) -> Bytes:
    """Return the bytes that plans may use in a core's memory."""
    usable = machine.memories[core.memory].usable
    return NO_LIMIT if usable is None else usable


def dram_rate(machine: Machine, *, outgoing: bool) -> float:
    """Return the bytes per cycle that transfers can use of all links that leave, or enter, a DRAM.

    Infinite without links.
    """
    drams, rates = {memory.name for memory in machine.drams}, _usable_rates(machine)
    ends = (link.source if outgoing else link.target for link in machine.links)
    total = sum((rate for rate, end in zip(rates, ends, strict=True) if end in drams), Fraction(0))
    return float(total) if total else inf


@cached
def _usable_rates(machine: Machine) -> tuple[Fraction, ...]:
    """Return the bytes per cycle of each link that transfers from and to DRAMs can use."""
    transfers = (
        dram_transfers(routes_of(machine), dram.index, outwards=outwards)
        for dram in machine.drams
        for outwards in (True, False)
    )
    return usable_rates(machine, chain.from_iterable(transfers))


def shared_dram_rate(machine: Machine) -> float:
    """Return the bytes per cycle of what DRAMs send and take together; infinite without limit.

    A port that reads and writes in turn is a link over which all transfers from a DRAM leave and
    over which all to it come in. Where only some ports are of this kind, there is no limit.
    """
    outward, inward = (_ports_of_drams(machine, outgoing=outgoing) for outgoing in (True, False))
    if not outward or outward != inward:
        return inf
    rates = _usable_rates(machine)
    return float(sum((rates[index] for index in outward), start=Fraction(0)))


def _ports_of_drams(machine: Machine, *, outgoing: bool) -> set[LinkIdx]:
    """Return of each link at a DRAM the last one that all its transfers pass."""
    onward: dict[str, list[Link]] = {}
    for link in machine.links:
        onward.setdefault(link.source if outgoing else link.target, []).append(link)
    found = set()
    for link in (link for dram in machine.drams for link in onward.get(dram.name, ())):
        passed, following = set[LinkIdx](), [link]
        while len(following) == 1 and following[0].index not in passed:
            (link,) = following
            passed.add(link.index)
            following = onward.get(link.target if outgoing else link.source, [])
        found.add(link.index)
    return found


class _Inbound(NamedTuple):
    """Transfers into one memory: how many at one time, and of each bytes per cycle and set-up."""

    into: MemoryIdx
    channels: float
    each: float
    setup: Cycles
    pipelined: bool

    @property
    def rate(self) -> float:
        """Bytes per cycle of all."""
        return self.channels * self.each


def _inbound(machine: Machine, home: MemoryIdx, homes: tuple[MemoryIdx, ...]) -> _Inbound:
    """Return how fast transfers fill a core's memory.

    An engine that serves several cores' memories counts for each with its share. What other cores
    push is left out: that keeps their engines busy.
    """

    def loads(engine: Engine, into: MemoryIdx) -> bool:
        memories = (memory.index for memory in machine.memories if memory.index != into)
        return any(engine.serves(memory, into) for memory in memories)

    channels, each, setup, pipelined = 0.0, 0.0, 0, True
    for engine in machine.engines:
        if engine.owner in homes and engine.owner != home:
            continue
        served = [one for one in homes if loads(engine, one)]
        if home in served:
            channels += engine.channels / (1 if engine.owner == home else len(served))
            each = max(each, float(engine.rate))
            setup = max(setup, engine.setup)
            pipelined = pipelined and engine.pipelined
    port = _port(machine, home, outgoing=False)
    return _Inbound(home, channels or inf, min(each or inf, port), setup, pipelined)


def _port(machine: Machine, home: MemoryIdx, *, outgoing: bool) -> float:
    """Return the bytes per cycle over all links that leave, or enter, a memory."""
    name = machine.memories[home].name
    ends = ((link.source if outgoing else link.target, link.rate) for link in machine.links)
    return float(sum(rate for end, rate in ends if end == name)) or inf


def _exchange(
    machine: Machine, routes: Routes, homes: tuple[MemoryIdx, ...]
) -> tuple[float, float]:
    """Return the bytes per cycle of all transfers between scratchpads, and their mean latency."""
    count = len(homes)
    step = -(-count * (count - 1) // SAMPLED_PAIRS) or 1
    pairs = (divmod(number, count - 1) for number in range(0, count * (count - 1), step))
    found = []
    for first, other in pairs:
        source, destination = homes[first], homes[(first + 1 + other) % count]
        route = routes.between(source, destination)
        if route is not None and routes.engines_for(source, destination):
            found.append(route)
    drams = {memory.name for memory in machine.drams}
    inner = [link.rate for link in machine.links if not {link.source, link.target} & drams]
    if not found or not inner:
        return 0.0, 0.0
    hops = max(1, sum(route.hops for route in found))
    latency = sum(route.latency for route in found) / len(found)
    return float(sum(inner)) * len(found) / hops, latency
