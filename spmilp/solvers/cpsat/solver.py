"""The CP-SAT solver: plans from a model with so many stays, proofs from a relaxation."""

from dataclasses import replace

from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.session import Session
from spmilp.solvers.list_scheduler.solver import ListScheduler

DEFAULTS = CpSatOptions()


class CpSatSolver(Solver):
    """Decides cores, residencies, transfers, times and addresses together.

    The list scheduler's plan is the start, and no plan worse than it is returned. Then, for the
    first objective:

    1. *Retiming*: the plan's decisions are kept, its times chosen anew.
    2. *Arrivals*: a small relaxation (:mod:`~spmilp.solvers.cpsat.arrivals`) is asked for anything
       better; where it puts the tasks, a plan is looked for.
    3. *Neighbourhoods*: most tasks keep their pools of cores, the others are free.
    4. *Plans*: everything is free, but a slice stays in a memory only so many times. Addresses are
       found by packing; a set of residencies that has none gets its addresses into the model.
    5. *Proof*: a relaxation that no number of stays limits (see
       :class:`~spmilp.solvers.cpsat.structure.Shape`), without addresses, is searched for anything
       better. Where its best solution needs more stays than the plans may have, they get them, and
       the search begins again. As long as the small relaxation is not through, that goes on
       instead.

    Bounds come from the two relaxations, and ``optimal`` and ``infeasible`` rest on them alone.
    Problems of a dozen tasks, and those where nothing limits the model of plans, go straight to
    steps 4 and 5.

    The objectives behind the first are made small in turn, each with those before it held, within
    the scope of step 4 and the time that is left; nothing is claimed of them.
    """

    name = "cpsat"

    def __init__(self, settings: CpSatOptions = DEFAULTS) -> None:
        self._settings = settings

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, never worse than the list scheduler's or a valid hint."""
        start = ListScheduler().search(context)
        if start.status is SolveStatus.INFEASIBLE:
            return start
        session = Session(context, self._settings, start)
        for plan in (start.plan, context.valid_hint):
            if plan is not None and context.accepts(plan):
                session.offer(plan)
        interrupted = False
        try:
            session.search()
        except KeyboardInterrupt:
            if session.incumbent.plan is None:
                raise
            interrupted = True
        return replace(session.result(), interrupted=interrupted)
