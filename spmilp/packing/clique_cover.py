"""Cliques of a graph whose sets of vertices are the bits of integers: the heaviest, and a cover."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

STARTS = 200
"""Cliques that are made first, from each of the heaviest vertices one."""


def heaviest_clique(conflicts: Sequence[int], weights: Sequence[int], steps: int) -> int:
    """Return a set of vertices of which each two conflict: the heaviest, where steps suffice.

    Parameters
    ----------
    conflicts
        Of each vertex, the vertices that it conflicts with, as bits.
    weights
        Positive, decreasing.
    steps
        Vertices that are looked at, at most, after the first cliques.

    Vertices that do not conflict with each other get one colour; a clique has at most one of each
    (E. Balas and J. Xue, Algorithmica 15, 1996, doi 10.1007/BF01955041).
    """
    best, most = 0, 0
    for first in range(min(len(weights), STARTS)):
        members, open_ = 1 << first, conflicts[first]
        while open_:
            vertex = _lowest(open_)
            members |= 1 << vertex
            open_ &= conflicts[vertex]
        weight = _weight(members, weights)
        if weight > most:
            best, most = members, weight
    everything = (1 << len(weights)) - 1
    stack = [(_coloured(everything, conflicts, weights), everything, 0, 0)]
    while stack and steps > 0:
        colours, open_, members, weight = stack.pop()
        if not colours or weight + colours[-1][1] <= most:
            continue
        if len(colours) == colours[-1][2]:
            best, most = members | open_, weight + _weight(open_, weights)
            continue
        vertex = colours.pop()[0]
        steps -= len(colours) + 1
        stack.append((colours, open_ & ~(1 << vertex), members, weight))
        with_it, its_weight = members | 1 << vertex, weight + weights[vertex]
        if its_weight > most:
            best, most = with_it, its_weight
        rest = open_ & conflicts[vertex]
        stack.append((_coloured(rest, conflicts, weights), rest, with_it, its_weight))
    return best


def _coloured(
    open_: int, conflicts: Sequence[int], weights: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return vertices by colour, each with what a clique up to it weighs at most, and the colour.

    The weight is the sum, over the colours until then, of the heaviest vertex of each.
    """
    order: list[tuple[int, int, int]] = []
    bound = colour = 0
    while open_:
        alike = open_
        bound += weights[_lowest(open_)]
        colour += 1
        while alike:
            vertex = _lowest(alike)
            order.append((vertex, bound, colour))
            open_ &= ~(1 << vertex)
            alike &= ~(conflicts[vertex] | 1 << vertex)
    return order


def clique_cover(conflicts: Sequence[int], pairs: Sequence[int], heaviest: int) -> Iterator[int]:
    """Yield cliques until every pair is in one; each is maximal.

    Parameters
    ----------
    conflicts
        Of each vertex, the vertices that it conflicts with, as bits.
    pairs
        Of these, those that a clique is to be yielded for.
    heaviest
        The clique to begin with, if there is a pair in it.
    """
    uncovered = list(pairs)

    def covered(members: int) -> bool:
        some = False
        for k in bits_of(members):
            some = some or bool(uncovered[k] & members)
            uncovered[k] &= ~members
        return some

    if covered(heaviest):
        yield heaviest
    for first in range(len(uncovered)):
        while uncovered[first]:
            members, open_, wanted = 1 << first, conflicts[first], uncovered[first]
            while open_:
                vertex = _lowest(open_ & wanted or open_)
                members |= 1 << vertex
                open_ &= conflicts[vertex]
                wanted |= uncovered[vertex]
            covered(members)
            yield members


def as_bits(rows: NDArray[np.bool_]) -> list[int]:
    """Return each row of a matrix as the set of its columns."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def bits_of(members: int) -> Iterator[int]:
    """Yield the members of a set, the lowest first."""
    while members:
        vertex = _lowest(members)
        members &= ~(1 << vertex)
        yield vertex


def _lowest(members: int) -> int:
    return (members & -members).bit_length() - 1


def _weight(members: int, weights: Sequence[int]) -> int:
    return sum(weights[k] for k in bits_of(members))
