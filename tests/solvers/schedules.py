"""Schedules of list plans, and plans of schedules."""

from dataclasses import replace

from hypothesis import currently_in_test_context, reject

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.justify.context import ScheduleContext, context_of, plan_of
from spmilp.solvers.justify.repacking import pack_all
from spmilp.solvers.justify.schedule import TimedSchedule
from spmilp.solvers.schedule.solver import ListScheduler


def listed(problem: Problem, assignment: str = "locality") -> Plan:
    """Return a plan of the list scheduler; a hypothesis example without one is rejected."""
    plan = ListScheduler((assignment, "layer_by_layer")).solve(problem, SolveOptions()).plan
    if plan is None and currently_in_test_context():
        reject()
    assert plan is not None
    return plan


def scheduled(
    problem: Problem, assignment: str = "locality"
) -> tuple[ScheduleContext, TimedSchedule]:
    """Return the schedule of such a plan."""
    return context_of(problem, listed(problem, assignment))


def packed(context: ScheduleContext, timed: TimedSchedule) -> Plan | None:
    """Return the plan of these very times, if there are addresses."""
    offset, without = pack_all(context, timed, Clock(None))
    if without:
        return None
    return plan_of(context, replace(timed, schedule=timed.schedule._replace(offset=offset)))
