"""Large-neighbourhood search as a solver."""

from contextlib import suppress
from dataclasses import replace

from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Result, SolveOptions, SolveStatus
from spmilp.solvers.bounds.best import best_bound
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.session import Session

SHARE_OF_START = 0.3
"""Of the time limit, at most, for the list scheduler's plan to start from."""


class LnsSolver:
    """Improves the makespan of a plan by its partial order.

    The start is a valid hint, or else the list scheduler's plan. No worse plan is returned, and
    none that the checker does not accept. Only the makespan is made smaller; where it is not
    the first objective, the start is the answer.
    """

    name = "lns"

    def solve(self, problem: Problem, options: SolveOptions, hint: Plan | None = None) -> Result:
        """Return the best plan found."""
        clock = Clock(options.time_limit)
        start = self._start(problem, options, hint)
        if start.plan is None or problem.objective.first is not Quantity.MAKESPAN:
            return start
        session = Session(problem, start.plan, start.bound, options, clock)
        with suppress(KeyboardInterrupt):
            session.search()
        plan = session.plan()
        is_optimal = plan.claim.makespan == start.bound
        return replace(
            start,
            plan=replace(plan, solver=self.name, options=()),
            status=SolveStatus.OPTIMAL if is_optimal else SolveStatus.FEASIBLE,
        )

    def _start(self, problem: Problem, options: SolveOptions, hint: Plan | None) -> Result:
        """Return a valid hint with the bound on it, else the list scheduler's plan."""
        if hint is None or check(problem, hint):
            limit = options.time_limit
            share = None if limit is None else limit * SHARE_OF_START
            return ListScheduler().solve(problem, replace(options, time_limit=share))
        bound = best_bound(problem)
        claim = replace(hint.claim, bound=bound.value, bound_source=bound.name)
        value = claimed(claim).of(problem.objective.first)
        return Result(
            status=SolveStatus.OPTIMAL if value == bound.value else SolveStatus.FEASIBLE,
            plan=replace(hint, claim=claim),
            bound=bound.value,
            bound_source=bound.name,
        )
