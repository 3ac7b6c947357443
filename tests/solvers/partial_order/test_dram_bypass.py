"""Less traffic of DRAMs: copies between scratchpads, and values that wait in them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.partial_order.capacity_passes import capacity_backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.dram_bypass import with_dram_bypassed
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity, with_addresses
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule, TimedSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.solvers.partial_order.transfer_options import option_tables_of
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems


def _dram_transfers(context: ScheduleContext, schedule: PartialOrderSchedule) -> int:
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    in_dram = context.is_dram[schedule.memory]
    comes = in_dram[schedule.reads.items[schedule.reads.begin[moves]]]
    return int((comes | in_dram[schedule.fills.items[schedule.fills.begin[moves]]]).sum())


@pytest.fixture(scope="module")
def tight() -> Problem:
    return chain(star(4, 2048), layers=4, strips=8)


def test_where_scratchpads_have_room_less_goes_through_dram_and_the_plan_gets_shorter(
    tight: Problem,
) -> None:
    plan = ListScheduler(("locality", "layer_by_layer")).solve(tight, SolveOptions()).plan
    assert plan is not None
    found: dict[bool, tuple[int, int]] = {}

    for free_slots in (False, True):
        context, schedule, start = context_of(
            tight, plan, option_tables_of(tight, plan), bypasses_dram=free_slots
        )
        limit = context.usable
        current = justified_by_capacity(
            context, TimedSchedule(schedule, start, plan.claim.makespan), limit, Clock(None)
        )
        found[free_slots] = (_dram_transfers(context, current.schedule), current.makespan)

    assert found[True][0] < found[False][0]
    assert found[True][1] < found[False][1]


def test_a_value_that_was_stored_may_wait_in_another_scratchpad() -> None:
    problem = chain(star(8, 1200), layers=4, strips=12)
    plan = ListScheduler(("locality", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assert plan is not None
    context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))

    spared, times = with_dram_bypassed(
        context, schedule, start, plan.claim.makespan, context.usable
    )

    moved = np.flatnonzero(spared.memory != schedule.memory)
    assert moved.size
    assert context.is_dram[schedule.memory[moved]].all()
    assert not context.is_dram[spared.memory[moved]].any()
    assert (times + spared.cycles).max() <= plan.claim.makespan


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(problem=problems())
def test_other_activities_keep_their_times_and_what_is_packed_is_valid(problem: Problem) -> None:
    plan = ListScheduler(("locality", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assume(plan is not None)
    context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
    fill, last = FillLimits(context), plan.claim.makespan
    late = capacity_backward_pass(schedule, context.kept_reuse, fill.limit(), start, last)

    spared, times = with_dram_bypassed(context, schedule, late, last, fill.limit())

    tasks = len(problem.tasks)
    assert (times[:tasks] == late[:tasks]).all()
    assert (times + spared.cycles).max() <= last
    assert _dram_transfers(context, spared) <= _dram_transfers(context, schedule)
    found = with_addresses(context, TimedSchedule(spared, times, last), fill, Clock(None))
    if plan is not None and found is not None:
        built = plan_of(
            problem, plan, found.schedule, found.start, dram_is_free=context.dram_is_free
        )
        assert check(problem, built) == ()
