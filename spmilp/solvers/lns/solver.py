"""Large-neighbourhood search as a solver."""

from dataclasses import replace

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.fit import why_it_cannot_fit
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.beside import Beside
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.search import Session

PATIENCE = 1.0
"""Seconds for the step at hand after an interrupt."""


class LnsSolver(Solver):
    """Improves the makespan of plans by their partial order.

    The starts are a valid hint and the schedules of the list scheduler. No plan is returned that is
    worse than any of them, or that the checker does not accept. Only the makespan is made smaller;
    where it is not the first objective, the hint or the list scheduler's plan is the answer.
    """

    name = "lns"

    def __init__(self, settings: LnsOptions | None = None) -> None:
        self._settings = settings or LnsOptions()

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        problem, options, hint = context.problem, context.options, context.hint
        clock = Clock(options.time_limit, context.clock.now)
        if hint is not None and check(problem, hint):
            hint = None
        if problem.objective.first is not Quantity.MAKESPAN:
            return _without_search(problem, options, hint)
        bound = best_bound(problem)
        reason = why_it_cannot_fit(problem)
        if reason:
            status = SolveStatus.INFEASIBLE
            return SolverResult(
                status=status, plan=None, bound=bound.value, bound_source=bound.name, reason=reason
            )
        beside = Beside(options.on_progress)
        options = replace(options, on_progress=beside.tell)
        session = Session(problem, bound, options, clock, hint, self._settings)
        interrupted = False
        try:
            beside.run(session.search)
        except KeyboardInterrupt:
            clock.stop()
            beside.linger(PATIENCE)
            if not session.has_plan:
                raise
            interrupted = True
        plan = session.plan()
        if plan is None:
            return SolverResult(
                status=SolveStatus.UNKNOWN,
                plan=None,
                bound=bound.value,
                bound_source=bound.name,
                reason=session.reason,
            )
        is_optimal = plan.claim.makespan == bound.value
        claim = replace(plan.claim, bound=bound.value, bound_source=bound.name)
        return SolverResult(
            status=SolveStatus.OPTIMAL if is_optimal else SolveStatus.FEASIBLE,
            plan=replace(plan, claim=claim, solver=self.name, options=()),
            bound=bound.value,
            bound_source=bound.name,
            interrupted=interrupted,
        )


def _without_search(problem: Problem, options: SolveOptions, hint: Plan | None) -> SolverResult:
    """Return the better of a hint and the list scheduler's plan."""
    found = ListScheduler().solve(problem, options)
    if hint is None:
        return found
    quantities = problem.objective.order
    if found.plan is not None:
        own, given = claimed(found.plan.claim), claimed(hint.claim)
        if [own.of(q) for q in quantities] <= [given.of(q) for q in quantities]:
            return found
    claim = replace(hint.claim, bound=found.bound, bound_source=found.bound_source)
    return replace(found, plan=replace(hint, claim=claim), status=SolveStatus.FEASIBLE, reason="")
