"""Live ranges of values by data-flow analysis over a control-flow graph, loops included."""

from collections import deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

import networkx as nx

Point = TypeVar("Point", bound=Hashable)


def live_ranges(
    program: "nx.DiGraph[Point]",
    reads: Mapping[Point, Collection[int]],
    writes: Mapping[Point, Collection[int]],
    values: int,
) -> list[set[Point]]:
    """Return the points at which each value takes memory.

    A value is live behind a point if a path leads from there to a point that reads it, on which no
    point writes it; it takes memory where it is read, written, or live behind the point. The sets
    of live values grow from nothing until none of them changes (backward analysis; Aho et al.,
    "Compilers", chapter 9.2).

    Parameters
    ----------
    program
        An edge leads from each point to those that may come next.
    reads, writes
        Values by number; at a point all reads come before all writes.
    values
        How many there are.
    """
    read, written = ({p: _bits(of.get(p, ())) for p in program} for of in (reads, writes))
    behind = dict.fromkeys(program, 0)
    waiting = deque(reversed(list(program)))
    queued = set(program)
    while waiting:
        point = waiting.popleft()
        queued.discard(point)
        before = read[point] | (behind[point] & ~written[point])
        for earlier in program.predecessors(point):
            if before & ~behind[earlier]:
                behind[earlier] |= before
                if earlier not in queued:
                    queued.add(earlier)
                    waiting.append(earlier)
    found: list[set[Point]] = [set() for _ in range(values)]
    for point in program:
        for value in _numbers(behind[point] | read[point] | written[point]):
            found[value].add(point)
    return found


def loop_of(points: Sequence[Point]) -> "nx.DiGraph[Point]":
    """Return points one after another, over and over again."""
    program: nx.DiGraph[Point] = nx.DiGraph()
    nx.add_cycle(program, points)
    return program


def _bits(numbers: Collection[int]) -> int:
    return sum(1 << number for number in set(numbers))


def _numbers(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
