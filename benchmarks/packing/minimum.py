"""Find the least height of MiniMalloc's challenging instances, and prove it.

Usage: python -m benchmarks.packing.minimum [FOLDER] [--seconds S] [--only NAMES]

Where the least height lies above the bound of live bytes, the search is asked once more whether one
size unit less is enough: what is timed then is the proof that it is not. Random instances without
slack follow, because on most of MiniMalloc's the bound is met. Times are CPU seconds.
"""

import argparse
import random
import sys
from dataclasses import replace
from math import gcd
from pathlib import Path
from statistics import median

from benchmarks.packing.measure import DATA, challenging, measured
from spmilp.packing import PackingOptions, PackingProblem, PackingStatus, minimise, pack
from spmilp.packing.instance import height_bound, instance_of
from tests.packing.random_problems import full_problem


def proofs(count: int, seeds: int, options: PackingOptions) -> str:
    """Return a line about random instances without slack, and the proofs that they need more."""
    closed = above = 0
    seconds = []
    for seed in range(seeds):
        problem = full_problem(random.Random(f"{count} {seed}"), count)
        found = measured(minimise, problem, options).packing
        if found.status is not PackingStatus.OPTIMAL or found.height is None:
            continue
        closed += 1
        if found.height > height_bound(instance_of(problem)):
            above += 1
            below = replace(problem, capacity=found.height - 1)
            proof = measured(pack, below, options)
            if proof.packing.status is PackingStatus.INFEASIBLE:
                seconds.append(proof.cpu)
    times = f"median {median(seconds):.3f} s, most {max(seconds):.3f} s" if seconds else ""
    return f"{count:6}{seeds:11}{closed:9}{above:13}{len(seconds):10}  {times}"


def main() -> int:
    """Print the table; return 1 if fewer than nine minima were proven."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of one call")
    parser.add_argument("--only", default="", help="names of instances, such as CDJ")
    parser.add_argument("--seeds", type=int, default=30, help="random instances of each size")
    arguments = parser.parse_args()
    options = PackingOptions(time_limit=arguments.seconds, conflict=False)
    print("instance   live bytes      bound     height     CPU s  proof one unit below, CPU s")
    proven = 0
    for name, items in challenging(arguments.folder).items():
        if arguments.only and name not in arguments.only:
            continue
        problem = PackingProblem(items=items, capacity=None)
        live = height_bound(instance_of(problem))
        run = measured(minimise, problem, options)
        found = run.packing
        closed = found.status is PackingStatus.OPTIMAL
        proven += closed
        proof = ""
        if closed and found.height is not None and found.height > live:
            below = found.height - gcd(*(item.size for item in items))
            again = measured(pack, PackingProblem(items=items, capacity=below), options)
            proof = f"{again.packing.status} at {below:,}: {again.cpu:.2f}"
        print(
            f"{name:8}{live:13,}{found.bound:11,}{found.height or 0:11,}{run.cpu:10.2f}  {proof}",
            flush=True,
        )
    print(f"{proven} proven")
    print("random: buffers instances proven above bound refuted one unit below")
    for count in (20, 30, 40, 60):
        print(proofs(count, arguments.seeds, replace(options, time_limit=10.0)), flush=True)
    return 0 if proven >= 9 or arguments.only else 1


if __name__ == "__main__":
    sys.exit(main())
