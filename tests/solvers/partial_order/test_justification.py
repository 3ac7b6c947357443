"""Passes, double justification and repacking on random problems."""

import pytest
from hypothesis import HealthCheck, given, settings

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import FillLimits, justified, repacked
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.random_problems import problems
from tests.solvers.schedules import listed, scheduled

MODEST = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@MODEST
@given(problem=problems())
def test_justification_never_lengthens_a_plan_and_the_checker_accepts_it(problem: Problem) -> None:
    context, first = scheduled(problem)

    found = justified(context, first)

    built = plan_of(context, found)
    assert check(problem, built) == ()
    assert built.claim.makespan == found.makespan <= listed(problem).claim.makespan


@pytest.mark.parametrize("are_addresses_open", [False, True])
@MODEST
@given(problem=problems())
def test_each_pass_moves_every_activity_one_way_only(
    are_addresses_open: bool, problem: Problem
) -> None:
    context, first = scheduled(problem)
    memories = context.with_addresses_of(first)
    if are_addresses_open:
        memories = FillLimits(context).memories()

    late = backward_pass(first, memories)

    assert (late.start >= first.start).all()
    assert (forward_pass(late, memories).start <= late.start).all()
    if not are_addresses_open:
        assert (forward_pass(first, memories).start <= first.start).all()


def test_every_repacked_schedule_is_a_valid_plan_that_is_no_longer() -> None:
    repackings = 0

    @MODEST
    @given(problem=problems())
    def check_all(problem: Problem) -> None:
        nonlocal repackings
        context, first = scheduled(problem)
        first = justified(context, first)
        for found in repacked(context, first, FillLimits(context), Clock(None)):
            if found is not None:
                repackings += 1
                built = plan_of(context, found)
                assert check(problem, built) == ()
                assert built.claim.makespan <= first.makespan

    check_all()
    assert repackings >= 30
