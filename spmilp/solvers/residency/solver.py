"""The search for stays as a solver."""

from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
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
        start = self._start(context)
        is_over = start.status is SolveStatus.INFEASIBLE or start.interrupted
        if is_over or not is_in_scope(context.problem):
            return start
        if context.options.time_limit is None:
            context.clock.deterministic = self._patience
        session = Session(context, start)
        with context.until_interrupted(lambda: session.incumbent.plan is not None):
            session.search()
        plan = session.incumbent.plan
        if plan is None:
            return start
        return context.found(plan, session.incumbent.bound, NAME)

    def _start(self, context: SearchContext) -> SolverResult:
        """Return a valid hint, or what the list scheduler finds."""
        hint = context.valid_hint
        if hint is not None:
            return context.found(hint)
        limit = context.clock.seconds_left(SHARE_OF_START)
        return ListScheduler().search(context.member(limit, None))
