"""An independent check of offsets: quadratic, simple, and without anything that finds them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from spmilp.packing.items import LARGEST, Item, PackingProblem
from spmilp.packing.pools import Pool, PoolProblem
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True)
class PackingViolation:
    """A rule that offsets break: its name, the items, and the numbers."""

    rule: str
    items: tuple[int, ...]
    message: str


def check_packing(problem: PackingProblem, offsets: Sequence[int]) -> list[PackingViolation]:
    """Return every violation; an empty list says that the offsets are valid.

    Raises a ``ValueError`` if there is not one offset for each item.
    """
    if len(offsets) != len(problem.items):
        raise ValueError(f"{len(offsets)} offsets for {len(problem.items)} items")
    found = [violation for i in range(len(offsets)) for violation in _alone(problem, i, offsets[i])]
    return [*found, *_in_pairs(problem, offsets)]


def _alone(problem: PackingProblem, i: int, offset: int) -> Iterator[PackingViolation]:
    """Yield what is wrong with one item where it is."""
    item = problem.items[i]
    end, where = offset + item.size, f"item {i} at {offset}"
    if offset < 0 or (problem.capacity is not None and end > problem.capacity):
        message = f"item {i} at [{offset}, {end}) is outside [0, {problem.capacity})"
        yield PackingViolation("inside", (i,), message)
    if offset % item.alignment:
        yield PackingViolation("aligned", (i,), f"{where} is no multiple of {item.alignment}")
    if item.offset is not None and item.offset != offset:
        yield PackingViolation("where_fixed", (i,), f"{where} is fixed at {item.offset}")
    for start, until in problem.reserved:
        shared = min(end, until) - max(offset, start)
        if shared > 0:
            message = f"item {i} has {shared} B in the reserved range [{start}, {until})"
            yield PackingViolation("outside_reserved", (i,), message)


def _in_pairs(problem: PackingProblem, offsets: Sequence[int]) -> Iterator[PackingViolation]:
    """Yield items that must lie together and do not, and such as share bytes they must not."""
    for a, b in problem.together:
        if offsets[a] != offsets[b]:
            message = f"items {a} and {b} must lie together: {offsets[a]} and {offsets[b]}"
            yield PackingViolation("together", (a, b), message)
    may_share = _connected(problem)
    for i, j in _possible_meetings(problem.items, offsets):
        one, other = problem.items[i], problem.items[j]
        tops = offsets[i] + one.size, offsets[j] + other.size
        shared, time = min(tops) - max(offsets[i], offsets[j]), _time_together(one, other)
        if shared > 0 and time > 0 and may_share[i] != may_share[j]:
            message = f"items {i} and {j} share {shared} B for {time} units of time"
            yield PackingViolation("disjoint", (i, j), message)


def _possible_meetings(items: Sequence[Item], offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield each pair whose bytes meet and whose lifetimes, gaps filled, meet.

    All pairs are compared, each item with a whole array of others, for a loop over the pairs of
    100,000 items takes an hour.
    """
    order = sorted(range(len(items)), key=lambda i: items[i].lifetimes[0][0])
    start = np.array([items[i].lifetimes[0][0] for i in order], dtype=np.int64)
    end = np.array([items[i].lifetimes[-1][1] for i in order], dtype=np.int64)
    # Offsets may be anything. Cut off far outside all valid ones, those that meet still do.
    low = np.array([min(max(offsets[i], -LARGEST), 2 * LARGEST) for i in order], dtype=np.int64)
    high = low + np.array([items[i].size for i in order], dtype=np.int64)
    begun = np.searchsorted(start, end, side="left")
    for k, i in enumerate(order):
        others = slice(k + 1, begun[k])
        meets = (low[others] < high[k]) & (low[k] < high[others])
        for position in np.flatnonzero(meets):
            j = order[k + 1 + int(position)]
            yield min(i, j), max(i, j)


def _time_together(a: Item, b: Item) -> int:
    return sum(
        max(0, min(a_end, b_end) - max(a_start, b_start))
        for a_start, a_end in a.lifetimes
        for b_start, b_end in b.lifetimes
    )


def _connected(problem: PackingProblem) -> list[int]:
    """Return a number for each item, equal where pairs that lie together connect them."""
    number = list(range(len(problem.items)))
    for a, b in problem.together:
        number = [number[a] if n == number[b] else n for n in number]
    return number


def check_pools(
    problem: PoolProblem, places: Sequence[tuple[int, Bytes]]
) -> list[PackingViolation]:
    """Return every violation of buffers that lie in pools at offsets; an empty list says valid.

    Raises a ``ValueError`` if there is not one pool with an offset for each buffer.
    """
    if len(places) != len(problem.buffers):
        raise ValueError(f"{len(places)} places for {len(problem.buffers)} buffers")
    items, found = tuple(buffer.item for buffer in problem.buffers), []
    for i, (p, offset) in enumerate(places):
        if not 0 <= p < len(problem.pools):
            message = f"item {i} lies in pool {p} of {len(problem.pools)}"
            found.append(PackingViolation("in_its_pools", (i,), message))
            continue
        found += _alone_in_pool(problem, i, problem.pools[p], offset)
    # Pools lie behind each other here, so that only what is in one pool can share bytes.
    apart = 1 + max(
        (at + item.size for (_, at), item in zip(places, items, strict=True)), default=0
    )
    space = PackingProblem(items=items, capacity=None)
    return [*found, *_in_pairs(space, [p * apart + offset for p, offset in places])]


def _alone_in_pool(
    problem: PoolProblem, i: int, pool: Pool, offset: Bytes
) -> Iterator[PackingViolation]:
    """Yield what is wrong with one buffer where it is in a pool."""
    buffer = problem.buffers[i]
    alone = PackingProblem(items=(buffer.item,), capacity=pool.capacity, reserved=pool.reserved)
    for one in _alone(alone, 0, offset):
        yield PackingViolation(
            one.rule, (i,), f"{pool.name}: {one.message}".replace("item 0", f"item {i}")
        )
    where = f"{pool.name}: item {i} at {offset}"
    if buffer.pools and pool.name not in buffer.pools:
        yield PackingViolation(
            "in_its_pools", (i,), f"{where} may lie in {', '.join(buffer.pools)}"
        )
    if offset % pool.alignment:
        message = f"{where} is no multiple of {pool.alignment}, the pool's alignment"
        yield PackingViolation("aligned", (i,), message)
    higher = range(offset + 1, pool.capacity - buffer.item.size + 1)
    steps = lcm(buffer.item.alignment, pool.alignment)
    if buffer.at_end and higher and higher[-1] // steps * steps > offset:
        message = f"{where} is not at the end: {higher[-1] // steps * steps} is possible"
        yield PackingViolation("at_the_end", (i,), message)
