"""Compare the packing search with a second opinion on random small problems.

Usage: python -m benchmarks.packing.agreement [--first N] [--count N] [--items N]

Every problem is asked at its least height and one byte below it, with two seeds; plain problems,
problems with everything and problems without slack take turns. The proof is confirmed by CP-SAT on
pairs. Exits with 1 if anything disagrees.
"""

import argparse
import sys
from random import Random
from time import monotonic

from tests.packing.random_problems import full_problem, plain_problem, rich_problem
from tests.packing.searching import agreement_on

KINDS = (plain_problem, rich_problem, full_problem)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--count", type=int, default=2_000, help="how many problems")
    parser.add_argument(
        "--items", type=int, default=9, help="the most items of a problem; twice that without slack"
    )
    arguments = parser.parse_args()
    began = monotonic()
    asked = infeasible = above_bound = restarted = given_up = reported = 0
    for number in range(arguments.first, arguments.first + arguments.count):
        random = Random(number)
        kind = KINDS[number % len(KINDS)]
        problem = kind(random, arguments.items * (2 if kind is full_problem else 1))
        found = agreement_on(problem, random)
        for wrong in found.wrong:
            print(f"problem {number}: {wrong}\n  {problem}", flush=True)
        reported += len(found.wrong)
        asked += found.asked
        infeasible += found.infeasible
        above_bound += found.above_bound
        restarted += found.restarted
        given_up += found.given_up
    print(
        f"{asked} questions, {infeasible} of them infeasible; {above_bound} least heights above the"
        f" bound; restarts in {restarted} runs; {given_up} given up;"
        f" {reported} disagreements; {monotonic() - began:.0f} s"
    )
    return 1 if reported else 0


if __name__ == "__main__":
    sys.exit(main())
