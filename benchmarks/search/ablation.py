"""What each move of local search is good for, and what leaving a schedule is good for.

Usage: python -m benchmarks.search.ablation PROBLEM ... [--steps N] [--seeds N] [--only NAME ...]

Each move in turn is left out, and several ways to leave a schedule where the search is stuck are
tried, with the same number of steps. Reported are the geometric mean of objective over bound, and
the CPU seconds. For PROBLEM see ``benchmarks.search.against_list``.
"""

import argparse
from collections.abc import Iterator
from math import exp, log
from statistics import mean
from time import process_time

from benchmarks.search.problems import problem_named
from spmilp.plan.measures import claimed
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.local_search.moves import MOVES
from spmilp.solvers.local_search.run import RunOptions
from spmilp.solvers.local_search.solver import LocalSearch


def variants(steps: int) -> Iterator[tuple[str, RunOptions]]:
    """Yield the defaults, other histories, and the moves less one."""
    yield "defaults", RunOptions(steps=steps)
    yield "never leaves", RunOptions(steps=steps, patience=steps)
    yield "patience 50", RunOptions(steps=steps, patience=50)
    yield "patience 400", RunOptions(steps=steps, patience=400)
    yield "leaves by 10 moves", RunOptions(steps=steps, perturbation=10)
    yield "leaves by 3 % each", RunOptions(steps=steps, slack=0.03)
    for left_out in MOVES:
        rest = tuple(name for name in MOVES if name != left_out)
        yield f"without {left_out}", RunOptions(steps=steps, moves=rest)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    problems = [problem_named(name) for name in given.problems]
    print("| settings | objective / bound | CPU s |\n|---|--:|--:|")
    for name, options in variants(given.steps):
        if given.only and not any(part in name for part in given.only):
            continue
        started = process_time()
        logs = [ratio(one, options, seed) for one in problems for seed in range(given.seeds)]
        print(f"| {name} | {exp(mean(logs)):.4f} | {process_time() - started:.0f} |", flush=True)


def ratio(problem: Problem, options: RunOptions, seed: int) -> float:
    """Return the logarithm of what is found over the bound."""
    result = LocalSearch(options).solve(problem, SolveOptions(seed=seed))
    if result.plan is None:
        raise SystemExit(f"{problem.name}: no plan ({result.reason})")
    return log(claimed(result.plan.claim).of(problem.objective.first) / result.bound)


if __name__ == "__main__":
    main()
