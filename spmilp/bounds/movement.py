"""What must move and how quickly it can: least cycles, links and energy between memories."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from math import ceil
from typing import NamedTuple, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from spmilp.cached import Cache, cached
from spmilp.machine.machine import Link, Machine, MemoryKind
from spmilp.machine.routes import dram_transfers, routes_of, transfer_rate, usable_rates
from spmilp.problem.loads import Load, Share, least_loads
from spmilp.problem.problem import Buffer, Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, Femtojoules, LinkIdx, MemoryIdx

MOST_MEMORIES = 96
"""On larger machines nothing is counted of the cycles and the energy of chains of transfers."""

FAR = 1 << 60
"""Distance between memories that no chain of transfers connects."""

Ints: TypeAlias = NDArray[np.int64]
Ends: TypeAlias = frozenset[MemoryIdx]


class Option(NamedTuple):
    """A way to move data straight from one memory to another.

    ``setup`` cycles pass before its first byte is on the links, ``latency`` from its last one to
    its arrival. ``rate`` is in bytes per cycle, ``energy`` that of a byte.
    """

    setup: Cycles
    latency: Cycles
    rate: Fraction
    energy: Femtojoules

    def cycles(self, size: Bytes) -> Cycles:
        """Return the cycles of a transfer."""
        return self.setup + ceil(Fraction(size) / self.rate) + self.latency


class Passage(NamedTuple):
    """What some transfers must pass: links, or channels of engines.

    Those that start at ``a`` or later and have arrived by ``b`` together hold rate times cycles of
    at most ``rate * (b - a - apart)`` if there are any. Of links they hold nothing in the least
    set-up of them all after ``a``, and nothing in the least latency before ``b``. (Each counts
    once: set-ups on different channels overlap, and so do latencies.) ``rate`` is in bytes per
    cycle, or channels; 0 if nothing is known. ``apart`` is in cycles.
    """

    rate: Fraction
    apart: Cycles


class Distances:
    """Least cycles and energy of chains of transfers on one machine.

    A value gets from one memory to another by transfers that follow one another (the next one
    starts when its source is valid: when the one before it has arrived), each of which lasts at
    least as long as the fastest engine takes alone. A multicast lasts no less than a transfer to
    each of its destinations alone, for its latency is the greatest of theirs, and its rate the
    least. A value may go in parts, so cycles are those of the bytes asked for, as a slice that is
    moved as a whole.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._machine = problem.machine
        self.cache = Cache()

    @cached_property
    def worked_in(self) -> frozenset[MemoryIdx]:
        """The memories in which some core works."""
        return frozenset(core.memory for core in self._machine.cores)

    @cached_property
    def used(self) -> frozenset[MemoryIdx]:
        """The memories in which tasks read or write; all scratchpads with remote reads."""
        return self._with_remote(self.worked_in)

    def writable(self, task: Task) -> frozenset[MemoryIdx]:
        """Return the memories in which a task may work."""
        return self._memories_of(tuple([cycles is not None for cycles in task.cycles]))

    def readable(self, task: Task) -> frozenset[MemoryIdx]:
        """Return the memories from which a task may read: with remote reads, all scratchpads."""
        return self._with_remote(self.writable(task))

    @cached
    def _memories_of(self, able: tuple[bool, ...]) -> frozenset[MemoryIdx]:
        return frozenset(core.memory for core in self._machine.cores if able[core.kind])

    @cached
    def _with_remote(self, memories: Ends) -> frozenset[MemoryIdx]:
        remote = () if self._machine.remote is None else self._machine.spms
        return memories.union(memory.index for memory in remote)

    def cycles(self, sources: Ends, targets: Ends, size: Bytes) -> Cycles:
        """Return the least cycles for ``size`` bytes from one of the sources to one target."""
        return self.cycles_away(sources, targets, size) if sources.isdisjoint(targets) else 0

    @cached
    def cycles_away(self, sources: Ends, targets: Ends, size: Bytes) -> Cycles:
        """Return the least cycles for ``size`` bytes from one of the sources to another memory.

        The other one is among the targets; 0 where there is no way between two of them.
        """
        return _least(self._all_cycles(size), sources, targets) if self._is_small else 0

    def energy(self, sources: Ends, targets: Ends, size: Bytes) -> Femtojoules:
        """Return the least energy for ``size`` bytes from one of the sources to one target."""
        if not self._is_small or not sources.isdisjoint(targets):
            return 0
        return _least(self._energies, sources, targets) * size

    def into(self, task: Task) -> Passage:
        """Return the passage into the memory in which a task runs.

        All routes into a memory end with one of the links that lead there, so the transfers into it
        hold their rates on these links together, each for ``ceil(n / rate)`` cycles, which is ``n``
        bytes or more. A multicast has the greatest latency of its destinations.
        """
        return self._passage(self.writable(task))

    @cached
    def _passage(self, memories: Ends) -> Passage:
        names = [self._machine.memories[memory].name for memory in memories]
        return Passage(
            max((self._rates_in[name] for name in names), default=Fraction(0)),
            min((self._apart.get(memory, 0) for memory in memories), default=0),
        )

    @cached_property
    def _rates_in(self) -> dict[str, Fraction]:
        """The sum of the rates of the links into each node; of parallel ones the fastest."""
        fastest: dict[tuple[str, str], Fraction] = {}
        for link in self._machine.links:
            ends = link.source, link.target
            fastest[ends] = max(link.rate, fastest.get(ends, link.rate))
        found: dict[str, Fraction] = defaultdict(Fraction)
        for (_, target), rate in fastest.items():
            found[target] += rate
        return found

    @cached_property
    def _apart(self) -> dict[MemoryIdx, Cycles]:
        """The least set-up and the least latency of the transfers into each memory."""
        found: dict[MemoryIdx, list[Option]] = defaultdict(list)
        for (_, target), options in self._options.items() if self._is_small else ():
            found[target].extend(options)
        return {
            target: min(one.setup for one in some) + min(one.latency for one in some)
            for target, some in found.items()
        }

    def starts_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer lies in a DRAM at first in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].starts_in)

    def ends_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer must end in a DRAM in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].ends_in)

    @property
    def _is_small(self) -> bool:
        return len(self._machine.memories) <= MOST_MEMORIES

    @cached_property
    def _options(self) -> dict[tuple[MemoryIdx, MemoryIdx], frozenset[Option]]:
        """For each pair of memories that a transfer can connect, what it may be like."""
        found: dict[tuple[MemoryIdx, MemoryIdx], frozenset[Option]] = {}
        machine, routes = self._machine, routes_of(self._machine)
        for source, target in permutations(machine.memories, 2):
            pair = source.index, target.index
            engines = routes.engines_for(*pair)
            route = routes.between(*pair) if engines else None
            if route is None:
                continue
            energy = (source.energy_per_byte or 0) + (target.energy_per_byte or 0)
            energy += sum(machine.links[n].energy_per_byte or 0 for n in route.links)
            found[pair] = frozenset(
                Option(engine.setup, route.latency, transfer_rate(engine, route), energy)
                for engine in (machine.engines[index] for index in engines)
            )
        return found

    def _is_far_dram(self, memory: MemoryIdx | None) -> bool:
        return (
            memory is not None
            and self._machine.memories[memory].kind is MemoryKind.DRAM
            and memory not in self.worked_in
        )

    @cached_property
    def _energies(self) -> Ints:
        return self._closed(lambda option: option.energy)

    @cached
    def _all_cycles(self, size: Bytes) -> Ints:
        return self._closed(lambda option: option.cycles(size))

    def _closed(self, cost: Callable[[Option], int]) -> Ints:
        """Return the least sums of a cost over chains (Floyd, CACM 5(6), 1962)."""
        count = len(self._machine.memories)
        # Many pairs have the same options.
        costs = {some: min(map(cost, some)) for some in set(self._options.values())}
        best = np.full((count, count), FAR, np.int64)
        for pair, some in self._options.items():
            best[pair] = costs[some]
        for middle in range(count):
            np.minimum(best, best[:, middle, None] + best[None, middle, :], out=best)
        return best


def _least(distances: Ints, sources: Ends, targets: Ends) -> int:
    """Return the least distance between two memories; 0 where there is none.

    (Where a value has to move and no way leads there, no plan exists anyway.)
    """
    rows, columns = sorted(sources), sorted(targets)
    if not rows or not columns:
        return 0
    apart = np.array(rows)[:, None] != np.array(columns)[None, :]
    found = distances[np.ix_(rows, columns)][apart]
    least = int(found.min()) if found.size else FAR
    return least if least < FAR else 0


Route = tuple[LinkIdx, ...]


def least_rate(
    links: Sequence[Link], rates: Sequence[Fraction], routes: Sequence[Route]
) -> Fraction:
    """Return bytes per cycle that transfers over some routes together cannot exceed.

    That is the sum of the rates of any set of links that every route crosses: of the slowest link
    of each; of the link of most routes, then that of most routes without it, and so on; or of a
    least cut between where routes begin and where they end, along any links of theirs (Ford and
    Fulkerson, Canadian Journal of Mathematics 8, 1956). Transfers can use ``rates`` bytes per cycle
    of each link at most; ``routes`` have their links in the order of the path, none is empty.
    """
    if not routes:
        return Fraction(0)
    slowest = {min(route, key=lambda link: (rates[link], link)) for route in routes}
    common: set[LinkIdx] = set()
    while left := [route for route in routes if common.isdisjoint(route)]:
        shares = Counter(link for route in left for link in route)
        common.add(min(shares, key=lambda link: (-shares[link], rates[link], link)))
    found = min(sum((rates[link] for link in some), Fraction(0)) for some in (slowest, common))
    begins = {links[route[0]].source for route in routes}
    ends = {links[route[-1]].target for route in routes}
    if begins & ends:
        return found
    graph = nx.DiGraph()
    for link in {link for route in routes for link in route}:
        source, target = links[link].source, links[link].target
        known = graph.get_edge_data(source, target, {"capacity": 0})
        graph.add_edge(source, target, capacity=known["capacity"] + rates[link])
    # Edges without a capacity hold anything.
    graph.add_edges_from((START, name) for name in begins)
    graph.add_edges_from((name, END) for name in ends)
    return min(found, Fraction(nx.minimum_cut_value(graph, START, END)))


START, END = "before all routes", "behind all routes"


Uses: TypeAlias = tuple[Fraction, Fraction]
"""What moving some bytes holds at least: rate times cycles of links, and cycles of channels."""


class Store(NamedTuple):
    """A buffer that a task writes and that must end in a DRAM in which no core works."""

    task: Task
    buffer: Buffer
    uses: Uses


class DramTransfers:
    """All transfers between some memories and others; each of ``ways`` says whether it leads out.

    ``outside`` are the memories on the one side, usually one DRAM. Its ``passages`` are links of
    which each transfer crosses one, and the channels of their engines. A channel is held from the
    start on: only the latency of pipelined ones is apart.
    """

    def __init__(self, machine: Machine, outside: Ends, ways: Sequence[bool]) -> None:
        routes, others = routes_of(machine), {m.index for m in machine.memories} - outside
        across = [(far, other) for far in sorted(outside) for other in others]
        pairs = [pair if out else pair[::-1] for out in ways for pair in across]
        serving = sorted({index for pair in pairs for index in routes.engines_for(*pair)})
        engines = [machine.engines[index] for index in serving]
        # A multicast has the rate of one of its destinations, which may be on this side, too.
        known = [
            one
            for out in ways
            for far in sorted(outside)
            for one in dram_transfers(routes, far, outwards=out)
        ]
        alike = [one for one in known if one.other in others]
        setup = min((engine.setup for engine in engines), default=0)
        latency = min((one.route.latency for one in alike), default=0)
        links = [one.route.links for one in alike]
        rate = least_rate(machine.links, usable_rates(machine, known), links)
        pipelined = {engine.pipelined for engine in engines}
        channels = Fraction(sum(engine.channels for engine in engines))
        behind = 0 if False in pipelined else latency
        self.passages = Passage(rate, setup + latency), Passage(channels, behind)
        self._beside = setup + (0 if True in pipelined else latency)
        self._rates = {one.rate for one in known}
        self.cache = Cache()

    @cached
    def uses(self, size: Bytes, share: Share) -> Uses:
        """Return what they hold at least to move some bytes.

        A transfer of n bytes sends them in ``ceil(n / rate)`` cycles, in which it holds its rate on
        its links: n bytes or more, of which some may be of another load. It holds a channel for
        these cycles, its set-up and, where its engine is not pipelined, its latency. A multicast
        holds no less of either than a transfer to its slowest destination.
        """
        sending = min((Fraction(size) / rate for rate in self._rates), default=Fraction(0))
        whole = min((rate * ceil(size / rate) for rate in self._rates), default=Fraction(size))
        beside = 0 if share is Share.REST else self._beside
        return whole if share is Share.ONE else Fraction(size), beside + sending


class Gates(NamedTuple):
    """The transfers out of a DRAM, into it, and both."""

    out: DramTransfers
    into: DramTransfers
    both_ways: DramTransfers


@cached
def gates_of_drams(machine: Machine) -> dict[MemoryIdx, Gates]:
    """Return the transfers from and to each DRAM of a machine."""
    ways = (True,), (False,), (True, False)
    return {
        dram.index: Gates(
            *(DramTransfers(machine, frozenset((dram.index,)), some) for some in ways)
        )
        for dram in machine.drams
    }


class Movement:
    """Least cycles and least use of links and channels of the transfers of one problem.

    It has the ``gates`` of each DRAM.
    """

    def __init__(self, problem: Problem) -> None:
        self.cache = Cache()
        self._problem = problem
        self.distances = Distances(problem)
        self.gates = gates_of_drams(problem.machine)

    @cached_property
    def loads(self) -> tuple[tuple[Load, Uses], ...]:
        """What must leave DRAMs in which no core works, and what that holds."""
        return tuple(
            (load, self.gates[dram].out.uses(load.bytes, load.share))
            for load in least_loads(self._problem)
            if (dram := load.buffer.starts_in) is not None
            and self.distances.starts_in_dram(load.buffer.index)
        )

    @cached_property
    def stores(self) -> tuple[Store, ...]:
        """What must get to DRAMs in which no core works."""
        buffers = self._problem.buffers
        return tuple(
            Store(task, one, self.gates[end].into.uses(one.bytes, Share.ONE))
            for task in self._problem.tasks
            for one in map(buffers.__getitem__, task.writes)
            if (end := one.ends_in) is not None and self.distances.ends_in_dram(one.index)
        )
