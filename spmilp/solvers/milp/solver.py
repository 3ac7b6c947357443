"""The MILP solver: the whole problem as a mixed-integer program, through PuLP."""

from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.milp.options import MilpOptions, TooLargeError, refuse_problem
from spmilp.solvers.milp.process import backend_name
from spmilp.solvers.milp.search import NAME, MilpSearch

DEFAULTS = MilpOptions()


class MilpSolver(Solver):
    """Decides cores, residencies, transfers, times and addresses together.

    The list scheduler's plan is the start: its makespan is the horizon and so every big-M, and only
    better plans are searched for. See :mod:`spmilp.solvers.milp` for the model and its proofs.
    """

    name = NAME

    def __init__(self, settings: MilpOptions = DEFAULTS) -> None:
        self._settings = settings

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, never worse than the list scheduler's or a valid hint.

        A problem whose model would be too large is refused: the status is ``unknown``, and the
        reason says how large it would be.

        Raises
        ------
        SpmilpError
            If PuLP does not know the backend, or it is not installed.
        """
        backend = backend_name(self._settings.backend)
        try:
            refuse_problem(context.problem, self._settings)
            return self._solve(context, backend)
        except TooLargeError as error:
            return context.unknown(str(error))

    def _solve(self, context: SearchContext, backend: str) -> SolverResult:
        start = ListScheduler().search(context)
        if start.status is SolveStatus.INFEASIBLE:
            return start
        search = MilpSearch(context, self._settings, backend)
        for plan in (start.plan, context.hint):
            if plan is not None:
                search.offer(plan)
        with context.until_interrupted(lambda: search.incumbent.plan is not None):
            if not start.interrupted:
                search.run()
        reason = start.reason or "a limit was reached before a plan was found"
        return search.result(reason)
