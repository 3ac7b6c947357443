"""The list scheduler, its perturbed restarts and the bound, side by side.

Usage: python -m benchmarks.search.against_list PROBLEM ... [--seconds S] [--workers N] [--seed N]

A PROBLEM is a ``problem.json``, or a model and a machine as ``models/resnet8_int8.onnx@mesh4x4``.
Both solvers have the same time limit; every plan is checked. The last row holds the geometric means
of the ratios.
"""

import argparse
from math import exp, log
from statistics import mean
from time import monotonic
from typing import Any

from benchmarks.search.problems import problem_named, short
from spmilp.pipeline import solve
from spmilp.problem.problem import Problem


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    limits = {"time_limit": given.seconds, "workers": given.workers, "seed": given.seed}
    print("| problem | tasks | bound | list | search | list / bound | search / bound | seconds |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    ratios: list[tuple[float, float]] = []
    for name in given.problems:
        problem = problem_named(name)
        started = monotonic()
        bound, by_list = objective(problem, "list", limits)
        between = monotonic()
        _, by_search = objective(problem, "search", limits)
        seconds = f"{between - started:.0f} + {monotonic() - between:.0f}"
        ratios.append((by_list / bound, by_search / bound))
        print(
            f"| {short(name)} | {len(problem.tasks)} | {bound} | {by_list} | {by_search} "
            f"| {by_list / bound:.3f} | {by_search / bound:.3f} | {seconds} |",
            flush=True,
        )
    means = (exp(mean(log(ratio) for ratio in some)) for some in zip(*ratios, strict=True))
    print("| geometric mean | | | | |", " | ".join(f"{value:.3f}" for value in means), "| |")


def objective(problem: Problem, solver: str, limits: dict[str, Any]) -> tuple[int, int]:
    """Return the bound and the first quantity of a solver's plan, which the checker accepts."""
    result = solve(problem, solver=solver, **limits)
    if result.objective is None:
        raise SystemExit(f"{solver}: no valid plan ({result.reason})")
    return result.bound, result.objective


if __name__ == "__main__":
    main()
