"""Least cost of moving data between DRAM and the chip, over whatever engine and route.

All that moves over some routes crosses each set of links that every one of them crosses, so the
rate of its links together is a limit whichever set is taken. The least of all may be hard to find
(a hitting set); three are tried.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from math import ceil, lcm
from typing import TYPE_CHECKING

import numpy as np

from spmilp.machine.machine import Link
from spmilp.machine.routes import Routes, transfer_cycles, transfer_rate
from spmilp.problem.loads import Load, Share
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, MemoryIdx

if TYPE_CHECKING:
    from scipy import sparse

Route = tuple[LinkIdx, ...]

LARGEST = 2**31 - 1
"""The largest flow that SciPy can count."""

START, END = 0, 1
"""Nodes of the network of flows: before all routes, and behind all of them."""


def least_rate(links: Sequence[Link], routes: Sequence[Route]) -> Fraction:
    """Return bytes per cycle that transfers over some routes together cannot exceed.

    Parameters
    ----------
    links
        Of the machine.
    routes
        Links of each, in the order of the path; none empty.
    """
    rates = [link.rate for link in links]
    sets = _sets(links, rates, routes)
    return min(sum((rates[link] for link in some), Fraction(0)) for some in sets)


def _sets(
    links: Sequence[Link], rates: Sequence[Fraction], routes: Sequence[Route]
) -> Iterator[Collection[LinkIdx]]:
    yield {min(route, key=lambda link: (rates[link], link)) for route in routes}
    yield _most_common(rates, routes)
    cut = _least_cut(links, routes)
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


def _least_cut(links: Sequence[Link], routes: Sequence[Route]) -> set[LinkIdx] | None:
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
    scale = lcm(*(links[link].rate.denominator for link in used))
    scaled = [int(links[link].rate * scale) for link in used]
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
        self._routes = Routes(problem.machine)
        self._out: dict[MemoryIdx, tuple[tuple[EngineIdx, MemoryIdx], ...]] = {}
        self._in: dict[MemoryIdx, tuple[tuple[EngineIdx, MemoryIdx], ...]] = {}
        self._cache: dict[tuple[MemoryIdx, Bytes, bool], Cycles] = {}
        self._uses: dict[tuple[MemoryIdx, Bytes, bool], Fraction] = {}
        for dram in self._machine.drams:
            self._out[dram.index] = tuple(self._options(dram.index, outwards=True))
            self._in[dram.index] = tuple(self._options(dram.index, outwards=False))
        self._overhead_out = {
            dram: self._least_overhead(options, dram) for dram, options in self._out.items()
        }

    def least_load(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes out of a DRAM; 0 if none."""
        return self._least(self._out[dram], dram, size, True)

    def least_store(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes into a DRAM; 0 if none."""
        return self._least(self._in[dram], dram, size, False)

    def least_load_use(self, dram: MemoryIdx, load: Load) -> Fraction:
        """Return the least rate times cycles that a load out of a DRAM holds.

        A transfer of n bytes holds ``rate * (fixed + ceil(n / rate))``, which is at least
        ``rate * fixed + n``, of which the n may be of several loads.
        """
        if load.share is Share.ONE:
            return self._least_use(self._out[dram], dram, load.bytes, True)
        if load.share is Share.BEGUN:
            return self._overhead_out[dram] + load.bytes
        return Fraction(load.bytes)

    def least_store_use(self, dram: MemoryIdx, size: Bytes) -> Fraction:
        """Return the least rate times cycles that ``size`` bytes hold on their way to a DRAM."""
        return self._least_use(self._in[dram], dram, size, False)

    def rate_out(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers out of a DRAM together cannot exceed."""
        return least_rate(self._machine.links, self._routes_of(dram, outwards=True))

    def rate_in(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers into a DRAM together cannot exceed."""
        return least_rate(self._machine.links, self._routes_of(dram, outwards=False))

    def rate_both_ways(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers from and to a DRAM together cannot exceed."""
        out, back = self._routes_of(dram, outwards=True), self._routes_of(dram, outwards=False)
        return least_rate(self._machine.links, [*out, *back])

    def _routes_of(self, dram: MemoryIdx, outwards: bool) -> list[tuple[LinkIdx, ...]]:
        options = self._out[dram] if outwards else self._in[dram]
        return [self._route(dram, other, outwards) for _, other in options]

    def _options(self, dram: MemoryIdx, outwards: bool) -> Iterator[tuple[EngineIdx, MemoryIdx]]:
        """Yield one transfer option for each set of engine parameters and route, to compare few."""
        seen = set()
        for memory in self._machine.memories:
            ends = (dram, memory.index) if outwards else (memory.index, dram)
            route = None if memory.index == dram else self._routes.between(*ends)
            if route is None:
                continue
            for index in self._routes.engines_for(*ends):
                engine = self._machine.engines[index]
                key = (engine.setup, transfer_rate(engine, route), route.latency, route.links)
                if key not in seen:
                    seen.add(key)
                    yield index, memory.index

    def _route(self, dram: MemoryIdx, other: MemoryIdx, outwards: bool) -> tuple[int, ...]:
        route = self._routes.between(*((dram, other) if outwards else (other, dram)))
        return route.links if route else ()

    def _least(
        self,
        options: tuple[tuple[EngineIdx, MemoryIdx], ...],
        dram: MemoryIdx,
        size: Bytes,
        outwards: bool,
    ) -> Cycles:
        """Return the cycles of the fastest option; many buffers are of one size."""
        key = dram, size, outwards
        if key not in self._cache:
            cycles = (self._cycles(option, dram, size, outwards) for option in options)
            self._cache[key] = min(cycles, default=0)
        return self._cache[key]

    def _cycles(
        self, option: tuple[EngineIdx, MemoryIdx], dram: MemoryIdx, size: Bytes, outwards: bool
    ) -> Cycles:
        engine, other = option
        route = self._routes.between(*((dram, other) if outwards else (other, dram)))
        if route is None:
            return 0
        return transfer_cycles(self._machine.engines[engine], route, size)

    def _least_use(
        self,
        options: tuple[tuple[EngineIdx, MemoryIdx], ...],
        dram: MemoryIdx,
        size: Bytes,
        outwards: bool,
    ) -> Fraction:
        """Return the least rate times cycles of the options."""
        key = dram, size, outwards
        if key not in self._uses:
            uses = (
                self._rate(option, dram, outwards) * self._cycles(option, dram, size, outwards)
                for option in options
            )
            self._uses[key] = min(uses, default=Fraction(size))
        return self._uses[key]

    def _rate(
        self, option: tuple[EngineIdx, MemoryIdx], dram: MemoryIdx, outwards: bool
    ) -> Fraction:
        engine, other = option
        route = self._routes.between(*((dram, other) if outwards else (other, dram)))
        return transfer_rate(self._machine.engines[engine], route) if route else Fraction(0)

    def _least_overhead(
        self, options: tuple[tuple[EngineIdx, MemoryIdx], ...], dram: MemoryIdx
    ) -> Fraction:
        """Return the least rate times cycles that transfers out of a DRAM hold before any byte."""
        overheads = []
        for index, other in options:
            route = self._routes.between(dram, other)
            if route is not None:
                engine = self._machine.engines[index]
                fixed = engine.setup + route.latency
                overheads.append(transfer_rate(engine, route) * fixed)
        return min(overheads, default=Fraction(0))


def cycles_at(use: Fraction, rate: Fraction) -> Cycles:
    """Return the whole cycles that ``use`` (bytes) needs at ``rate`` (bytes per cycle)."""
    return ceil(use / rate)
