"""Pack MiniMalloc's eleven challenging instances into 1 MiB and print a table.

Usage: python -m benchmarks.packing.challenging [FOLDER] [--repeat N] [--seed N]

The start of a process that packs one file is stated apart. Times are medians, preparation
included, the check not.
"""

import argparse
import subprocess
import sys
from math import exp, log
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.packing.measure import CAPACITY, DATA, challenging, measured
from spmilp.packing import PackingOptions, PackingProblem, pack

MINIMALLOC = {
    "A": 3.62,
    "B": 2.57,
    "C": 0.516,
    "D": 1.87,
    "E": 2.67,
    "F": 4.17,
    "G": 0.909,
    "H": 1.29,
    "I": 2.37,
    "J": 0.669,
    "K": 0.488,
}
"""Seconds of MiniMalloc (google/minimalloc, C++, ``-O3``, default options) on one core of a shared
two-core machine, 2026-11-20, median of three, each packing validated. Figures of another machine
are comparable after a run of MiniMalloc there."""


def main() -> int:
    """Print the table; return 1 if an instance was not packed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--repeat", type=int, default=5, help="calls per instance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0, help="limit of one call")
    arguments = parser.parse_args()
    instances = challenging(arguments.folder)
    print("instance  buffers    nodes   wall s    CPU s  MiniMalloc s    ratio  by CPU")
    options = PackingOptions(seed=arguments.seed, time_limit=arguments.seconds)
    total = total_cpu = 0.0
    ratios = []
    failed = 0
    for name, items in instances.items():
        problem = PackingProblem(items=items, capacity=CAPACITY)
        runs = [measured(pack, problem, options) for _ in range(arguments.repeat)]
        wall, cpu = median(run.wall for run in runs), median(run.cpu for run in runs)
        total, total_cpu = total + wall, total_cpu + cpu
        failed += any(run.packing.offsets is None for run in runs)
        ratios.append(MINIMALLOC[name] / wall)
        nodes = runs[0].packing.nodes
        print(
            f"{name:8}{len(items):9,}{nodes:9,}{wall:9.3f}{cpu:9.3f}{MINIMALLOC[name]:14.3f}"
            f"{ratios[-1]:9.1f}{MINIMALLOC[name] / cpu:8.1f}"
        )
    mean = exp(sum(map(log, ratios)) / len(ratios))
    print(
        f"{'sum':26}{total:9.3f}{total_cpu:9.3f}{sum(MINIMALLOC.values()):14.3f}"
        f"   least {min(ratios):.1f}, geometric mean {mean:.1f}"
    )
    file = arguments.folder / "K.1048576.csv"
    print(f"a process that packs K: {cold_start(file):.2f} s wall")
    return 1 if failed else 0


def cold_start(file: Path) -> float:
    """Return the wall seconds of ``spmilp pack`` on one file, the better of two."""
    command = [sys.executable, "-m", "spmilp", "pack", str(file), "--capacity", str(CAPACITY)]
    seconds = []
    for _ in range(2):
        began = perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    sys.exit(main())
