"""Sets of links that every one of some routes crosses: the narrower, the better the bound.

All that moves over the routes crosses each such set, so the rate of its links together is a limit
whichever set is taken. The least of all may be hard to find (a hitting set); three are tried.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from spmilp.machine.machine import Link
from spmilp.units import LinkIdx

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
