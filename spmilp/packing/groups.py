"""Items merged into groups that lie together, and groups kept apart by added instants.

Two items may share bytes unless they live together, or are kept apart. Whatever packs items with
lifetimes packs items that are kept apart, then, if each such pair also lives together at some
instant beyond all real ones. Instants for many items say more than instants for pairs: the bytes of
all of them must fit side by side. So the pairs are covered by *cliques*, sets of items of which
each two live together or are kept apart; the live bytes of each instant bound the height.

**Proposition.** Offsets are valid for the items and pairs if and only if they are valid for the
items with the added instants. *Proof.* An added instant holds groups of which each two conflict,
each with as many bytes as the conflict concerns; so it demands nothing new. Each pair is among the
groups of one of them, or lives together anyway; so nothing is lost.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import lcm

import numpy as np
from numpy.typing import NDArray

from spmilp.packing.arrays import Ints
from spmilp.packing.items import LARGEST, Item, PackingProblem, Pairs
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


class PairError(ValueError):
    """Pairs that contradict each other, or their items; it knows an item to blame."""

    def __init__(self, item: int, message: str) -> None:
        super().__init__(message)
        self.item = item


def group_items(problem: PackingProblem) -> Groups:
    """Merge items that must lie together; every other item is a group of its own.

    Raises
    ------
    PairError
        If items that must lie together cannot.
    """
    items = problem.items
    refuse_contradictions(items, problem.together, problem.apart)
    leaders = first_of_each_set(len(items), problem.together)
    # Groups are numbered by their first item.
    of_item = np.unique(np.array(leaders, dtype=np.int64), return_inverse=True)[1]
    members: list[list[int]] = [[] for _ in range(int(of_item.max(initial=-1)) + 1)]
    for item, group in enumerate(of_item.tolist()):
        members[group].append(item)
    pieces = [
        (group, *piece)
        for group, some in enumerate(members)
        for piece in (
            _merged_pieces(items, some)
            if len(some) > 1
            else [(*life, items[some[0]].size) for life in items[some[0]].lifetimes]
        )
    ]
    table = np.array(pieces, dtype=np.int64).reshape(-1, 4)
    size, alignment = np.ones((2, len(members)), dtype=np.int64)
    offset = np.full(len(members), -1, dtype=np.int64)
    figures = [(i.size, i.alignment, -1 if i.offset is None else i.offset) for i in items]
    of_items = np.array(figures, dtype=np.int64).reshape(-1, 3)
    np.maximum.at(size, of_item, of_items[:, 0])
    np.lcm.at(alignment, of_item, of_items[:, 1])
    np.maximum.at(offset, of_item, of_items[:, 2])
    owner, start, end, bytes_ = (column.copy() for column in table.T)
    return Groups(
        of_item=of_item,
        size=size,
        alignment=alignment,
        offset=offset,
        owner=owner,
        start=start,
        end=end,
        bytes=bytes_,
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


def refuse_contradictions(
    items: Sequence[Item],
    together: Pairs,
    apart: Pairs,
    named: Callable[[int], str] = "item {}".format,
) -> None:
    """Refuse items that must lie together and cannot.

    They must not also lie apart, nor be fixed at two offsets or where one of them may not lie, and
    some offset below 2^60 must be a multiple of all their alignments.

    Raises
    ------
    PairError
        With the names of the items and both numbers.
    """
    if not together:
        return
    first_of = first_of_each_set(len(items), together)
    for a, b in apart:
        if first_of[a] == first_of[b]:
            message = f"{named(a)} must lie together with {named(b)}, and apart from it"
            raise PairError(b, message)
    fixed: dict[int, tuple[int, int]] = {}
    for i, item in enumerate(items):
        if item.offset is None:
            continue
        other, there = fixed.setdefault(first_of[i], (i, item.offset))
        if there != item.offset:
            both = f"{named(other)} at {there} B and {named(i)} at {item.offset} B"
            raise PairError(i, f"{both} must lie together, and are fixed apart")
    alignments: dict[int, int] = {}
    for i, item in enumerate(items):
        first = first_of[i]
        other, there = fixed.get(first, (i, 0))
        if there % item.alignment:
            where = f"{named(other)}, at {there} B, no multiple of {item.alignment} B"
            raise PairError(i, f"{named(i)} must lie together with {where}")
        alignments[first] = lcm(alignments.get(first, 1), item.alignment)
        if alignments[first] >= LARGEST:
            needed = f"a multiple of {alignments[first]} B, 2^60 B or more"
            message = f"{named(i)} and those that must lie together with it need {needed}"
            raise PairError(i, message)


def _merged_pieces(items: Sequence[Item], members: list[int]) -> list[tuple[int, int, int]]:
    """Return (start, end, bytes) over time: the most that any living member needs."""
    lives = [(*life, items[i].size) for i in members for life in items[i].lifetimes]
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


def with_instants_for_apart(problem: PackingProblem, groups: Groups) -> Groups:
    """Return groups with one more piece, behind all others, for each clique that a group is in."""
    last = int(groups.end.max())
    added = [
        (group, last + number, last + number + 1, bytes_)
        for number, clique in enumerate(_cliques(problem, groups))
        for group, bytes_ in clique
    ]
    pieces = np.stack((groups.owner, groups.start, groups.end, groups.bytes), axis=1)
    table = np.concatenate((pieces, np.array(added, dtype=np.int64).reshape(-1, 4)))
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    owner, start, end, bytes_ = (column.copy() for column in table.T)
    return replace(groups, owner=owner, start=start, end=end, bytes=bytes_)


def _cliques(problem: PackingProblem, groups: Groups) -> Iterator[list[tuple[int, int]]]:
    """Yield sets of groups that conflict, with their bytes, until every pair is in one.

    Pairs of groups with uneven bytes, or of too many groups, stay by themselves.
    """
    sizes = np.array([item.size for item in problem.items], dtype=np.int64)
    least = groups.size.copy()
    np.minimum.at(least, groups.of_item, sizes)
    is_even = least == groups.size
    neighbours: dict[int, set[int]] = {}
    alone: set[tuple[tuple[int, int], ...]] = set()
    for pair in problem.apart:
        (a, a_bytes), (b, b_bytes) = sorted((int(groups.of_item[k]), int(sizes[k])) for k in pair)
        if is_even[a] and is_even[b] and len(neighbours) < LIMITS.in_cliques:
            neighbours.setdefault(a, set()).add(b)
            neighbours.setdefault(b, set()).add(a)
        else:
            alone.add(((a, a_bytes), (b, b_bytes)))
    yield from map(list, sorted(alone))
    members = _members(groups, neighbours, is_even)
    weights = groups.size[members].tolist()
    for clique in _cover(groups, members, neighbours):
        yield [(int(members[k]), weights[k]) for k in _bits(clique)]


def _members(groups: Groups, neighbours: Iterable[int], is_even: NDArray[np.bool_]) -> Ints:
    """Return the groups that are in pairs, and others that live longest; the largest first."""
    length = np.zeros(groups.size.size, dtype=np.int64)
    np.add.at(length, groups.owner, groups.end - groups.start)
    length[~is_even] = 0
    length[list(neighbours)] = 0
    others = np.argsort(-length, kind="stable")[: np.count_nonzero(length)]
    among = [*neighbours, *others[: LIMITS.longest].tolist()]
    members = np.array(among, dtype=np.int64)
    return members[np.lexsort((members, -groups.size[members]))]


def _cover(groups: Groups, members: Ints, neighbours: dict[int, set[int]]) -> Iterator[int]:
    """Yield cliques of members, as bits, until every pair is in one; each is maximal.

    Groups count as living together where their first pieces do.
    """
    position = {group: k for k, group in enumerate(members.tolist())}
    uncovered = [
        sum(1 << position[other] for other in neighbours.get(group, ())) for group in position
    ]
    apart = tuple(uncovered)
    first = np.searchsorted(groups.owner, members, "left")
    start, end = groups.start[first], groups.end[first]

    @cache
    def conflicts(k: int) -> int:
        together = np.packbits((start < end[k]) & (start[k] < end), bitorder="little")
        return (int.from_bytes(together.tobytes(), "little") | apart[k]) & ~(1 << k)

    def grown(k: int, wanted: int) -> int:
        """Return a clique with a member: those first that are wanted, or that cover a pair."""
        clique, open_ = 1 << k, conflicts(k)
        while open_:
            vertex = _lowest(open_ & wanted or open_)
            clique |= 1 << vertex
            open_ &= conflicts(vertex)
            wanted |= uncovered[vertex] if wanted else 0
        return clique

    def weight(clique: int) -> int:
        return int(groups.size[members[list(_bits(clique))]].sum())

    starts = range(min(len(uncovered), LIMITS.first_cliques))
    heaviest = max((grown(k, 0) for k in starts), key=weight, default=0)
    for k in range(len(uncovered)):
        while uncovered[k]:
            clique = heaviest or grown(k, uncovered[k])
            heaviest = 0
            for vertex in _bits(clique):
                uncovered[vertex] &= ~clique
            yield clique


def _bits(members: int) -> Iterator[int]:
    """Yield the members of a set, the lowest first."""
    while members:
        vertex = _lowest(members)
        members &= ~(1 << vertex)
        yield vertex


def _lowest(members: int) -> int:
    return (members & -members).bit_length() - 1
