"""Let the packing search and a second opinion judge each other on random small problems.

Usage: python -m benchmarks.packing.agreement [--first N] [--count N] [--items N]

Every problem is asked at its least height and one byte below it, with all prunings and with random
ones; problems with one lifetime each and problems with everything take turns. The proof is
confirmed by enumeration, or by CP-SAT on pairs where that takes too long. Exits with 1 if anything
disagrees.
"""

import argparse
import sys
from random import Random
from time import monotonic

from tests.packing.random_problems import plain_problem, rich_problem
from tests.packing.search.searching import agreement_on


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--count", type=int, default=2_000, help="how many problems")
    parser.add_argument("--items", type=int, default=9, help="the most items of a problem")
    arguments = parser.parse_args()
    began = monotonic()
    asked = infeasible = beyond_bound = restarted = reported = 0
    for number in range(arguments.first, arguments.first + arguments.count):
        random = Random(number)
        problem = (rich_problem if number % 2 else plain_problem)(random, arguments.items)
        found = agreement_on(problem, random)
        for wrong in found.wrong:
            print(f"problem {number}: {wrong}\n  {problem}", flush=True)
        reported += len(found.wrong)
        asked += found.asked
        infeasible += found.infeasible
        beyond_bound += found.beyond_bound
        restarted += found.restarted
    print(
        f"{asked} questions, {infeasible} of them infeasible; the search had to settle"
        f" {beyond_bound} problems and restarted in {restarted} answers;"
        f" {reported} disagreements; {monotonic() - began:.0f} s"
    )
    return 1 if reported else 0


if __name__ == "__main__":
    sys.exit(main())
