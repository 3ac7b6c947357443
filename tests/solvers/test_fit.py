"""Whether tasks fit is asked of the fewest bytes that any plan can do with."""

import spmilp
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveStatus


def overlapping(spm: str) -> Problem:
    """Return a task that reads rows 0 to 5 and 3 to 8 of what another one has written: 8 rows."""
    b = spmilp.ProblemBuilder(spmilp.load_machine("mesh4x4").replace(spm=spm))
    x = b.input("x", (8, 64), "int8")
    y = b.task("first", reads=[x], writes=("y", (8, 1024), "int8"), cycles=10)
    z = b.task("second", reads=[y[0:5], y[3:8]], writes=("z", (8, 64), "int8"), cycles=10)
    b.output(z)
    return b.build()


def test_one_residency_serves_slices_that_overlap() -> None:
    # The slices take 10 KiB side by side, the buffer 8 KiB.
    result = spmilp.solve(overlapping("9KiB"), solver="list")

    assert result.plan.claim.peak_spm == 8704


def test_what_no_plan_can_hold_is_refused_with_both_numbers() -> None:
    result = spmilp.solve(overlapping("8KiB"), solver="list")

    assert result.status is SolveStatus.INFEASIBLE
    assert "needs 8704 B > 8192 B usable" in result.reason
