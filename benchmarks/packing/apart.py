"""Pack 100 random problems in which many pairs of buffers must never share bytes.

Usage: python -m benchmarks.packing.apart [--seeds N] [--seconds S] [--only KIND]

Each problem is asked twice, within a second: whether it fits at a capacity between its live bytes
and the height of a first fit, and for its least height. Reported is how many were decided (packed,
or proven not to fit) and how many least heights were proven.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from random import Random
from statistics import median

from benchmarks.packing.measure import first_call, measured
from spmilp.packing import Item, PackingOptions, PackingProblem, PackingStatus, minimise, pack

KIB = 1024
GOAL = 0.95
"""Share of the problems that must be decided in time."""


def lives(random: Random, count: int, longest: int) -> tuple[Item, ...]:
    """Return buffers of 1 to 64 KiB that begin anywhere in 100 instants."""
    starts = [random.randrange(100) for _ in range(count)]
    return tuple(
        Item(size=KIB * random.randint(1, 64), lifetimes=((s, s + random.randint(1, longest)),))
        for s in starts
    )


def all_apart(random: Random) -> PackingProblem:
    """Return 16 to 40 buffers, each apart from each other."""
    items = lives(random, random.randint(16, 40), 10)
    return PackingProblem(
        items=items, capacity=None, apart=tuple(combinations(range(len(items)), 2))
    )


def at_random(random: Random) -> PackingProblem:
    """Return 20 to 40 buffers of which a tenth to nine tenths of the pairs are apart."""
    items = lives(random, random.randint(20, 40), 30)
    share = random.choice((0.1, 0.3, 0.5, 0.7, 0.9))
    pairs = [pair for pair in combinations(range(len(items)), 2) if random.random() < share]
    return PackingProblem(items=items, capacity=None, apart=tuple(pairs))


def in_groups(random: Random) -> PackingProblem:
    """Return 100 to 200 buffers; those of a group, of 4 to 12, are apart from each other."""
    items = lives(random, random.randint(100, 200), 20)
    pairs: set[tuple[int, int]] = set()
    for _ in range(len(items) // 8):
        group = sorted(random.sample(range(len(items)), random.randint(4, 12)))
        pairs.update(combinations(group, 2))
    return PackingProblem(items=items, capacity=None, apart=tuple(sorted(pairs)))


def as_a_cycle(random: Random) -> PackingProblem:
    """Return 15 to 45 buffers, each apart from the next ones: no clique is large."""
    items = lives(random, random.randint(15, 45), 15)
    reach = random.randint(1, 4)
    count = len(items)
    pairs = {tuple(sorted((i, (i + k) % count))) for i in range(count) for k in range(1, reach + 1)}
    return PackingProblem(items=items, capacity=None, apart=tuple((a, b) for a, b in sorted(pairs)))


def with_everything(random: Random) -> PackingProblem:
    """Return such a problem with alignments, a fixed buffer and reserved bytes at the bottom."""
    problem = at_random(random)
    items = [replace(item, alignment=random.choice((64, 256, KIB))) for item in problem.items]
    items[0] = replace(items[0], offset=16 * KIB)
    return replace(problem, items=tuple(items), reserved=((0, 5_000),))


KINDS: tuple[Callable[[Random], PackingProblem], ...] = (
    all_apart,
    at_random,
    in_groups,
    as_a_cycle,
    with_everything,
)


def between_live_bytes_and_first_fit(problem: PackingProblem, random: Random) -> int:
    """Return a capacity in bytes that does not depend on what is measured."""
    live = max(
        sum(i.size for i in problem.items if i.lifetimes[0][0] <= time < i.lifetimes[0][1])
        for time in {item.lifetimes[0][0] for item in problem.items}
    )
    return random.randint(live, height_of_first_fit(problem) - 1)


def height_of_first_fit(problem: PackingProblem) -> int:
    """Return the height when each buffer in turn takes the lowest place that it can have."""
    placed: list[tuple[int, int, int]] = []
    apart = {*problem.apart, *((b, a) for a, b in problem.apart)}
    for i, item in enumerate(problem.items):
        ((start, end),) = item.lifetimes
        taken = [(0, until) for _, until in problem.reserved]
        for j, low, high in placed:
            ((other_start, other_end),) = problem.items[j].lifetimes
            if (i, j) in apart or (start < other_end and other_start < end):
                taken.append((low, high))
        offset = item.offset or 0
        for low, high in sorted(taken) if item.offset is None else ():
            if low < offset + item.size and offset < high:
                offset = -(-high // item.alignment) * item.alignment
        placed.append((i, offset, offset + item.size))
    return max(high for _, _, high in placed)


def main() -> int:
    """Print what was not decided in time, and the counts; return 1 below the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=20, help="problems of each kind")
    parser.add_argument("--seconds", type=float, default=1.0, help="limit of one call")
    parser.add_argument("--only", default="", help="the kind to ask")
    arguments = parser.parse_args()
    first_call()
    options = PackingOptions(time_limit=arguments.seconds, conflict=False)
    asked = decided = proven = 0
    for kind in KINDS:
        if arguments.only not in kind.__name__:
            continue
        walls, before = [], (decided, proven)
        for seed in range(arguments.seeds):
            random = Random(f"{kind.__name__} {seed}")
            problem = kind(random)
            capacity = between_live_bytes_and_first_fit(problem, random)
            run = measured(pack, replace(problem, capacity=capacity), options)
            least = measured(minimise, problem, options).packing
            walls.append(run.wall)
            decided += run.packing.status is not PackingStatus.UNKNOWN
            proven += least.status is PackingStatus.OPTIMAL
            if run.packing.status is PackingStatus.UNKNOWN:
                print(f"{kind.__name__} {seed}: {capacity:,} B is open; {least.bound:,} to", end="")
                print(f" {least.height:,} B, {len(problem.items)} buffers", flush=True)
        asked += arguments.seeds
        print(
            f"{kind.__name__:16}{arguments.seeds:4} problems, {decided - before[0]:3} decided,"
            f" median {median(walls):.3f} s; {proven - before[1]:3} least heights proven",
            flush=True,
        )
    print(f"{decided} of {asked} decided in {arguments.seconds:g} s, {proven} least heights proven")
    return 0 if decided >= GOAL * asked else 1


if __name__ == "__main__":
    sys.exit(main())
