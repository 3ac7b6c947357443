"""Least cost of moving data between DRAM and the chip, over whatever engine and route.

All that moves over some routes crosses each set of links that every one of them crosses, so what
transfers can use of its links together (:mod:`spmilp.machine.link_use`) is a limit whichever set is
taken. The least of all may be hard to find (a hitting set); three are tried.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from math import ceil, lcm
from typing import TYPE_CHECKING

import numpy as np

from spmilp.machine.link_use import DramTransfer, dram_transfers, usable_rates
from spmilp.machine.machine import Link
from spmilp.machine.routes import routes_of, transfer_cycles
from spmilp.problem.loads import Load, Share
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, LinkIdx, MemoryIdx

if TYPE_CHECKING:
    from scipy import sparse

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
