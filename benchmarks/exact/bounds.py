"""Hold all bounds, and the heads and tails of tasks, against plans of random problems.

Usage: python -m benchmarks.exact.bounds [--brute N] [--states N] [--plans N] [--first N]

The first part solves tiny problems by brute force; no bound may exceed any quantity of the best
plan. The second part takes plans of larger problems by ``list`` and ``search``: no task may start
before its head or end after its tail, and no bound may exceed a plan. Exits with 1 if anything is
reported.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice

from spmilp.bounds.best import all_bounds, best_bound
from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import paths_of
from spmilp.plan.measures import measure
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions
from tests.oracle.solver import BruteForce
from tests.solvers.random_problems import small_problem
from tests.solvers.tiny_problems import tiny_problem


def contradictions(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield each bound, head and tail that a plan does not keep to."""
    measures = measure(problem, plan.placements, plan.residencies, plan.transfers)
    for bound in all_bounds(problem):
        if bound.value > measures.of(bound.quantity):
            yield f"{bound.name}: {bound.value} > {bound.quantity} {measures.of(bound.quantity)}"
    paths = paths_of(problem, Movement(problem))
    for placement, head, tail in zip(plan.placements, paths.head, paths.tail, strict=True):
        if head > placement.start:
            yield f"task {placement.task}: head {head} > start {placement.start}"
        if placement.start + tail > measures.makespan:
            yield f"task {placement.task}: tail {tail} > {measures.makespan - placement.start}"


def features(problem: Problem) -> Iterator[str]:
    """Yield what is special about a problem's machine."""
    machine = problem.machine
    if machine.remote is not None:
        yield "remote reads"
    if len({core.memory for core in machine.cores}) < len(machine.cores):
        yield "shared scratchpads"
    if any(memory.name == "l2" for memory in machine.memories):
        yield "staging"
    if any(engine.multicast for engine in machine.engines):
        yield "multicast"
    if len(machine.kinds) > 1:
        yield "kinds"


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--brute", type=int, default=300, help="problems for brute force")
    parser.add_argument("--states", type=int, default=2000, help="for brute force to look at")
    parser.add_argument("--plans", type=int, default=1000, help="problems for the search")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    arguments = parser.parse_args()
    answers = {
        "brute force": (exact_answers(arguments.first, arguments.states), arguments.brute),
        "search": (found_answers(arguments.first), arguments.plans),
    }
    reports = 0
    for name, (pairs, wanted) in answers.items():
        counts: Counter[str] = Counter()
        for problem, plan in islice(pairs, wanted):
            best = best_bound(problem, "makespan").value
            counts["plans that meet a bound"] += best == plan.claim.makespan
            counts.update(["problems", *features(problem)])
            for one in contradictions(problem, plan):
                print(f"{problem.name}: {one}", flush=True)
                reports += 1
        print(f"{name}: {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}")
    print(f"{reports} contradictions")
    return 1 if reports else 0


def exact_answers(first: int, states: int) -> Iterator[tuple[Problem, Plan]]:
    """Yield tiny problems with their best plans."""
    solver = BruteForce(states)
    for number in count(first):
        for problem in (tiny_problem(number), small_problem(number, most_tasks=4)):
            plan = solver.solve(problem, SolveOptions()).plan
            if plan is not None:
                yield problem, plan


def found_answers(first: int) -> Iterator[tuple[Problem, Plan]]:
    """Yield larger problems with good plans."""
    solver = find_solver("search")
    for number in count(first):
        problem = small_problem(number)
        plan = solver.solve(problem, SolveOptions(time_limit=0.05)).plan
        if plan is not None:
            yield problem, plan


if __name__ == "__main__":
    sys.exit(main())
