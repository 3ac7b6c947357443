"""Items that must lie apart, as items that live together at an instant that is added for them.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spmilp.packing.clique_cover import as_bits, bits_of, clique_cover, heaviest_clique
from spmilp.packing.groups import Groups
from spmilp.packing.items import PackingProblem
from spmilp.packing.search.arrays import Ints

MOST_TOGETHER = 1_000
"""Groups of which each two are compared. Where there are more, cliques are looked for among those
that the pairs connect, with the others that live longest."""
LONGEST = 100
"""Others, then."""
STEPS = 20_000
"""Groups looked at in the search for the heaviest clique."""
PIECES = 3
"""Pieces of a group that are compared with those of others; more would find few more conflicts."""

Clique = dict[int, int]
"""Bytes of each group, from its offset on, that are disjoint from those of each other group."""


def with_instants_for_apart(problem: PackingProblem, groups: Groups) -> Groups:
    """Return groups with one more piece for each clique that a group is in.

    Instants are added where no group lives that began before, the first such time behind all groups
    of a clique: what time separated stays separate.
    """
    conflicts = _Conflicts(problem, groups)
    cliques = list(conflicts.cliques())
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    """Groups by decreasing size, and for each the set of those it conflicts with, as bits.

    Attributes
    ----------
    groups, sizes
        Bit ``k`` stands for ``groups[k]``, which has ``sizes[k]`` bytes.
    conflicts
        Those that live with a group or are kept apart from it; some of the former may lack.
    pairs
        Of these, those that are kept apart and do not live with it.
    """

    groups: list[int]
    sizes: list[int]
    conflicts: list[int]
    pairs: list[int]

    def clique(self, members: int) -> Clique:
        """Return the clique of a set of bits."""
        return {self.groups[k]: self.sizes[k] for k in bits_of(members)}


class _Conflicts:
    """Pairs of groups that must not share bytes, and cliques that cover them."""

    def __init__(self, problem: PackingProblem, groups: Groups) -> None:
        self._groups = groups
        sizes = np.array([item.size for item in problem.items], dtype=np.int64)
        least = groups.size.copy()
        np.minimum.at(least, groups.of_item, sizes)
        uniform = least == groups.size
        self._pairs: set[tuple[int, int]] = set()
        self._uneven: set[tuple[tuple[int, int], tuple[int, int]]] = set()
        for i, j in problem.apart:
            (a, a_bytes), (b, b_bytes) = sorted(
                (int(groups.of_item[k]), problem.items[k].size) for k in (i, j)
            )
            if uniform[a] and uniform[b]:
                self._pairs.add((a, b))
            else:
                self._uneven.add(((a, a_bytes), (b, b_bytes)))
        length = np.zeros(groups.count, dtype=np.int64)
        np.add.at(length, groups.owner, groups.end - groups.start)
        length[[group for pair in self._pairs for group in pair]] = 0
        length[~uniform] = 0
        self._others = np.argsort(-length, kind="stable")[: np.count_nonzero(length)].tolist()

    def cliques(self) -> Iterator[Clique]:
        """Yield cliques that cover every pair; pairs of groups with uneven bytes by themselves."""
        for pair in sorted(self._uneven):
            yield dict(pair)
        neighbours: dict[int, set[int]] = {}
        for a, b in sorted(self._pairs):
            neighbours.setdefault(a, set()).add(b)
            neighbours.setdefault(b, set()).add(a)
        parts = self._parts(neighbours)
        number = {group: k for k, part in enumerate(parts) for group in part}
        for a, b in sorted(self._pairs):
            if number[a] != number[b]:
                yield {a: int(self._groups.size[a]), b: int(self._groups.size[b])}
        for part in parts:
            graph = self._graph(part, neighbours)
            heaviest = heaviest_clique(graph.conflicts, graph.sizes, STEPS // len(parts))
            for members in clique_cover(graph.conflicts, graph.pairs, heaviest):
                yield graph.clique(members)

    def _parts(self, neighbours: dict[int, set[int]]) -> list[list[int]]:
        """Return sets of groups to look for cliques in, those that pairs connect side by side."""
        waiting, connected, seen = sorted(neighbours, reverse=True), [], set[int]()
        while waiting:
            group = waiting.pop()
            if group not in seen:
                seen.add(group)
                connected.append(group)
                waiting.extend(sorted(neighbours[group] - seen, reverse=True))
        return [connected[k : k + MOST_TOGETHER] for k in range(0, len(connected), MOST_TOGETHER)]

    def _graph(self, part: list[int], neighbours: dict[int, set[int]]) -> _Graph:
        others = self._others[: max(LONGEST, MOST_TOGETHER - len(part))]
        members = np.array(part + others, dtype=np.int64)
        members = members[np.lexsort((members, -self._groups.size[members]))]
        together = self._live_together(members)
        number = {group: k for k, group in enumerate(members.tolist())}
        apart = np.zeros_like(together)
        for a in part:
            for b in neighbours[a] & number.keys():
                apart[number[a], number[b]] = True
        return _Graph(
            groups=members.tolist(),
            sizes=self._groups.size[members].tolist(),
            conflicts=as_bits(together | apart),
            pairs=as_bits(apart & ~together),
        )

    def _live_together(self, members: Ints) -> NDArray[np.bool_]:
        """Return which pairs live together in one of their first pieces."""
        owner, groups = self._groups.owner, self._groups
        first = np.searchsorted(owner, members, "left")
        until = np.searchsorted(owner, members, "right")
        lives = []
        for k in range(min(PIECES, int((until - first).max(initial=0)))):
            at = np.minimum(first + k, until - 1)
            lives.append((groups.start[at], groups.end[at]))
        together = np.zeros((members.size, members.size), dtype=bool)
        for start, end in lives:
            for other_start, other_end in lives:
                together |= (start[:, None] < other_end) & (other_start < end[:, None])
        np.fill_diagonal(together, False)
        return together
