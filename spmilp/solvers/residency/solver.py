"""The search for stays as a solver."""

from dataclasses import replace

from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Result, SolveOptions, SolveStatus
from spmilp.solvers.bounds.best import best_bound
from spmilp.solvers.cpsat.clock import Clock
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.residency.plans import NAME
from spmilp.solvers.residency.session import Session
from spmilp.solvers.residency.supplies import is_in_scope

SHARE_OF_START = 0.3
"""Of the time limit, at most, for the list scheduler, where there is no plan to start from."""

WITHOUT_LIMIT = 60.0
"""Deterministic time where no time limit ends the search; about a minute."""


class Residency:
    """Makes DRAM traffic or energy small by what stays in memories between uses.

    It starts from a valid hint, or else from the list scheduler's plan, and returns no plan that is
    worse. Tasks keep the kind of core and the memory that they have there. Where neither traffic
    nor energy is the first objective, or there is not one DRAM, the start is the answer.
    """

    name = NAME

    def solve(self, problem: Problem, options: SolveOptions, hint: Plan | None = None) -> Result:
        """Return the best plan found; the bound is one that takes no search."""
        clock = Clock(options.time_limit, WITHOUT_LIMIT if options.time_limit is None else None)
        start = _start(problem, options, hint)
        if start.status is SolveStatus.INFEASIBLE or not is_in_scope(problem):
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
        claim = replace(session.plan.claim, bound=start.bound, bound_source=start.bound_source)
        is_optimal = claimed(claim).of(problem.objective.first) == start.bound
        return replace(
            start,
            status=SolveStatus.OPTIMAL if is_optimal else SolveStatus.FEASIBLE,
            plan=replace(session.plan, claim=claim, solver=NAME, options=()),
            reason="",
            interrupted=interrupted or start.interrupted,
        )


def _start(problem: Problem, options: SolveOptions, hint: Plan | None) -> Result:
    """Return a valid hint, or what the list scheduler finds."""
    if hint is not None and not check(problem, hint):
        bound = best_bound(problem)
        claim = replace(hint.claim, bound=bound.value, bound_source=bound.name)
        return Result(
            status=SolveStatus.FEASIBLE,
            plan=replace(hint, claim=claim),
            bound=bound.value,
            bound_source=bound.name,
        )
    if options.time_limit is not None:
        options = replace(options, time_limit=SHARE_OF_START * options.time_limit)
    return ListScheduler().solve(problem, options)
