"""A race of plans on different tiles: what becomes of each in a moment."""

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.lns.rounds import StretchTurn, improved
from spmilp.solvers.partial_order.context import context_of
from spmilp.solvers.partial_order.repacking import FillLimits, justified, justified_by_capacity
from spmilp.units import Cycles


def cycles_after_a_moment(problem: Problem, plan: Plan, seconds: float) -> Cycles:
    """Return the makespan of a plan after some steps of large-neighbourhood search.

    Its addresses stay open: they are what takes most of the time to find.
    """
    context, first = context_of(problem, plan)
    clock, fill = Clock(seconds), FillLimits(context)
    opened = justified_by_capacity(context, justified(context, first), fill.memories(), clock)
    turn = StretchTurn(timed=opened, share=fill.share, seconds=clock.seconds_left(), seed=0)
    return improved(context, turn).makespan
