"""Let solvers judge each other on random tiny problems.

Usage: python -m benchmarks.exact.agreement [SOLVER ...] [--first N] [--count N] [--tasks N]

Every solver solves every problem. Reported is each pair of answers that cannot both be true (two
proven values that differ, no plan proven beside a plan, a bound above the value of a plan), and
each plan that the checker refuses. The objectives take turns from number to number. Exits with 1
if anything is reported.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from time import monotonic

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from tests.oracle.solver import solver_named
from tests.solvers.tiny_problems import tiny_problem


def contradictions(problem: Problem, results: dict[str, SolverResult]) -> Iterator[str]:
    """Yield what is wrong with the answers to one problem."""
    first = problem.objective.first
    values = {name: quantities(problem, r)[0] for name, r in results.items() if r.plan is not None}
    for name, result in results.items():
        if result.plan is not None:
            for violation in check(problem, result.plan):
                yield f"{name}: {violation}"
    for one, other in permutations(results, 2):
        bound = results[one].bound
        if other in values and results[one].status is SolveStatus.INFEASIBLE:
            yield f"{one}: infeasible; {other}: {first} {values[other]}"
        elif other in values and bound > values[other]:
            yield f"{one}: bound {bound}; {other}: {first} {values[other]}"


def quantities(problem: Problem, result: SolverResult) -> tuple[int, ...]:
    """Return the quantities of a plan in the objective's order."""
    if result.plan is None:
        return ()
    return tuple(result.plan.claim.of(quantity) for quantity in problem.objective.order)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("solvers", nargs="*", default=["bruteforce", "cpsat"])
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--count", type=int, default=400, help="how many problems")
    parser.add_argument("--tasks", type=int, default=3, help="the most tasks of a problem")
    parser.add_argument("--seconds", type=float, default=30.0, help="for one solver on one problem")
    arguments = parser.parse_args()
    solvers = {name: solver_named(name) for name in arguments.solvers}
    statuses: dict[str, Counter[str]] = {name: Counter() for name in solvers}
    spent: Counter[str] = Counter()
    reported = proven_by_all = same_ties = 0
    for number in range(arguments.first, arguments.first + arguments.count):
        problem = tiny_problem(number, arguments.tasks)
        results = {}
        for name, solver in solvers.items():
            began = monotonic()
            results[name] = solver.solve(problem, SolveOptions(time_limit=arguments.seconds))
            spent[name] += monotonic() - began
            statuses[name][results[name].status] += 1
        open_ones = [name for name, result in results.items() if not is_proven(result)]
        proven_by_all += not open_ones
        if open_ones:
            print(f"{number} {problem.objective.first}: open with {', '.join(open_ones)}")
        same_ties += len({quantities(problem, r) for r in results.values() if r.plan}) <= 1
        for text in contradictions(problem, results):
            reported += 1
            print(f"{number} {problem.objective.first}: {text}", flush=True)
    for name in solvers:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses[name].items()))
        print(f"{name}: {counts}; {spent[name]:.0f} s")
    print(
        f"{arguments.count} problems, {proven_by_all} proven by all, {same_ties} alike in every "
        f"quantity, {reported} contradictions"
    )
    return 1 if reported else 0


def is_proven(result: SolverResult) -> bool:
    """Say whether an answer is final."""
    return result.status in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)


if __name__ == "__main__":
    sys.exit(main())
