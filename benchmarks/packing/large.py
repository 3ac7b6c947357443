"""First answers for tens of thousands of buffers, against the bound of live bytes.

Usage: python -m benchmarks.packing.large [--counts N ...] [--seed N]

Buffers as a scheduler of a large network would make them: a new one at each step, most of them
short-lived, some long, sizes spread over two orders of magnitude. Times are those of a call of
``minimise`` whose limit is as stated.
"""

import argparse
import random
import sys

from benchmarks.packing.measure import measured
from spmilp.packing import Item, PackingOptions, PackingProblem, minimise

LIMITS = {10_000: 2.0, 100_000: 30.0}
"""Seconds within which an answer is expected, by number of buffers."""


def buffers(count: int, seed: int) -> tuple[Item, ...]:
    """Return buffers of whole KiB, about a hundred of them alive at a time."""
    dice = random.Random(seed)
    items = []
    for start in range(count):
        length = 1 + int(dice.expovariate(1 / (3_000 if dice.random() < 0.02 else 50)))
        size = 1024 * max(1, min(256, int(dice.lognormvariate(3.0, 1.0))))
        items.append(Item(size=size, lifetimes=((start, start + length),)))
    return tuple(items)


def main() -> int:
    """Print the table; return 1 if a heuristic answer took longer than its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--counts", type=int, nargs="*", default=list(LIMITS))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    late = 0
    print("  buffers     limit   wall s    CPU s         height     live bytes  height/live  by")
    for count in arguments.counts:
        problem = PackingProblem(items=buffers(count, arguments.seed), capacity=None)
        for limit in (0.0, LIMITS.get(count, 30.0)):
            run = measured(minimise, problem, PackingOptions(time_limit=limit))
            found = run.packing
            height = found.height or 0
            late += limit == 0.0 and run.wall > LIMITS.get(count, 30.0)
            print(
                f"{count:9,}{limit:10.1f}{run.wall:9.2f}{run.cpu:9.2f}{height:15,}{found.bound:15,}"
                f"{height / found.bound:13.4f}  {found.source}",
                flush=True,
            )
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
