"""What is known before there is a model: the list scheduler's answer."""

from spmilp.errors import DoesNotFitError
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Result, SolveOptions, SolveStatus
from spmilp.solvers.bounds.best import best_bound
from spmilp.solvers.list_scheduler.solver import ListScheduler


def without_plan(problem: Problem, reason: str) -> Result:
    """Return that nothing but the simple bounds is known."""
    bound = best_bound(problem)
    return Result(
        status=SolveStatus.UNKNOWN,
        plan=None,
        bound=bound.value,
        bound_source=bound.name,
        reason=reason,
    )


def start_of(problem: Problem, options: SolveOptions) -> Result:
    """Return the list scheduler's answer.

    That its own way of spilling needs more of a DRAM than there is proves nothing.
    """
    try:
        return ListScheduler().solve(problem, options)
    except DoesNotFitError as error:
        return without_plan(problem, str(error))
