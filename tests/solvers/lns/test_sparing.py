"""Less traffic of DRAMs: copies between scratchpads, and values that wait in them."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.build import plan_of
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.copies import copies_of
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.ground import Ground, ground_of
from spmilp.solvers.lns.loose import loosely_right
from spmilp.solvers.lns.loosened import Filling, addressed, opened
from spmilp.solvers.lns.spared import sparing_dram
from spmilp.solvers.lns.standing import Standing
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems


def _dram_transfers(ground: Ground, draft: Draft) -> int:
    moves = np.flatnonzero((draft.part != NONE) & (draft.cycles > 0))
    in_dram = ground.is_dram[draft.memory]
    comes = in_dram[draft.reads.items[draft.reads.begin[moves]]]
    return int((comes | in_dram[draft.fills.items[draft.fills.begin[moves]]]).sum())


@pytest.fixture(scope="module")
def tight() -> Problem:
    return chain(star(4, 2048), layers=4, strips=8)


def test_where_scratchpads_have_room_less_goes_through_dram_and_the_plan_gets_shorter(
    tight: Problem,
) -> None:
    plan = ListScheduler(("locality", "layer_by_layer")).solve(tight, SolveOptions()).plan
    assert plan is not None
    found: dict[bool, tuple[int, int]] = {}

    for spares in (False, True):
        ground, draft, start = ground_of(tight, plan, copies_of(tight, plan), spares_dram=spares)
        limit = ground.usable
        loose = opened(ground, Standing(draft, start, plan.claim.makespan), limit, Clock(None))
        found[spares] = (_dram_transfers(ground, loose.draft), loose.makespan)

    assert found[True][0] < found[False][0]
    assert found[True][1] < found[False][1]


def test_a_value_that_was_stored_may_wait_in_another_scratchpad() -> None:
    problem = chain(star(8, 1200), layers=4, strips=12)
    plan = ListScheduler(("locality", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assert plan is not None
    ground, draft, start = ground_of(problem, plan, copies_of(problem, plan))

    spared, times = sparing_dram(ground, draft, start, plan.claim.makespan, ground.usable)

    moved = np.flatnonzero(spared.memory != draft.memory)
    assert moved.size
    assert ground.is_dram[draft.memory[moved]].all()
    assert not ground.is_dram[spared.memory[moved]].any()
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
    ground, draft, start = ground_of(problem, plan, copies_of(problem, plan))
    filling, last = Filling(ground), plan.claim.makespan
    late = loosely_right(draft, ground.kept, filling.limit(), start, last)

    spared, times = sparing_dram(ground, draft, late, last, filling.limit())

    tasks = len(problem.tasks)
    assert (times[:tasks] == late[:tasks]).all()
    assert (times + spared.cycles).max() <= last
    assert _dram_transfers(ground, spared) <= _dram_transfers(ground, draft)
    found = addressed(ground, Standing(spared, times, last), filling, Clock(None))
    if plan is not None and found is not None:
        built = plan_of(problem, plan, found.draft, found.start, dram_is_free=ground.dram_is_free)
        assert check(problem, built) == ()
