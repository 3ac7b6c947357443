"""Passes, double justification and repacking on random problems."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import NEVER, NONE
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import (
    FillLimits,
    justified,
    justified_by_capacity,
    repacked,
)
from spmilp.solvers.partial_order.schedule import TimedSchedule, taken_by
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.units import Bytes, MemoryIdx
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


def most_bytes(timed: TimedSchedule, memory: MemoryIdx) -> Bytes:
    """Return the most bytes that are taken in a memory at any cycle, padding included."""
    schedule, (begins, ends) = timed.schedule, timed.lifetimes()
    there = np.flatnonzero((schedule.memory == memory) & (begins < ends))
    taken = dict(zip(there.tolist(), taken_by(schedule, there).tolist(), strict=True))
    most = 0
    for cycle in begins[there].tolist():
        held = [one for one in taken if begins[one] <= cycle < ends[one]]
        bytes_ = sum(taken[one] for one in held)
        for one in held:
            overwritten = int(schedule.overwrites[one])
            if overwritten != NONE and overwritten in held:
                bytes_ -= min(taken[one], taken[overwritten])
        most = max(most, bytes_)
    return most


def test_with_open_addresses_memories_hold_what_is_there_with_its_padding() -> None:
    padded = 0

    @MODEST
    @given(problem=problems())
    def check_all(problem: Problem) -> None:
        nonlocal padded
        context, first = scheduled(problem)
        memories = FillLimits(context).memories()
        found = justified_by_capacity(context, first, memories, Clock(None))
        everyone = np.arange(found.schedule.bytes.size)
        padded += int((taken_by(found.schedule, everyone) > found.schedule.bytes).sum())
        for memory in context.packed:
            assert memories.limit[memory] != NEVER
            assert most_bytes(found, memory) <= memories.limit[memory]

    check_all()
    assert padded >= 100


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
