"""Less traffic of DRAMs: copies between scratchpads in place of loads."""

import numpy as np
import pytest
from hypothesis import strategies as st

from spmilp.problem.problem import Problem
from spmilp.solvers.justify.context import ScheduleContext, context_of
from spmilp.solvers.justify.dram_bypass import with_dram_bypassed
from spmilp.solvers.justify.passes import backward_pass
from spmilp.solvers.justify.repacking import Effort
from spmilp.solvers.justify.schedule import PartialOrderSchedule
from spmilp.solvers.schedule.kernels.records import NONE
from tests.solvers.chains import chain, star
from tests.solvers.justify.test_justification import (
    is_packed_and_valid,
    on_random_problems,
    repacking_of,
)
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

    for keeps in (False, True):
        context, first = context_of(tight, plan, keeps_transfers=keeps)
        current = repacking_of(context, Effort(share=1.0)).opened(first)
        found[keeps] = (_dram_transfers(context, current.schedule), current.makespan)

    assert found[False][0] < found[True][0]
    assert found[False][1] < found[True][1]


@pytest.mark.full
def test_other_activities_keep_their_times_and_what_is_packed_is_valid() -> None:
    packings = 0

    def claim(problem: Problem) -> int:
        nonlocal packings
        context, first = scheduled(problem)
        work, tasks = repacking_of(context), len(problem.tasks)
        late = backward_pass(first, work.memories())
        found = with_dram_bypassed(context, late, work.memories().limit)
        before, after = (_dram_transfers(context, one.schedule) for one in (late, found))
        assert (found.start[:tasks] == late.start[:tasks]).all()
        assert (found.start + found.schedule.cycles).max() <= first.makespan
        assert after <= before
        packings += is_packed_and_valid(work, found)
        return after < before

    assert on_random_problems(claim, 40, st.one_of(problems(), TIGHT_CHAINS)) >= 12
    assert packings >= 25
