"""The CP-SAT solver: plans from a model with so many residencies, proofs from a relaxation."""

from spmilp.problem.pins import PinKind
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.clock import Step
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.cpsat.inquiry import Way
from spmilp.solvers.exact.cpsat.phases import (
    PROOF,
    Budget,
    CpSatOptions,
    CpSatState,
    break_ties,
    find_plans,
    improve_around,
    prove,
    retime,
)
from spmilp.solvers.exact.formulation.model import SMALL
from spmilp.solvers.schedule.solver import ListScheduler

NAME = "cpsat"
DEFAULTS = CpSatOptions()

PLANS = Budget(0.75)
"""Budget of the search for plans of the whole problem."""

PLANS_OF_SMALL = Budget(0.3)
"""The same where neighbourhoods are searched afterwards."""

PLANS_WITH_PROOF = Budget(0.95, way=Way.IN_ONE_GO)
"""The same where the model of plans is exact, so that its bounds are proofs."""

STRUCTURES = 3
"""Until there is a model to solve, about so many times the seconds of the first structure pass."""


class CpSatSolver(Solver):
    """Decides cores, residencies, transfers, times and addresses together.

    The list scheduler's plan is the start, and no plan worse than it is returned. Then, for the
    first objective:

    1. *Retiming*: the plan's decisions are kept, its times chosen anew.
    2. *Neighbourhoods* of the best plan (:mod:`~spmilp.solvers.exact.cpsat.phases`), each kind
       as often as it pays.
    3. *Plans*: everything is free, but a slice has only so many residencies in a memory. Addresses
       are found by packing; a set of residencies that has none gets its addresses into the model.
    4. *Proof*: a relaxation that no number of residencies limits (see
       :class:`~spmilp.solvers.exact.formulation.candidates.Lifecycle`), without addresses, is
       searched for anything better. Where its best solution needs more residencies than the plans
       may have, they get them, and the search begins again.

    Bounds come from the relaxation, and ``optimal`` and ``infeasible`` rest on it alone. Where
    nothing limits the model of plans, steps 3 and 4 are one. Problems of a dozen tasks begin with
    step 3, and come to step 2 if that leads to no end.

    The objectives behind the first are made small in turn, each with those before it held, within
    the scope of step 3 and the time that is left; nothing is claimed of them.
    """

    name = NAME
    keeps = frozenset(PinKind)

    def __init__(self, settings: CpSatOptions = DEFAULTS) -> None:
        self._settings = settings

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, never worse than the list scheduler's or a valid hint."""
        start = ListScheduler().search_within_pins(context)
        if start.status is SolveStatus.INFEASIBLE:
            return start
        state = CpSatState(context, self._settings, start, NAME)
        state.clock.deterministic = self._settings.deterministic_limit
        for plan in (start.plan, context.valid_hint):
            if plan is not None and context.accepts(plan):
                state.offer(plan)
        with context.until_interrupted(lambda: state.incumbent.plan is not None):
            if not start.interrupted:
                self._search(state)
        return _result(state, start)

    def _search(self, state: CpSatState) -> None:
        """Improve and prove the first objective, then improve the others in turn."""
        pairs = len(state.problem.slices) * len(state.problem.machine.memories) ** 2
        seconds = STRUCTURES * state.clock.pace.seconds(Step.STRUCTURE, pairs)
        if state.incumbent.plan is not None and not state.clock.has_seconds(seconds):
            state.note = f"{pairs:,} transfers to choose from: {seconds:.0f} s for a model"
            return
        if not all(state.tables.pools_of(task.index) for task in state.problem.tasks):
            state.conclude_infeasible()
            return
        with state.clock.pace.measured(Step.STRUCTURE, pairs):
            literals = state.builder.structure(relaxed=False).literals
        if literals > self._settings.literals:
            state.note = f"about {literals} literals > {self._settings.literals}: only retimed"
        retime(state)
        if state.note:
            return
        if len(state.problem.tasks) > SMALL and not state.builder.is_exact():
            improve_around(state)
        self._find_and_prove(state)
        break_ties(state)

    def _find_and_prove(self, state: CpSatState) -> None:
        """Search plans and proofs in turn, with more candidates each time a proof needs them."""
        small = len(state.problem.tasks) <= SMALL
        while not state.is_done and not state.clock.is_over(PROOF.share):
            exact = state.builder.is_exact()
            found = find_plans(state, _plans(exact, small))
            if small and not exact and (found is None or not found.complete):
                improve_around(state)
            if found is not None and state.builder.is_exact():
                state.conclude(found)
            if state.is_done or not prove(state):
                return


def _plans(exact: bool, small: bool) -> Budget:
    if exact:
        return PLANS_WITH_PROOF
    return PLANS_OF_SMALL if small else PLANS


def _result(state: CpSatState, start: SolverResult) -> SolverResult:
    plan, bound = state.incumbent.plan, state.incumbent.bound
    if plan is not None:
        options = (("model", state.note),) if state.note else ()
        return state.context.found(plan, bound, NAME, options)
    if state.infeasible:
        return state.context.infeasible(state.infeasible, bound)
    reason = "a limit was reached before a plan was found"
    if start.reason:
        reason += f"; where the list scheduler got stuck: {start.reason}"
    return state.context.unknown(reason, bound)
