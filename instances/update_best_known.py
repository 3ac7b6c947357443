"""Solve the instances and write down what is better than what was known.

Usage: python instances/update_best_known.py [--solver NAME] [--time-limit SECONDS] [--only TEXT]
[--workers N] [--open] [--table FILE]

Every plan goes through the checker, and its objective is the one that follows from the plan. A row
of ``best_known.csv`` changes only if the objective falls or the bound rises. Without ``--solver``
the list scheduler runs.
"""

import argparse
import sys
import time
from pathlib import Path

from best_known import TABLE, Outcome, improved, new_row, read_table, write_table

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.plan.measures import measure
from spmilp.plan.plan import Plan
from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions, SolveStatus

PROBLEMS = Path(__file__).resolve().parent / "problems"


def outcome(problem: Problem, solver: str, options: SolveOptions) -> Outcome:
    """Run a solver on a problem, let the checker judge its plan, and take the best bound known."""
    started = time.perf_counter()
    result = find_solver(solver).solve(problem, options)
    bound, source = result.bound, result.bound_source
    simple = best_bound(problem)
    if simple.value >= bound:
        bound, source = simple.value, simple.name
    seconds = time.perf_counter() - started
    return Outcome(
        solver=solver,
        objective=None if result.plan is None else checked(problem, result.plan),
        bound=bound,
        bound_source=source,
        infeasible=result.status is SolveStatus.INFEASIBLE,
        seconds=seconds,
    )


def checked(problem: Problem, plan: Plan) -> int | None:
    """Return the objective of a plan; ``None``, with a message, if the checker rejects it."""
    violations = check(problem, plan)
    for broken in violations[:3]:
        print(f"  {plan.solver}: {broken.rule}: {broken.message}", file=sys.stderr)
    if violations:
        return None
    found = measure(problem, plan.placements, plan.residencies, plan.transfers)
    return found.of(problem.objective.first)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solver", default="list")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="", help="instances whose name contains this")
    parser.add_argument("--open", action="store_true", help="skip what is proven")
    parser.add_argument("--table", type=Path, default=TABLE)
    given = parser.parse_args()
    options = SolveOptions(time_limit=given.time_limit, workers=given.workers)
    for path in sorted(PROBLEMS.glob("*.json")):
        if given.only not in path.stem:
            continue
        problem = read_problem(path)
        old = read_table(given.table).get(path.stem, new_row(path.stem, problem))
        if given.open and old.status in ("optimal", "infeasible"):
            continue
        run = outcome(problem, given.solver, options)
        # Read again: another process may have written in the meantime.
        rows = read_table(given.table)
        old = rows.get(path.stem, old)
        new = improved(old, run)
        if new != old:
            write_table((rows | {path.stem: new}).values(), given.table)
        mark = "  better" if new != old else ""
        print(f"{path.stem}: {run.objective} >= {run.bound}, {run.seconds:.1f} s{mark}", flush=True)


if __name__ == "__main__":
    main()
