"""The search for stays as a solver."""

from dataclasses import replace

from spmilp.bounds.best import best_bound
from spmilp.bounds.bound import Bound
from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.cpsat.clock import Clock
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.residency.plans import NAME
from spmilp.solvers.residency.session import Session
from spmilp.solvers.residency.supplies import is_in_scope

SHARE_OF_START = 0.3
"""Of the time limit, at most, for the list scheduler, where there is no plan to start from."""


class Residency(Solver):
    """Makes DRAM traffic or energy small by what stays in memories between uses.

    It starts from a valid hint, or else from the list scheduler's plan, and returns no plan that is
    worse. It lets no core read a remote scratchpad, and no transfer have several destinations.
    Where neither traffic nor energy is the first objective, or there is not one DRAM, the start is
    the answer.

    Parameters
    ----------
    patience
        Deterministic time where no time limit ends the search; about seconds.
    """

    name = NAME

    def __init__(self, patience: float = 60.0) -> None:
        self._patience = patience

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found; the bound is one that takes no search."""
        problem, options, hint = context.problem, context.options, context.hint
        clock = Clock(options.time_limit, self._patience if options.time_limit is None else None)
        start = _start(problem, options, hint)
        is_over = start.status is SolveStatus.INFEASIBLE or start.interrupted
        if is_over or not is_in_scope(problem):
            return start
        session = Session(problem, options, clock, start)
        interrupted = False
        try:
            session.search()
        except KeyboardInterrupt:
            if session.plan is None:
                raise
            interrupted = True
        if session.plan is None:
            return start
        plan = replace(session.plan, solver=NAME, options=())
        bound = Bound(start.bound_source, problem.objective.first, start.bound)
        return replace(_result_of(problem, plan, bound), interrupted=interrupted)


def _start(problem: Problem, options: SolveOptions, hint: Plan | None) -> SolverResult:
    """Return a valid hint, or what the list scheduler finds."""
    if hint is not None and not check(problem, hint):
        return _result_of(problem, hint, best_bound(problem))
    if options.time_limit is not None:
        options = replace(options, time_limit=SHARE_OF_START * options.time_limit)
    return ListScheduler().solve(problem, options)


def _result_of(problem: Problem, plan: Plan, bound: Bound) -> SolverResult:
    claim = replace(plan.claim, bound=bound.value, bound_source=bound.name)
    is_optimal = claimed(claim).of(bound.quantity) == bound.value
    return SolverResult(
        status=SolveStatus.OPTIMAL if is_optimal else SolveStatus.FEASIBLE,
        plan=replace(plan, claim=claim),
        bound=bound.value,
        bound_source=bound.name,
    )
