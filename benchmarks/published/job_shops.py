"""Flexible job shops with published optima: problems without data for the exact solver."""

import csv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.convert import read_job_shop
from benchmarks.published.rows import Row, Source
from spmilp.checker.check import check
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.exact.cpsat.solver import CpSatSolver

SECONDS = 60.0


def measure(data: Path) -> Iterator[Row]:
    """Solve each."""
    folder = data / "fjsp"
    with (folder / "best_known.csv").open(encoding="utf-8") as file:
        optima = {row["instance"]: row["optimum"] for row in csv.DictReader(file)}
    for name, optimum in optima.items():
        problem = read_job_shop(folder / f"{name}.txt")
        result = CpSatSolver().solve(problem, SolveOptions(time_limit=SECONDS))
        if result.plan is None or check(problem, result.plan):
            raise SystemExit(f"cpsat on {name}: no plan that passes the checker")
        value = result.plan.claim.makespan
        yield Row(
            quantity=f"makespan of {name} ({len(problem.tasks)} tasks)",
            published=f"{optimum}, optimal",
            ours=f"{value:,}, {result.status}",
            reason="" if value == int(optimum) else f"a limit of {SECONDS:g} s",
        )


SOURCE = Source(
    title="Flexible job shops",
    citation=(
        "Fattahi et al. 2007 and Brandimarte 1993; the optima are those that "
        "ScheduleOpt/benchmarks lists at 79f0edc."
    ),
    setting=(
        f"`cpsat`, one worker, {SECONDS:g} s at most; a machine is a core of its own kind, and "
        "nothing has data."
    ),
    rows=measure,
)
