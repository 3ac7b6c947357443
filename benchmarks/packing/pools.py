"""Pack into several pools: random problems, and MiniMalloc's instances in three memories.

Usage: python -m benchmarks.packing.pools [FOLDER] [--node-limit N]

Says of each family how many were proven, and the CPU seconds.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import process_time

from spmilp.packing import Buffer, Item, PackingOptions, Pool, PoolProblem, check_pools, pack_pools
from spmilp.packing.minimalloc import read_table
from spmilp.packing.pools import pool_of
from tests.packing.pools import random_problem

SHARES = {
    "two pools": ((0.4, 0), (1.2, 3)),
    "three pools": ((0.25, 0), (0.4, 1), (1.2, 4)),
    "four equal banks and a slow one": (*((0.2, 0),) * 4, (1.2, 1)),
}
"""Capacities as shares of the largest live bytes, and costs of a byte."""


def loose_problem(seed: int, count: int, shares: Sequence[tuple[float, int]]) -> PoolProblem:
    """Return buffers of 16 B to 1 KiB that live up to eight units of time."""
    random, buffers, live = Random(f"loose {seed}"), [], Counter[int]()
    for b in range(count):
        start = random.randrange(count)
        life, size = (start, start + random.randint(1, 8)), 16 * random.randint(1, 64)
        item = Item(size=size, lifetimes=(life,), alignment=16)
        buffers.append(Buffer(name=f"b{b}", item=item))
        live.update(dict.fromkeys(range(*life), size))
    top = max(live.values())
    pools = [
        Pool(name=f"p{p}", capacity=int(top * share), cost=cost)
        for p, (share, cost) in enumerate(shares)
    ]
    return PoolProblem(buffers=tuple(buffers), pools=tuple(pools))


def show(name: str, problems: Sequence[PoolProblem], limit: int, *, heights: bool) -> None:
    """Print one row."""
    ended, seconds, gap = Counter[str](), [], 0.0
    for problem in problems:
        began = process_time()
        found = pack_pools(problem, PackingOptions(node_limit=limit), heights=heights)
        seconds.append(process_time() - began)
        ended[str(found.status)] += 1
        if found.places is not None and check_pools(problem, found.places):
            raise SystemExit(f"{name}: the check refuses {found}")
        if found.cost:
            gap = max(gap, 1 - found.cost_bound / found.cost)
    middle = sorted(seconds)[len(seconds) // 2]
    times = f"CPU s: sum {sum(seconds):.1f}, median {middle:.3f}, most {max(seconds):.2f}"
    print(f"{name}: {dict(ended)}, gap of the cost at most {gap:.1%}, {times}", flush=True)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, help="MiniMalloc's instances")
    parser.add_argument("--node-limit", type=int, default=10_000_000)
    given = parser.parse_args()
    limit, seeds = given.node_limit, range(10)
    show("8 to 14 buffers", [random_problem(s) for s in range(200)], limit, heights=True)
    for count in (30, 60, 150):
        for name, shares in SHARES.items():
            problems = [loose_problem(seed, count, shares) for seed in seeds]
            show(f"{count} buffers, {name}", problems, limit, heights=True)
    memories = tuple(map(pool_of, ("tcm=256K", "sram=512K,cost=1", "dram=2M,cost=4")))
    for file in sorted(given.folder.glob("?.*.csv")) if given.folder else []:
        problem = PoolProblem(buffers=read_table(file).buffers, pools=memories)
        show(file.name, [problem], limit, heights=False)


if __name__ == "__main__":
    main()
