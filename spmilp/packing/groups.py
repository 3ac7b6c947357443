"""Items as flat arrays, with items that must lie together merged into one group."""

from dataclasses import dataclass
from itertools import pairwise
from math import lcm

import numpy as np

from spmilp.packing.items import PackingProblem
from spmilp.packing.search.arrays import Ints


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
    of_item = _numbers_of_groups(problem)
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


def _numbers_of_groups(problem: PackingProblem) -> Ints:
    """Number the groups by their first item."""
    parent = list(range(len(problem.items)))

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for first, second in problem.together:
        a, b = sorted((root(first), root(second)))
        parent[b] = a
    numbers: dict[int, int] = {}
    return np.array(
        [numbers.setdefault(root(item), len(numbers)) for item in range(len(parent))],
        dtype=np.int64,
    )


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
