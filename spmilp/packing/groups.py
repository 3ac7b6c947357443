"""Items merged into groups that lie together, and groups kept apart by added instants.

Two items may share bytes unless they live together, or are kept apart. Whatever packs items with
lifetimes packs items that are kept apart, then, if each such pair also lives together at some
instant beyond all real ones. Instants for many items say more than instants for pairs: the bytes of
all of them must fit side by side. So the pairs are covered by *cliques*, sets of items of which
each two live together or are kept apart; one of them is the heaviest that is found, which makes the
live bytes of the added instant a bound on the height.

**Proposition.** Offsets are valid for the items and pairs if and only if they are valid for the
items with the added instants. *Proof.* An added instant holds groups of which each two conflict,
each with as many bytes as the conflict concerns; so it demands nothing new. Each pair is among the
groups of one of them, or lives together anyway; so nothing is lost.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import lcm

import numpy as np
from numpy.typing import NDArray

from spmilp.packing.arrays import Ints
from spmilp.packing.items import PackingProblem
from spmilp.packing.result import LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Groups of items with one offset each, and their pieces: bytes needed during a lifetime.

    Attributes
    ----------
    of_item
        The group of each item.
    size, alignment, offset
        Of each group: the most bytes it ever needs, the least common alignment, and the fixed
        offset or -1.
    owner, start, end, bytes
        Of each piece. Pieces of one group are in order of time and disjoint.
    """

    of_item: Ints
    size: Ints
    alignment: Ints
    offset: Ints
    owner: Ints
    start: Ints
    end: Ints
    bytes: Ints

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.size.size)


def group_items(problem: PackingProblem) -> Groups:
    """Merge items that must lie together; every other item is a group of its own.

    Raises
    ------
    ValueError
        If items that must lie together are fixed at different or unaligned offsets, or also kept
        apart.
    """
    leaders = first_of_each_set(len(problem.items), problem.together)
    # Groups are numbered by their first item.
    of_item = np.unique(np.array(leaders, dtype=np.int64), return_inverse=True)[1]
    members: list[list[int]] = [[] for _ in range(int(of_item.max(initial=-1)) + 1)]
    for item, group in enumerate(of_item.tolist()):
        members[group].append(item)
    for first, second in problem.apart:
        if of_item[first] == of_item[second]:
            raise ValueError(f"items {first} and {second} must lie together and apart")
    pieces = [
        (group, *piece)
        for group, items in enumerate(members)
        for piece in (
            _merged_pieces(problem, items)
            if len(items) > 1
            else [
                (*life, problem.items[items[0]].size) for life in problem.items[items[0]].lifetimes
            ]
        )
    ]
    table = np.array(pieces, dtype=np.int64).reshape(-1, 4)
    # Most groups are one item: only the others are asked for more than its own figures.
    firsts = [problem.items[items[0]] for items in members]
    size, alignment = [one.size for one in firsts], [one.alignment for one in firsts]
    offset = [-1 if one.offset is None else one.offset for one in firsts]
    for group, items in enumerate(members):
        if len(items) > 1:
            size[group] = max(problem.items[i].size for i in items)
            alignment[group] = lcm(*(problem.items[i].alignment for i in items))
            offset[group] = _fixed_offset(problem, items)
    return Groups(
        of_item=of_item,
        size=np.array(size, dtype=np.int64),
        alignment=np.array(alignment, dtype=np.int64),
        offset=np.array(offset, dtype=np.int64),
        owner=table[:, 0].copy(),
        start=table[:, 1].copy(),
        end=table[:, 2].copy(),
        bytes=table[:, 3].copy(),
    )


def first_of_each_set(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each of a number of things the first of those that pairs tie it to."""
    first = list(range(count))

    def find(one: int) -> int:
        while first[one] != one:
            first[one] = first[first[one]]
            one = first[one]
        return one

    for a, b in pairs:
        low, high = sorted((find(a), find(b)))
        first[high] = low
    return [find(one) for one in range(count)]


def _fixed_offset(problem: PackingProblem, members: list[int]) -> int:
    """Return the one offset at which members are fixed, -1 when none is."""
    fixed = {i: o for i in members if (o := problem.items[i].offset) is not None}
    if len(set(fixed.values())) > 1:
        text = ", ".join(f"item {i} at {o} B" for i, o in fixed.items())
        raise ValueError(f"items that must lie together are fixed apart: {text}")
    for item, offset in fixed.items():
        for other in members:
            alignment = problem.items[other].alignment
            if offset % alignment:
                raise ValueError(
                    f"item {other} must lie together with item {item}, which is fixed at "
                    f"{offset} B, no multiple of {alignment} B"
                )
    return next(iter(fixed.values()), -1)


def _merged_pieces(problem: PackingProblem, members: list[int]) -> list[tuple[int, int, int]]:
    """Return (start, end, bytes) over time: the most that any living member needs."""
    lives = [(*life, problem.items[i].size) for i in members for life in problem.items[i].lifetimes]
    times = sorted({time for start, end, _ in lives for time in (start, end)})
    pieces: list[tuple[int, int, int]] = []
    for start, end in pairwise(times):
        needed = max((size for a, b, size in lives if a <= start and end <= b), default=0)
        if needed == 0:
            continue
        if pieces and pieces[-1][1] == start and pieces[-1][2] == needed:
            pieces[-1] = (pieces[-1][0], end, needed)
        else:
            pieces.append((start, end, needed))
    return pieces


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
    for first in range(min(len(weights), LIMITS.first_cliques)):
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


Clique = dict[int, int]
"""Bytes of each group, from its offset on, that are disjoint from those of each other group."""


def with_instants_for_apart(problem: PackingProblem, groups: Groups) -> Groups:
    """Return groups with one more piece for each clique that a group is in.

    Instants are added where no group lives that began before, the first such time behind all groups
    of a clique: what time separated stays separate.
    """
    cliques = list(_cliques(problem, groups))
    ends = _ends_of_stretches(groups, cliques)
    last = {k: max(int(ends[group]) for group in clique) for k, clique in enumerate(cliques)}
    added = [
        (group, number, bytes_)
        for number, k in enumerate(sorted(last, key=lambda k: last[k]))
        for group, bytes_ in cliques[k].items()
    ]
    moved = np.sort(np.array(list(last.values()), dtype=np.int64))
    table = np.array(added, dtype=np.int64).reshape(-1, 3)
    at = moved[table[:, 1]] + table[:, 1]
    owner = np.concatenate((groups.owner, table[:, 0]))
    start = np.concatenate((groups.start + np.searchsorted(moved, groups.start, "right"), at))
    end = np.concatenate((groups.end + np.searchsorted(moved, groups.end, "left"), at + 1))
    order = np.lexsort((start, owner))
    return replace(
        groups,
        owner=owner[order],
        start=start[order],
        end=end[order],
        bytes=np.concatenate((groups.bytes, table[:, 2]))[order],
    )


def _ends_of_stretches(groups: Groups, cliques: Sequence[Clique]) -> Ints:
    """Return for each group the end of the stretch of time without a break that it is in.

    A stretch is unbroken when at each instant a group has begun that is still to live, or one that
    is in a clique with groups on both sides.
    """
    begin = np.full(groups.count, np.iinfo(np.int64).max)
    end = np.full(groups.count, np.iinfo(np.int64).min)
    np.minimum.at(begin, groups.owner, groups.start)
    np.maximum.at(end, groups.owner, groups.end)
    reach = end.copy()
    for clique in cliques:
        members = np.fromiter(clique, dtype=np.int64)
        first = members[np.argmin(begin[members])]
        reach[first] = max(reach[first], end[members].max())
    order = np.argsort(begin, kind="stable")
    furthest = np.maximum.accumulate(reach[order])
    breaks = np.ones(groups.count, dtype=bool)
    breaks[:-1] = begin[order][1:] >= furthest[:-1]
    ends = furthest[breaks]
    return ends[np.searchsorted(ends, begin, "right")]


def _cliques(problem: PackingProblem, groups: Groups) -> Iterator[Clique]:
    """Yield cliques that cover every pair; pairs of groups with uneven bytes by themselves."""
    sizes = np.array([item.size for item in problem.items], dtype=np.int64)
    least = groups.size.copy()
    np.minimum.at(least, groups.of_item, sizes)
    uniform = least == groups.size
    neighbours: dict[int, set[int]] = {}
    uneven: set[tuple[tuple[int, int], ...]] = set()
    for pair in problem.apart:
        (a, a_bytes), (b, b_bytes) = sorted((int(groups.of_item[k]), int(sizes[k])) for k in pair)
        if uniform[a] and uniform[b]:
            neighbours.setdefault(a, set()).add(b)
            neighbours.setdefault(b, set()).add(a)
        else:
            uneven.add(((a, a_bytes), (b, b_bytes)))
    yield from (dict(pairs) for pairs in sorted(uneven))
    parts = _parts(neighbours)
    number = {group: k for k, part in enumerate(parts) for group in part}
    for a in sorted(neighbours):
        for b in sorted(neighbours[a]):
            if a < b and number[a] != number[b]:
                yield {a: int(groups.size[a]), b: int(groups.size[b])}
    length = np.zeros(groups.count, dtype=np.int64)
    np.add.at(length, groups.owner, groups.end - groups.start)
    length[list(neighbours)] = 0
    length[~uniform] = 0
    others = np.argsort(-length, kind="stable")[: np.count_nonzero(length)].tolist()
    for part in parts:
        among = part + others[: max(LIMITS.longest, LIMITS.together - len(part))]
        members = np.array(among, dtype=np.int64)
        members = members[np.lexsort((members, -groups.size[members]))]
        together = _live_together(groups, members)
        position = {group: k for k, group in enumerate(members.tolist())}
        apart = np.zeros_like(together)
        for a in part:
            for b in neighbours[a] & position.keys():
                apart[position[a], position[b]] = True
        weights = groups.size[members].tolist()
        conflicts, pairs = as_bits(together | apart), as_bits(apart & ~together)
        heaviest = heaviest_clique(conflicts, weights, LIMITS.clique_steps // len(parts))
        for clique in clique_cover(conflicts, pairs, heaviest):
            yield {int(members[k]): weights[k] for k in bits_of(clique)}


def _parts(neighbours: dict[int, set[int]]) -> list[list[int]]:
    """Return sets of groups to look for cliques in, those that pairs connect side by side."""
    waiting, connected, seen = sorted(neighbours, reverse=True), [], set[int]()
    while waiting:
        group = waiting.pop()
        if group not in seen:
            seen.add(group)
            connected.append(group)
            waiting.extend(sorted(neighbours[group] - seen, reverse=True))
    most = LIMITS.together
    return [connected[k : k + most] for k in range(0, len(connected), most)]


def _live_together(groups: Groups, members: Ints) -> NDArray[np.bool_]:
    """Return which pairs live together in one of their first pieces."""
    first = np.searchsorted(groups.owner, members, "left")
    until = np.searchsorted(groups.owner, members, "right")
    pieces = range(min(LIMITS.pieces, int((until - first).max(initial=0))))
    lives = [np.minimum(first + k, until - 1) for k in pieces]
    together = np.zeros((members.size, members.size), dtype=bool)
    for one in lives:
        for other in lives:
            together |= (groups.start[one][:, None] < groups.end[other]) & (
                groups.start[other] < groups.end[one][:, None]
            )
    np.fill_diagonal(together, False)
    return together
