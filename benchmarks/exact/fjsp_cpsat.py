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

from spmilp.checker.check import check
from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.cpsat.solver import CpSatSolver


def job_shop(path: Path) -> Problem:
    """Return the problem of a file.

    The first line begins with the number of jobs and that of machines. A job's line is its number
    of operations, then for each the number of machines that can do it and as many pairs of a
    machine, counted from 1, and a time.
    """
    lines = [line.split() for line in path.read_text().splitlines() if line.strip()]
    jobs, machines = int(lines[0][0]), int(lines[0][1])
    tasks: list[Task] = []
    for job, line in enumerate(lines[1 : jobs + 1]):
        numbers = iter(map(int, line))
        for step in range(next(numbers)):
            cycles: list[int | None] = [None] * machines
            for _ in range(next(numbers)):
                machine = next(numbers)
                cycles[machine - 1] = next(numbers)
            index = len(tasks)
            tasks.append(
                Task(
                    index=index,
                    name=f"job {job} step {step}",
                    cycles=tuple(cycles),
                    reads=(),
                    writes=(),
                    after=(index - 1,) if step else (),
                )
            )
    return Problem(
        name=path.stem,
        machine=Machine(
            name=f"{machines} machines",
            memories=(Memory(index=0, name="dram", kind=MemoryKind.DRAM, size=None),),
            kinds=tuple(CoreKind(index=k, name=f"machine {k}") for k in range(machines)),
            cores=tuple(
                Core(index=k, name=f"machine {k}", kind=k, memory=0) for k in range(machines)
            ),
            links=(),
            engines=(),
        ),
        tensors=(),
        buffers=(),
        slices=(),
        tasks=tuple(tasks),
    )


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
            problem = job_shop(arguments.folder / f"{row['instance']}.txt")
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
