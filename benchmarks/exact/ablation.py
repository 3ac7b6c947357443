"""What each switch of the CP-SAT solver buys.

Usage: python -m benchmarks.exact.ablation [FOLDER] [--least N] [--most N] [--every K]
           [--limit D | --seconds S] [--only SWITCH ...]

Each switch in turn is set to what it is not, on the instances of so many tasks (each, or every K-th
one), with one worker and a limit in deterministic time or in seconds. Reported are the shifted
geometric means (shift 1) of the CPU seconds and of the final gap in per cent, how many are proven,
and the mean ratio of the objective to that of the defaults.
"""

import argparse
from collections.abc import Iterator
from dataclasses import fields, replace
from math import exp, log
from pathlib import Path
from statistics import mean
from time import process_time

from benchmarks.exact.twenty_to_forty import ENDINGS, ROOT
from spmilp.plan.measures import claimed
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.solver import CpSatSolver

FINEST = 1e-9


def variants(limit: float | None, only: list[str]) -> Iterator[tuple[str, CpSatOptions]]:
    """Yield the defaults, and the settings with one switch the other way round."""
    defaults = CpSatOptions(deterministic_limit=limit, tie_breaks=0.0)
    yield "(defaults)", defaults
    for field in fields(CpSatOptions):
        wanted = field.name in only if only else field.name != "log"
        if isinstance(field.default, bool) and wanted:
            name = f"{'without' if field.default else 'with'} {field.name}"
            yield name, replace(defaults, **{field.name: not field.default})
    if not only or "addresses_in_model" in only:
        yield "with all addresses", replace(defaults, addresses_in_model=True)
    for residencies in (1, 3):
        if not only or "residencies" in only:
            yield f"residencies = {residencies}", replace(defaults, residencies=residencies)


def shifted_mean(values: list[float]) -> float:
    """Return the geometric mean of values and 1, less 1."""
    return exp(mean(log(value + 1.0) for value in values)) - 1.0


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "instances" / "problems")
    parser.add_argument("--least", type=int, default=0, help="tasks")
    parser.add_argument("--most", type=int, default=16, help="tasks")
    parser.add_argument("--every", type=int, default=1, metavar="K")
    parser.add_argument("--limit", type=float, default=1.0, help="deterministic time")
    parser.add_argument("--seconds", type=float, help="wall time instead")
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    paths = sorted(p for p in given.folder.iterdir() if p.name.endswith(ENDINGS))
    problems = [p for p in map(read_problem, paths) if given.least <= len(p.tasks) <= given.most]
    problems = problems[:: given.every]
    print(f"{len(problems)} instances")
    print("| settings | CPU s | gap % | proven | objective |\n|---|--:|--:|--:|--:|")
    reference: list[int] = []
    limit = given.limit if given.seconds is None else None
    for name, settings in variants(limit, given.only):
        seconds, gaps, values, proven = run(problems, settings, given.seconds)
        reference = reference or values
        ratio = mean(a / max(b, FINEST) for a, b in zip(values, reference, strict=True))
        print(
            f"| {name} | {shifted_mean(seconds):.2f} | {shifted_mean(gaps):.2f} | {proven} "
            f"| {ratio:.4f} |",
            flush=True,
        )


def run(
    problems: list[Problem], settings: CpSatOptions, limit: float | None
) -> tuple[list[float], list[float], list[int], int]:
    """Return CPU seconds, gaps in per cent and objectives, and how many are proven."""
    seconds, gaps, values, proven = [], [], [], 0
    for problem in problems:
        began = process_time()
        result = CpSatSolver(settings).solve(problem, SolveOptions(time_limit=limit))
        seconds.append(process_time() - began)
        proven += result.status is SolveStatus.OPTIMAL
        if result.plan is None:
            gaps.append(100.0)
            values.append(0)
            continue
        value = claimed(result.plan.claim).of(problem.objective.first)
        gaps.append(100.0 * (value - result.bound) / max(value, 1))
        values.append(value)
    return seconds, gaps, values, proven


if __name__ == "__main__":
    main()
