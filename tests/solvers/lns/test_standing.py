"""Plans as partial orders: compaction and loosened times on random problems."""

import numpy as np
from hypothesis import HealthCheck, assume, given, settings

from spmilp.checker.check import check
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.build import plan_of
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.copies import copies_of
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.ground import Ground, ground_of
from spmilp.solvers.lns.kicks import kicked, pushed
from spmilp.solvers.lns.kinds import Kind
from spmilp.solvers.lns.loose import loosely_left, loosely_right
from spmilp.solvers.lns.loosened import Filling, addressed, loosened, opened
from spmilp.solvers.lns.sequence import leftmost, rightmost
from spmilp.solvers.lns.standing import Standing, compacted
from spmilp.solvers.lns.windows import Windows
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


def _ground_of(problem: Problem, plan: Plan) -> tuple[Ground, Draft, Ints]:
    return ground_of(problem, plan, copies_of(problem, plan))


def _built(problem: Problem, plan: Plan, ground: Ground, standing: Standing) -> Plan:
    return plan_of(problem, plan, standing.draft, standing.start, dram_is_free=ground.dram_is_free)


@MODEST
@given(problem=problems())
def test_compaction_never_lengthens_a_plan_and_the_checker_accepts_it(problem: Problem) -> None:
    plan = _plan_of(problem)
    ground, draft, start = _ground_of(problem, plan)

    standing = compacted(ground, Standing(draft, start, plan.claim.makespan))

    built = _built(problem, plan, ground, standing)
    assert check(problem, built) == ()
    assert built.claim.makespan == standing.makespan <= plan.claim.makespan


@MODEST
@given(problem=problems())
def test_each_pass_moves_every_activity_one_way_only(problem: Problem) -> None:
    plan = _plan_of(problem)
    ground, draft, start = _ground_of(problem, plan)
    tenants = ground.tenants(draft, start)
    last = plan.claim.makespan
    limit = Filling(ground).limit()

    early = leftmost(draft, tenants, start)
    late = rightmost(draft, tenants, start, last)
    loose_late = loosely_right(draft, ground.kept, limit, start, last)
    loose_early = loosely_left(draft, ground.kept, limit, loose_late, last)

    assert (early <= start).all()
    assert (late >= start).all()
    assert (loose_late >= start).all()
    assert (loose_early <= loose_late).all()


@MODEST
@given(problem=problems())
def test_every_loosened_standing_is_a_valid_plan_that_is_no_longer(problem: Problem) -> None:
    plan = _plan_of(problem)
    ground, draft, start = _ground_of(problem, plan)
    standing = compacted(ground, Standing(draft, start, plan.claim.makespan))

    for found in loosened(ground, standing, Filling(ground), Clock(None)):
        if found is not None:
            built = _built(problem, plan, ground, found)
            assert check(problem, built) == ()
            assert built.claim.makespan <= standing.makespan


@MODEST
@given(problem=problems())
def test_kicks_and_windows_lead_to_times_that_end_no_later_and_are_valid_once_packed(
    problem: Problem,
) -> None:
    plan = _plan_of(problem)
    ground, draft, start = _ground_of(problem, plan)
    filling, clock = Filling(ground), Clock(None)
    limit = filling.limit()
    loose = opened(ground, Standing(draft, start, plan.claim.makespan), limit, clock)
    random = np.random.default_rng(0)
    windows = Windows(ground, tuple(Kind), seed=0, has_clock=False)

    for _ in range(len(Kind)):
        before = loose.makespan
        loose = kicked(ground, loose, limit, clock, random)
        loose = pushed(ground, loose, limit, clock, random)
        loose = windows.improve(loose, limit, clock)
        assert loose.makespan <= before

    found = addressed(ground, loose, filling, clock)
    if found is not None:
        assert check(problem, _built(problem, plan, ground, found)) == ()
