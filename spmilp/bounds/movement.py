"""What must move and how quickly it can: least cycles, links and energy between memories."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from math import ceil, lcm
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.machine.machine import Link, MemoryKind
from spmilp.machine.routes import (
    DramTransfer,
    dram_transfers,
    routes_of,
    transfer_cycles,
    transfer_rate,
    usable_rates,
)
from spmilp.problem.loads import Load, Share
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, Femtojoules, LinkIdx, MemoryIdx

if TYPE_CHECKING:
    from scipy import sparse


MOST_MEMORIES = 96
"""On larger machines chains of transfers are not followed up: one transfer, by the best engine over
the best links of either end, is all that is counted of their cycles, and nothing of their energy.
"""

FAR = 1 << 60
"""Distance between memories that no chain of transfers connects."""

Ints: TypeAlias = NDArray[np.int64]
Ends: TypeAlias = frozenset[MemoryIdx]


class Option(NamedTuple):
    """A way to move data straight from one memory to another.

    Parameters
    ----------
    fixed
        Cycles before the first byte arrives.
    rate
        Bytes per cycle.
    energy
        Of a byte.
    """

    fixed: Cycles
    rate: Fraction
    energy: Femtojoules

    def cycles(self, size: Bytes) -> Cycles:
        """Return the cycles of a transfer."""
        return self.fixed + ceil(Fraction(size) / self.rate)


class Distances:
    """Least cycles and energy of chains of transfers on one machine.

    A value gets from one memory to another by transfers that follow one another (the next one
    starts when its source is valid), each of which lasts at least as long as the fastest engine
    takes alone. A multicast lasts no less than a transfer to each of its destinations alone, for
    its latency is the greatest of theirs, and its rate the least. A value may go in parts, so
    cycles are those of the bytes asked for, as a slice that is moved as a whole.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._machine = problem.machine
        self._cycles: dict[Bytes, Ints] = {}
        self._between: dict[tuple[Ends, Ends, Bytes], Cycles] = {}
        self._readable: dict[tuple[bool, ...], frozenset[MemoryIdx]] = {}
        self._written: dict[tuple[bool, ...], frozenset[MemoryIdx]] = {}

    @cached_property
    def worked_in(self) -> frozenset[MemoryIdx]:
        """The memories in which some core works."""
        return frozenset(core.memory for core in self._machine.cores)

    @cached_property
    def used(self) -> frozenset[MemoryIdx]:
        """The memories in which tasks read or write; all scratchpads with remote reads."""
        if self._machine.remote is None:
            return self.worked_in
        return self.worked_in | {memory.index for memory in self._machine.spms}

    def writable(self, task: Task) -> frozenset[MemoryIdx]:
        """Return the memories in which a task may work."""
        able = _able(task)
        if able not in self._written:
            self._written[able] = frozenset(
                core.memory for core in self._machine.cores if able[core.kind]
            )
        return self._written[able]

    def readable(self, task: Task) -> frozenset[MemoryIdx]:
        """Return the memories from which a task may read: with remote reads, all scratchpads."""
        able = _able(task)
        if able not in self._readable:
            found = self.writable(task)
            if self._machine.remote is not None:
                found |= {memory.index for memory in self._machine.spms}
            self._readable[able] = found
        return self._readable[able]

    def cycles(self, sources: Ends, targets: Ends, size: Bytes) -> Cycles:
        """Return the least cycles for ``size`` bytes from one of the sources to one target."""
        return self.cycles_away(sources, targets, size) if sources.isdisjoint(targets) else 0

    def cycles_away(self, sources: Ends, targets: Ends, size: Bytes) -> Cycles:
        """Return the least cycles for ``size`` bytes from one of the sources to another memory.

        The other one is among the targets; 0 where there is no way between two of them.
        """
        key = sources, targets, size
        if key not in self._between:
            if self.is_small:
                if size not in self._cycles:
                    self._cycles[size] = self._closed(lambda option: option.cycles(size))
                self._between[key] = _least(self._cycles[size], sources, targets)
            else:
                arriving = self._alone(targets, size, arriving=True)
                leaving = self._alone(sources, size, arriving=False)
                self._between[key] = max(arriving, leaving)
        return self._between[key]

    def energy(self, sources: Ends, targets: Ends, size: Bytes) -> Femtojoules:
        """Return the least energy for ``size`` bytes from one of the sources to one target."""
        if not self.is_small or not sources.isdisjoint(targets):
            return 0
        return _least(self._energies, sources, targets) * size

    def starts_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer lies in a DRAM at first in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].starts_in)

    def ends_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer must end in a DRAM in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].ends_in)

    @property
    def is_small(self) -> bool:
        """Whether chains of transfers are followed up."""
        return len(self._machine.memories) <= MOST_MEMORIES

    @cached_property
    def options(self) -> dict[tuple[MemoryIdx, MemoryIdx], set[Option]]:
        """For each pair of memories that a transfer can connect, what it may be like."""
        found: dict[tuple[MemoryIdx, MemoryIdx], set[Option]] = {}
        routes = routes_of(self._machine)
        for source in self._machine.memories:
            for target in self._machine.memories:
                pair = source.index, target.index
                engines = () if source is target else routes.engines_for(*pair)
                route = routes.between(*pair) if engines else None
                if route is None:
                    continue
                energy = (source.energy_per_byte or 0) + (target.energy_per_byte or 0)
                energy += sum(self._machine.links[n].energy_per_byte or 0 for n in route.links)
                found[pair] = {
                    Option(engine.setup + route.latency, transfer_rate(engine, route), energy)
                    for engine in (self._machine.engines[index] for index in engines)
                }
        return found

    def _is_far_dram(self, memory: MemoryIdx | None) -> bool:
        return (
            memory is not None
            and self._machine.memories[memory].kind is MemoryKind.DRAM
            and memory not in self.worked_in
        )

    def _alone(self, ends: Ends, size: Bytes, *, arriving: bool) -> Cycles:
        """Return cycles that no transfer is below whose target (or source) is one of some memories.

        Its route ends (or begins) with a link of that memory.
        """
        names = {self._machine.memories[memory].name for memory in ends}
        links = [
            link
            for link in self._machine.links
            if (link.target if arriving else link.source) in names
        ]
        engines = self._machine.engines
        if not links or not engines:
            return 0
        rate = min(max(link.rate for link in links), max(engine.rate for engine in engines))
        fixed = min(link.latency for link in links) + min(engine.setup for engine in engines)
        return fixed + ceil(Fraction(size) / rate)

    @cached_property
    def _sorts(self) -> tuple[tuple[frozenset[Option], ...], Ints]:
        """Return the different options of pairs, and a table of which a pair has; -1 for none."""
        count = len(self._machine.memories)
        number: dict[frozenset[Option], int] = {}
        which = np.full((count, count), -1, np.int64)
        for pair, options in self.options.items():
            which[pair] = number.setdefault(frozenset(options), len(number))
        return tuple(number), which

    @cached_property
    def _energies(self) -> Ints:
        return self._closed(lambda option: option.energy)

    def _closed(self, cost: Callable[[Option], int]) -> Ints:
        """Return the least sums of a cost over chains (Floyd, CACM 5(6), 1962)."""
        count = len(self._machine.memories)
        sorts, which = self._sorts
        costs = [min(FAR, *(cost(option) for option in options)) for options in sorts]
        best = np.array([*costs, FAR], np.int64)[which]
        for middle in range(count):
            np.minimum(best, best[:, middle, None] + best[None, middle, :], out=best)
        return best


def _able(task: Task) -> tuple[bool, ...]:
    return tuple(cycles is not None for cycles in task.cycles)


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


class Passage(NamedTuple):
    """The links into some memories, or out of them, at their best.

    Parameters
    ----------
    rate
        Bytes per cycle that the links of none of the memories exceed; 0 if nothing is known.
    overhead
        Bytes that each transfer holds on them beside its own, at least.
    """

    rate: Fraction
    overhead: Bytes


class MemoryLinks:
    """The passages into the memories in which tasks may work, and out of them.

    All routes into a memory end with one of the links that lead there, so the transfers into it
    hold their rates on these links together. One of ``n`` bytes, with ``fixed`` cycles of set-up
    and latency, holds

        rate * (fixed + ceil(n / rate))  >=  rate * fixed + n

    for all its cycles together. A multicast has the greatest latency of its destinations and no
    greater rate than the least of theirs, so with ``d`` the slowest destination, it holds at least
    ``rate(d) * fixed(d) + n``; where engines can multicast, the least overhead is that of any
    transfer. Links out of a memory likewise.
    """

    def __init__(self, problem: Problem, distances: Distances) -> None:
        self._machine = problem.machine
        self._distances = distances
        self._casts = any(engine.multicast for engine in problem.machine.engines)
        self._into = self._rates({link.target: [] for link in problem.machine.links}, into=True)
        self._out_of = self._rates({link.source: [] for link in problem.machine.links}, into=False)
        self._overheads = self._least_overheads()
        self._known: dict[tuple[frozenset[MemoryIdx], bool], Passage] = {}

    def into(self, task: Task) -> Passage:
        """Return the passage into the memory in which a task runs."""
        return self._passage(self._distances.writable(task), into=True)

    def out_of(self, task: Task) -> Passage:
        """Return the passage out of the memory in which a task runs."""
        return self._passage(self._distances.writable(task), into=False)

    def _passage(self, memories: frozenset[MemoryIdx], *, into: bool) -> Passage:
        key = memories, into
        if key not in self._known:
            names = [self._machine.memories[memory].name for memory in memories]
            rates = self._into if into else self._out_of
            overheads = [self._overheads.get((memory, into), 0) for memory in memories]
            self._known[key] = Passage(
                max((rates.get(name, Fraction(0)) for name in names), default=Fraction(0)),
                min(overheads, default=0),
            )
        return self._known[key]

    def _rates(self, links: dict[str, list[Link]], *, into: bool) -> dict[str, Fraction]:
        """Return the sum of the rates of the links at each node; of parallel ones the fastest."""
        for link in self._machine.links:
            links[link.target if into else link.source].append(link)
        found = {}
        for node, some in links.items():
            fastest: dict[str, Fraction] = {}
            for link in some:
                other = link.source if into else link.target
                fastest[other] = max(link.rate, fastest.get(other, link.rate))
            found[node] = sum(fastest.values(), Fraction(0))
        return found

    def _least_overheads(self) -> dict[tuple[MemoryIdx, bool], Bytes]:
        """Return the whole bytes of the least overhead of a transfer into and out of memories."""
        if not self._distances.is_small:
            return {}
        found: dict[tuple[MemoryIdx, bool], Bytes] = {}
        for (source, target), options in self._distances.options.items():
            least = min(int(option.rate * option.fixed) for option in options)
            for key in ((target, True), (source, False)):
                found[key] = min(least, found.get(key, least))
        if self._casts and found:
            found = dict.fromkeys(found, min(found.values()))
        return found


Route = tuple[LinkIdx, ...]

LARGEST = 2**31 - 1
"""The largest flow that SciPy can count."""

START, END = 0, 1
"""Nodes of the network of flows: before all routes, and behind all of them."""


def least_rate(
    links: Sequence[Link], rates: Sequence[Fraction], routes: Sequence[Route]
) -> Fraction:
    """Return bytes per cycle that transfers over some routes together cannot exceed.

    Parameters
    ----------
    links
        Of the machine.
    rates
        Bytes per cycle that the transfers can use of each link at most.
    routes
        Links of each, in the order of the path; none empty.
    """
    sets = _sets(links, rates, routes)
    return min(sum((rates[link] for link in some), Fraction(0)) for some in sets)


def _sets(
    links: Sequence[Link], rates: Sequence[Fraction], routes: Sequence[Route]
) -> Iterator[Collection[LinkIdx]]:
    yield {min(route, key=lambda link: (rates[link], link)) for route in routes}
    yield _most_common(rates, routes)
    cut = _least_cut(links, rates, routes)
    if cut is not None:
        yield cut


def _most_common(rates: Sequence[Fraction], routes: Sequence[Route]) -> set[LinkIdx]:
    """Take the link of most routes, then that of most routes without it, and so on."""
    chosen: set[LinkIdx] = set()
    left = routes
    while left:
        shares = Counter(link for route in left for link in route)
        best = min(shares, key=lambda link: (-shares[link], rates[link], link))
        chosen.add(best)
        left = [route for route in left if best not in route]
    return chosen


def _least_cut(
    links: Sequence[Link], rates: Sequence[Fraction], routes: Sequence[Route]
) -> set[LinkIdx] | None:
    """Return a least cut between where routes begin and where they end, along any links of theirs.

    ``None`` where routes begin at the end of others, and where rates are too large to count. (Ford
    and Fulkerson, "Maximal flow through a network", Canadian Journal of Mathematics 8, 1956.)
    """
    # Loaded only here: it takes a quarter of a second.
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    used = sorted({link for route in routes for link in route})
    begins = sorted({links[route[0]].source for route in routes})
    ends = sorted({links[route[-1]].target for route in routes})
    if not used or set(begins) & set(ends):
        return None
    scale = lcm(*(rates[link].denominator for link in used))
    scaled = [int(rates[link] * scale) for link in used]
    if sum(scaled) > LARGEST:
        return None
    ports = {name for link in used for name in (links[link].source, links[link].target)}
    node = {name: number for number, name in enumerate(sorted(ports), start=END + 1)}
    edges = [(node[links[link].source], node[links[link].target]) for link in used]
    outer = [(START, node[name]) for name in begins] + [(node[name], END) for name in ends]
    weights = np.array([*scaled, *([LARGEST] * len(outer))], np.int64)
    capacity = _matrix([*edges, *outer], weights, len(node) + 2)
    flow = maximum_flow(capacity, START, END).flow
    reached = set(breadth_first_order(_left(capacity, flow), START)[0].tolist())
    return {
        link
        for link, (source, target) in zip(used, edges, strict=True)
        if source in reached and target not in reached
    }


def _matrix(
    edges: Sequence[tuple[int, int]], weights: np.ndarray, nodes: int
) -> "sparse.csr_array":
    """Return a sparse matrix; parallel edges are added up."""
    from scipy import sparse

    made = sparse.csr_array((weights, tuple(zip(*edges, strict=True))), shape=(nodes, nodes))
    made.sum_duplicates()
    return made.astype(np.int32)


def _left(capacity: "sparse.csr_array", flow: "sparse.csr_array") -> "sparse.csr_array":
    """Return the edges that could carry more, in either direction."""
    left = (capacity.astype(np.int64) - flow.astype(np.int64)).tocsr()
    left.eliminate_zeros()
    return left


class Movement:
    """Least cycles and least link use of the transfers of one machine."""

    def __init__(self, problem: Problem) -> None:
        self._machine = problem.machine
        routes = routes_of(problem.machine)
        self._transfers: dict[tuple[MemoryIdx, bool], tuple[DramTransfer, ...]] = {
            (dram.index, outwards): (*dram_transfers(routes, dram.index, outwards=outwards),)
            for dram in self._machine.drams
            for outwards in (True, False)
        }
        self._cache: dict[tuple[MemoryIdx, Bytes, bool], Cycles] = {}
        self._uses: dict[tuple[MemoryIdx, Bytes, bool], Fraction] = {}
        self._overhead_out = {
            dram.index: self._least_overhead(dram.index) for dram in self._machine.drams
        }

    def least_load(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes out of a DRAM; 0 if none."""
        return self._least(dram, size, True)

    def least_store(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes into a DRAM; 0 if none."""
        return self._least(dram, size, False)

    def least_load_use(self, dram: MemoryIdx, load: Load) -> Fraction:
        """Return the least rate times cycles that a load out of a DRAM holds.

        A transfer of n bytes holds ``rate * (fixed + ceil(n / rate))``, which is at least
        ``rate * fixed + n``, of which the n may be of several loads.
        """
        if load.share is Share.ONE:
            return self._least_use(dram, load.bytes, True)
        if load.share is Share.BEGUN:
            return self._overhead_out[dram] + load.bytes
        return Fraction(load.bytes)

    def least_store_use(self, dram: MemoryIdx, size: Bytes) -> Fraction:
        """Return the least rate times cycles that ``size`` bytes hold on their way to a DRAM."""
        return self._least_use(dram, size, False)

    def rate_out(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers out of a DRAM together cannot exceed."""
        return self._rate_of(self._transfers[dram, True])

    def rate_in(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers into a DRAM together cannot exceed."""
        return self._rate_of(self._transfers[dram, False])

    def rate_both_ways(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers from and to a DRAM together cannot exceed."""
        return self._rate_of((*self._transfers[dram, True], *self._transfers[dram, False]))

    def _rate_of(self, transfers: Sequence[DramTransfer]) -> Fraction:
        routes = [one.route.links for one in transfers]
        return least_rate(self._machine.links, usable_rates(self._machine, transfers), routes)

    def _least(self, dram: MemoryIdx, size: Bytes, outwards: bool) -> Cycles:
        """Return the cycles of the fastest transfer; many buffers are of one size."""
        key = dram, size, outwards
        if key not in self._cache:
            cycles = (self._cycles(one, size) for one in self._transfers[dram, outwards])
            self._cache[key] = min(cycles, default=0)
        return self._cache[key]

    def _cycles(self, transfer: DramTransfer, size: Bytes) -> Cycles:
        return transfer_cycles(self._machine.engines[transfer.engine], transfer.route, size)

    def _least_use(self, dram: MemoryIdx, size: Bytes, outwards: bool) -> Fraction:
        """Return the least rate times cycles of the transfers."""
        key = dram, size, outwards
        if key not in self._uses:
            transfers = self._transfers[dram, outwards]
            uses = (one.rate * self._cycles(one, size) for one in transfers)
            self._uses[key] = min(uses, default=Fraction(size))
        return self._uses[key]

    def _least_overhead(self, dram: MemoryIdx) -> Fraction:
        """Return the least rate times cycles that transfers out of a DRAM hold before any byte."""
        engines = self._machine.engines
        overheads = (
            one.rate * (engines[one.engine].setup + one.route.latency)
            for one in self._transfers[dram, True]
        )
        return min(overheads, default=Fraction(0))


def cycles_at(use: Fraction, rate: Fraction) -> Cycles:
    """Return the whole cycles that ``use`` (bytes) needs at ``rate`` (bytes per cycle)."""
    return ceil(use / rate)
