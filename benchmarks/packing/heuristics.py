"""Published heuristics on MiniMalloc's challenging instances, beside the least height found.

Usage: python -m benchmarks.packing.heuristics [FOLDER]

Heights are multiples of the least one that ``minimise`` finds in 20 s; processor seconds are of all
instances together.
"""

import argparse
from math import exp, log
from pathlib import Path
from statistics import mean

from benchmarks.packing.measure import DATA, challenging, measured
from spmilp.packing import Packing, PackingOptions, PackingProblem, minimise, pack_by
from spmilp.packing.heuristics import HEURISTICS

SECONDS = 20.0


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    instances = challenging(parser.parse_args().folder)
    print(f"| instance | buffers | least height | {' | '.join(HEURISTICS)} |")
    print("|---|--:|--:|" + "--:|" * len(HEURISTICS))
    ratios: dict[str, list[float]] = {name: [] for name in HEURISTICS}
    seconds = dict.fromkeys(HEURISTICS, 0.0)
    for instance, items in instances.items():
        problem = PackingProblem(items=items, capacity=None)
        options = PackingOptions(time_limit=SECONDS, conflict=False)
        least = measured(minimise, problem, options).packing.height or 0
        cells = []
        for name in HEURISTICS:

            def solve(given: PackingProblem, limits: PackingOptions, name: str = name) -> Packing:
                return pack_by(name, given, limits)

            found = measured(solve, problem, PackingOptions())
            ratios[name].append((found.packing.height or 0) / least)
            seconds[name] += found.cpu
            cells.append(f"{ratios[name][-1]:.3f}")
        print(f"| {instance} | {len(items)} | {least:,} | {' | '.join(cells)} |", flush=True)
    means = (f"{exp(mean(map(log, each))):.3f}" for each in ratios.values())
    print(f"| geometric mean | | | {' | '.join(means)} |")
    print(f"| CPU s | | | {' | '.join(f'{each:.2f}' for each in seconds.values())} |")


if __name__ == "__main__":
    main()
