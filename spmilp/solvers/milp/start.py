"""What is known before there is a model."""

from spmilp.bounds.best import best_bound
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult, SolveStatus


def without_plan(problem: Problem, reason: str) -> SolverResult:
    """Return that nothing but the simple bounds is known."""
    bound = best_bound(problem)
    return SolverResult(
        status=SolveStatus.UNKNOWN,
        plan=None,
        bound=bound.value,
        bound_source=bound.name,
        reason=reason,
    )
