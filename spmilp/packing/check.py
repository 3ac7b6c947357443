"""An independent check of offsets: quadratic, simple, and without anything that finds them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from spmilp.packing.items import Item, PackingProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingViolation:
    """A rule that offsets break: its name, the items, and the numbers."""

    rule: str
    items: tuple[int, ...]
    message: str


def check_packing(problem: PackingProblem, offsets: Sequence[int]) -> list[PackingViolation]:
    """Return every violation; an empty list says that the offsets are valid.

    Raises
    ------
    ValueError
        If there is not one offset for each item.
    """
    if len(offsets) != len(problem.items):
        raise ValueError(f"{len(offsets)} offsets for {len(problem.items)} items")
    rules = (_inside, _aligned, _where_fixed, _outside_reserved, _together, _disjoint)
    return [violation for rule in rules for violation in rule(problem, offsets)]


def _inside(problem: PackingProblem, offsets: Sequence[int]) -> Iterator[PackingViolation]:
    for i, (item, offset) in enumerate(zip(problem.items, offsets, strict=True)):
        end = offset + item.size
        if offset < 0 or (problem.capacity is not None and end > problem.capacity):
            message = f"item {i} at [{offset}, {end}) is outside [0, {problem.capacity})"
            yield PackingViolation(rule="inside", items=(i,), message=message)


def _aligned(problem: PackingProblem, offsets: Sequence[int]) -> Iterator[PackingViolation]:
    for i, (item, offset) in enumerate(zip(problem.items, offsets, strict=True)):
        if offset % item.alignment:
            message = f"item {i} at {offset} is no multiple of {item.alignment}"
            yield PackingViolation(rule="aligned", items=(i,), message=message)


def _where_fixed(problem: PackingProblem, offsets: Sequence[int]) -> Iterator[PackingViolation]:
    for i, (item, offset) in enumerate(zip(problem.items, offsets, strict=True)):
        if item.offset is not None and item.offset != offset:
            message = f"item {i} at {offset} is fixed at {item.offset}"
            yield PackingViolation(rule="where_fixed", items=(i,), message=message)


def _outside_reserved(
    problem: PackingProblem, offsets: Sequence[int]
) -> Iterator[PackingViolation]:
    for i, (item, offset) in enumerate(zip(problem.items, offsets, strict=True)):
        for start, end in problem.reserved:
            shared = min(offset + item.size, end) - max(offset, start)
            if shared > 0:
                message = f"item {i} has {shared} B in the reserved range [{start}, {end})"
                yield PackingViolation(rule="outside_reserved", items=(i,), message=message)


def _together(problem: PackingProblem, offsets: Sequence[int]) -> Iterator[PackingViolation]:
    for a, b in problem.together:
        if offsets[a] != offsets[b]:
            message = f"items {a} and {b} must lie together: {offsets[a]} and {offsets[b]}"
            yield PackingViolation(rule="together", items=(a, b), message=message)


def _disjoint(problem: PackingProblem, offsets: Sequence[int]) -> Iterator[PackingViolation]:
    may_share = _connected(problem)
    apart = {frozenset(pair) for pair in problem.apart}
    placed = list(enumerate(zip(problem.items, offsets, strict=True)))
    for (i, (a, a_offset)), (j, (b, b_offset)) in combinations(placed, 2):
        shared = min(a_offset + a.size, b_offset + b.size) - max(a_offset, b_offset)
        if shared <= 0 or may_share[i] == may_share[j]:
            continue
        time = _time_together(a, b)
        if time > 0 or frozenset((i, j)) in apart:
            message = f"items {i} and {j} share {shared} B for {time} units of time"
            yield PackingViolation(rule="disjoint", items=(i, j), message=message)


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
