"""Plans as partial orders: compaction and repacked times on random problems."""

import numpy as np
from hypothesis import HealthCheck, assume, given, settings

from spmilp.checker.check import check
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.neighbourhoods import Neighbourhood
from spmilp.solvers.lns.perturbation import perturbed, with_loads_advanced
from spmilp.solvers.lns.window_search import WindowSearch
from spmilp.solvers.partial_order.capacity_passes import (
    capacity_backward_pass,
    capacity_forward_pass,
)
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.justification import backward_pass, double_justified, forward_pass
from spmilp.solvers.partial_order.repacking import (
    FillLimits,
    justified_by_capacity,
    repacked,
    with_addresses,
)
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule, TimedSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.solvers.partial_order.transfer_options import option_tables_of
from tests.solvers.random_problems import problems

MODEST = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def _plan_of(problem: Problem) -> Plan:
    plan = ListScheduler(("locality", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assume(plan is not None)
    return plan


def _context_of(problem: Problem, plan: Plan) -> tuple[ScheduleContext, PartialOrderSchedule, Ints]:
    return context_of(problem, plan, option_tables_of(problem, plan))


def _built(
    problem: Problem, plan: Plan, context: ScheduleContext, incumbent: TimedSchedule
) -> Plan:
    return plan_of(
        problem, plan, incumbent.schedule, incumbent.start, dram_is_free=context.dram_is_free
    )


@MODEST
@given(problem=problems())
def test_compaction_never_lengthens_a_plan_and_the_checker_accepts_it(problem: Problem) -> None:
    plan = _plan_of(problem)
    context, schedule, start = _context_of(problem, plan)

    incumbent = double_justified(context, TimedSchedule(schedule, start, plan.claim.makespan))

    built = _built(problem, plan, context, incumbent)
    assert check(problem, built) == ()
    assert built.claim.makespan == incumbent.makespan <= plan.claim.makespan


@MODEST
@given(problem=problems())
def test_each_pass_moves_every_activity_one_way_only(problem: Problem) -> None:
    plan = _plan_of(problem)
    context, schedule, start = _context_of(problem, plan)
    reuse_order = context.reuse_order(schedule, start)
    last = plan.claim.makespan
    limit = FillLimits(context).limit()

    early = forward_pass(schedule, reuse_order, start)
    late = backward_pass(schedule, reuse_order, start, last)
    capacity_late = capacity_backward_pass(schedule, context.kept_reuse, limit, start, last)
    capacity_early = capacity_forward_pass(schedule, context.kept_reuse, limit, capacity_late, last)

    assert (early <= start).all()
    assert (late >= start).all()
    assert (capacity_late >= start).all()
    assert (capacity_early <= capacity_late).all()


@MODEST
@given(problem=problems())
def test_every_loosened_standing_is_a_valid_plan_that_is_no_longer(problem: Problem) -> None:
    plan = _plan_of(problem)
    context, schedule, start = _context_of(problem, plan)
    incumbent = double_justified(context, TimedSchedule(schedule, start, plan.claim.makespan))

    for found in repacked(context, incumbent, FillLimits(context), Clock(None)):
        if found is not None:
            built = _built(problem, plan, context, found)
            assert check(problem, built) == ()
            assert built.claim.makespan <= incumbent.makespan


@MODEST
@given(problem=problems())
def test_kicks_and_windows_lead_to_times_that_end_no_later_and_are_valid_once_packed(
    problem: Problem,
) -> None:
    plan = _plan_of(problem)
    context, schedule, start = _context_of(problem, plan)
    fill, clock = FillLimits(context), Clock(None)
    limit = fill.limit()
    current = justified_by_capacity(
        context, TimedSchedule(schedule, start, plan.claim.makespan), limit, clock
    )
    random = np.random.default_rng(0)
    windows = WindowSearch(context, tuple(Neighbourhood), seed=0, has_clock=False)

    for _ in range(len(Neighbourhood)):
        before = current.makespan
        current = perturbed(context, current, limit, clock, random)
        current = with_loads_advanced(context, current, limit, clock, random)
        current = windows.improve(current, limit, clock)
        assert current.makespan <= before

    found = with_addresses(context, current, fill, clock)
    if found is not None:
        assert check(problem, _built(problem, plan, context, found)) == ()
