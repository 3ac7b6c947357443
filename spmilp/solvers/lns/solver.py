"""Large-neighbourhood search as a solver."""

from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.search import Search

PATIENCE = 1.0
"""Seconds for the step at hand after an interrupt."""


class LnsSolver(Solver):
    """Improves the makespan of plans by their partial order.

    The initial solutions are a valid hint and the schedules of the list scheduler. No plan is
    returned that is worse than any of them, or that the checker does not accept. Only the makespan
    is made smaller; where it is not the first objective, the hint or the list scheduler's plan is
    the answer.
    """

    name = "lns"

    def __init__(self, settings: LnsOptions | None = None) -> None:
        self._settings = settings or LnsOptions()

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        if context.problem.objective.first is not Quantity.MAKESPAN:
            found, hint = ListScheduler().search(context), context.valid_hint
            return found if hint is None else context.better(found, context.found(hint))
        if context.misfit:
            return context.infeasible(context.misfit)
        search = Search(context, self._settings)
        work = context.reports.begin(search.run)

        def has_plan_in_the_end() -> bool:
            context.clock.stop()
            work.ended.wait(PATIENCE)
            return search.has_plan

        with context.until_interrupted(has_plan_in_the_end):
            context.reports.attend(work)
        return search.result()
