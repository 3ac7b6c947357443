"""The policy as a solver: the structures that are pinned, and their plan."""

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import NotTakenError
from spmilp.policies.onsram.exact import PinningProgram
from spmilp.policies.onsram.merit import by_merit, filled_up, pinned_in_turn
from spmilp.policies.onsram.pinned import PinnedPlans
from spmilp.policies.onsram.structure import Pins
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.milp.program import Limits


class OnSram(Solver):
    """Pins data structures in scratchpads for their whole lives, and sends the rest through DRAM.

    Parameters
    ----------
    exact
        Choose what is pinned by a 0/1 program instead of the figure of merit.
    """

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact
        self.name = "onsram:exact" if exact else "onsram"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the policy; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            return self._result(context, PinnedPlans(context, self.name))
        except NotTakenError as error:
            return context.unknown(str(error))

    def _result(self, context: SearchContext, plans: PinnedPlans) -> SolverResult:
        structures = plans.structures
        pins, plan = plans.in_turn(
            by_merit(structures), lambda order: pinned_in_turn(structures, order)
        )
        if self._exact and plan is not None:
            pins, plan = _exactly(context, plans, pins, plan)
        return plans.result(pins, plan)


def _exactly(
    context: SearchContext, plans: PinnedPlans, pins: Pins, plan: Plan
) -> tuple[Pins, Plan]:
    """Return the best pins with addresses; those by merit where none are found to be better."""
    structures, clock, options = plans.structures, context.clock, context.options
    apart: list[Pins] = []
    with context.until_interrupted(lambda: True):
        while not clock.is_over():
            seconds = clock.seconds_left()
            limits = Limits(seconds=seconds, threads=options.workers, seed=options.seed)
            chosen = PinningProgram(structures, apart).solve(limits)
            if chosen is None or structures.cost(chosen) >= structures.cost(pins):
                break
            filled = filled_up(structures, chosen)
            if isinstance(found := plans.plan(filled), Plan):
                return filled, found
            if isinstance(found := plans.plan(chosen), Plan):
                return chosen, found
            rivals = plans.rivals(found, chosen)
            if not rivals:
                break
            apart.append(rivals)
    return pins, plan
