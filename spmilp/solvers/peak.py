"""A small peak: schedules in scratchpads that are cut shorter, by bisection."""

from dataclasses import replace
from functools import partial

from spmilp.machine.machine import ByteRange, Memory, MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Incumbent, Solver
from spmilp.solvers.schedule.restarts import PerturbedRestarts
from spmilp.solvers.schedule.solver import ListScheduler, hint_or_schedule
from spmilp.units import Bytes

NAME = "peak"

START, SIZES = 0.3, 0.6
"""Shares of the time limit by which have ended: the list scheduler, where there is no plan to start
from, and the bisection. The rest is for the quantities behind the peak."""


class PeakBisection(Solver):
    """Finds the least size to which the list scheduler can do without the rest of scratchpads.

    Whatever a machine with smaller scratchpads can do, the machine itself can, with no byte behind
    their ends: so each schedule for them has a peak of their size at most. The first size is the
    bound, the next ones halve what lies between the largest that failed and the best plan. That a
    size fails proves nothing. With scratchpads of the size found, perturbed restarts make the next
    quantities small.

    It starts from a valid hint, or else from the list scheduler's plan, and returns no plan that is
    worse; where the peak is not the first quantity, the start is the answer.
    """

    name = NAME

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found; the bound is one that takes no search."""
        start = hint_or_schedule(context, START)
        if (
            start.plan is None
            or start.interrupted
            or context.problem.objective.first is not Quantity.PEAK_SPM
        ):
            return start
        incumbent = Incumbent(context, context.bound, NAME)
        incumbent.offer(start.plan)
        with context.until_interrupted(lambda: True):
            _make_the_peak_small(context, incumbent)
            _make_the_rest_small(context, incumbent)
        return context.found(incumbent.plan or start.plan, incumbent.bound)


def _make_the_peak_small(context: SearchContext, incumbent: Incumbent) -> None:
    size = least = incumbent.bound.value
    while incumbent.value is not None and least < incumbent.value:
        if incumbent.is_enough or context.clock.is_over(SIZES):
            return
        plan = _plan_within(context, size)
        if plan is None or not incumbent.offer(plan):
            least = size + 1
        size = (least + incumbent.value - 1) // 2


def _plan_within(context: SearchContext, size: Bytes) -> Plan | None:
    """Return the first plan of the list scheduler with scratchpads of a size, if it is valid."""
    limit = context.clock.seconds_left(SIZES)
    options = replace(context.options, time_limit=limit, on_progress=None, gap=1.0)
    problem = with_scratchpads_of(context.problem, size)
    plan = ListScheduler().solve(problem, options).plan
    if plan is None or not context.accepts(plan):
        return None
    return context.labelled(plan, solver=NAME)


def _make_the_rest_small(context: SearchContext, incumbent: Incumbent) -> None:
    """Search on for a plan with the same peak that is better in the quantities behind it."""
    if incumbent.plan is None or incumbent.value is None or context.clock.is_over():
        return
    peak, *others = context.problem.objective.order
    within = with_scratchpads_of(context.problem, incumbent.value)
    problem = replace(within, objective=Objective((*others, peak)))
    limit = context.clock.seconds_left()
    options = replace(context.options, time_limit=limit, on_progress=None, gap=0.0)
    found = PerturbedRestarts().solve(problem, options, incumbent.plan)
    context.interrupted |= found.interrupted
    if found.plan is not None:
        plan = context.labelled(found.plan, incumbent.bound)
        if context.accepts(plan):
            incumbent.offer(plan)


def with_scratchpads_of(problem: Problem, size: Bytes) -> Problem:
    """Return a problem whose scratchpads end after so many bytes, if they do not end sooner."""
    memories = tuple(map(partial(_cut, size=size), problem.machine.memories))
    return replace(problem, machine=replace(problem.machine, memories=memories))


def _cut(memory: Memory, size: Bytes) -> Memory:
    if memory.kind is not MemoryKind.SPM or memory.size is None or memory.size <= size:
        return memory
    kept = tuple(
        ByteRange(taken.start, min(taken.end, size))
        for taken in memory.reserved
        if taken.start < size
    )
    return replace(memory, size=size, reserved=kept)
