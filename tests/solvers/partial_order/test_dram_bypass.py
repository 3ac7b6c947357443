"""Less traffic of DRAMs: copies between scratchpads, and values that wait in them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.dram_bypass import with_dram_bypassed
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity, with_addresses
from spmilp.solvers.partial_order.schedule import PartialOrderSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.schedules import listed, scheduled

TIGHT_CHAINS = st.builds(
    lambda cores, spm, layers, strips: chain(star(cores, spm), layers, strips),
    cores=st.integers(2, 8),
    spm=st.integers(1000, 3000),
    layers=st.integers(2, 4),
    strips=st.integers(4, 12),
)


def _dram_transfers(context: ScheduleContext, schedule: PartialOrderSchedule) -> int:
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    in_dram = context.is_dram[schedule.memory]
    comes = in_dram[schedule.reads.items[schedule.reads.begin[moves]]]
    return int((comes | in_dram[schedule.fills.items[schedule.fills.begin[moves]]]).sum())


@pytest.fixture(scope="module")
def tight() -> Problem:
    return chain(star(4, 2048), layers=4, strips=8)


def test_where_scratchpads_have_capacity_less_goes_through_dram_and_the_plan_gets_shorter(
    tight: Problem,
) -> None:
    plan = listed(tight)
    found: dict[bool, tuple[int, int]] = {}

    for bypasses in (False, True):
        context, first = context_of(tight, plan, bypasses_dram=bypasses)
        memories = context.with_capacity(context.usable)
        current = justified_by_capacity(context, first, memories, Clock(None))
        found[bypasses] = (_dram_transfers(context, current.schedule), current.makespan)

    assert found[True][0] < found[False][0]
    assert found[True][1] < found[False][1]


def test_a_value_that_was_stored_may_wait_in_another_scratchpad() -> None:
    context, first = scheduled(chain(star(8, 1200), layers=4, strips=12))

    found = with_dram_bypassed(context, first, context.usable)

    moved = np.flatnonzero(found.schedule.memory != first.schedule.memory)
    assert moved.size
    assert context.is_dram[first.schedule.memory[moved]].all()
    assert not context.is_dram[found.schedule.memory[moved]].any()
    assert (found.start + found.schedule.cycles).max() <= first.makespan


def test_other_activities_keep_their_times_and_what_is_packed_is_valid() -> None:
    packings = changes = 0

    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(problem=st.one_of(problems(), TIGHT_CHAINS))
    def bypass(problem: Problem) -> None:
        nonlocal packings, changes
        context, first = scheduled(problem)
        fill, tasks = FillLimits(context), len(problem.tasks)
        late = backward_pass(first, fill.memories())

        found = with_dram_bypassed(context, late, fill.memories().limit)

        before, after = (_dram_transfers(context, one.schedule) for one in (late, found))
        assert (found.start[:tasks] == late.start[:tasks]).all()
        assert (found.start + found.schedule.cycles).max() <= first.makespan
        assert after <= before
        changes += after < before
        addressed = with_addresses(context, found, fill, Clock(None))
        if addressed is not None:
            packings += 1
            assert check(problem, plan_of(context, addressed)) == ()

    bypass()
    assert packings >= 30
    assert changes >= 15
