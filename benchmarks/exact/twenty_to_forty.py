"""Solve instance files exactly and print a table.

Usage: python -m benchmarks.exact.twenty_to_forty [FOLDER] [--least N] [--most N] [--seconds S]

All problem files of the folder with 20 to 40 tasks, or as many as is said. *Best* and *proof* are
the seconds after which the final objective and the final bound were known.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from time import monotonic

from spmilp.checker.check import check
from spmilp.problem.file import read_problem
from spmilp.registry import find_solver
from spmilp.solvers.base import Progress, SolveOptions, SolveStatus

ROOT = Path(__file__).resolve().parent.parent.parent
ENDINGS = (".json", ".json.gz")


class Watch:
    """Notes when incumbent and bound last changed."""

    def __init__(self) -> None:
        self._began = monotonic()
        self._last: dict[str, int | None] = {}
        self.seconds = {"incumbent": 0.0, "bound": 0.0}

    def see(self, progress: Progress) -> None:
        """Note a change."""
        for name in self.seconds:
            value = getattr(progress, name)
            if value is not None and value != self._last.get(name):
                self._last[name] = value
                self.seconds[name] = monotonic() - self._began


def main() -> int:
    """Print the table; fail if the checker refuses a plan."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "instances" / "problems")
    parser.add_argument("--least", type=int, default=20, help="tasks")
    parser.add_argument("--most", type=int, default=40, help="tasks")
    parser.add_argument("--only", default="", help="instances whose name contains this")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--solver", default="cpsat")
    given = parser.parse_args()
    solver, counts, gaps, refused = find_solver(given.solver), Counter[str](), [], 0
    print("| instance | tasks | status | objective | bound | gap | best | proof |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for path in sorted(p for p in given.folder.iterdir() if p.name.endswith(ENDINGS)):
        if given.only not in path.name:
            continue
        problem = read_problem(path)
        if not given.least <= len(problem.tasks) <= given.most:
            continue
        watch = Watch()
        options = SolveOptions(
            time_limit=given.seconds, workers=given.workers, on_progress=watch.see
        )
        result = solver.solve(problem, options)
        counts[result.status] += 1
        value, gap = None, 1.0
        if result.plan is not None:
            value = result.plan.claim.of(problem.objective.first)
            gap = (value - result.bound) / value if value else 0.0
            refused += bool(check(problem, result.plan))
        if result.status is not SolveStatus.INFEASIBLE:
            gaps.append(gap)
        best, proof = (f"{watch.seconds[name]:.1f}" for name in ("incumbent", "bound"))
        print(
            f"| {path.name.split('.')[0]} | {len(problem.tasks)} | {result.status} | {value} "
            f"| {result.bound} | {gap:.1%} | {best} | {proof} |",
            flush=True,
        )
    print(f"\n{dict(counts)}, median gap {median(gaps or [0.0]):.1%}, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
