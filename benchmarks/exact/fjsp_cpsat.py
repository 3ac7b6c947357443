"""Prove the published optima of flexible job shops with CP-SAT.

Usage: python -m benchmarks.exact.fjsp_cpsat FOLDER [--seconds S] [--workers N]

The folder has ``best_known.csv`` (instance, optimum) and one ``.txt`` for each instance. A job shop
is a problem without data: each machine is a core of its own kind.
"""

import argparse
import csv
import sys
from pathlib import Path
from time import monotonic

from benchmarks.convert import read_job_shop
from spmilp.checker.check import check
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.exact.cpsat.solver import CpSatSolver


def main() -> int:
    """Print a table; fail if an optimum is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    options = SolveOptions(time_limit=arguments.seconds, workers=arguments.workers)
    missed = 0
    print("| instance | tasks | published | status | objective | bound | seconds |")
    print("|---|--:|--:|---|--:|--:|--:|")
    with (arguments.folder / "best_known.csv").open() as rows:
        for row in csv.DictReader(rows):
            problem = read_job_shop(arguments.folder / f"{row['instance']}.txt")
            began = monotonic()
            result = CpSatSolver().solve(problem, options)
            seconds = monotonic() - began
            value = None if result.plan is None else result.plan.claim.makespan
            valid = result.plan is not None and not check(problem, result.plan)
            proven = result.status is SolveStatus.OPTIMAL and value == int(row["optimum"])
            missed += not (proven and valid)
            print(
                f"| {row['instance']} | {len(problem.tasks)} | {row['optimum']} "
                f"| {result.status} | {value} | {result.bound} | {seconds:.1f} |",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
