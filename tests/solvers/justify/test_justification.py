"""Passes, justification and repacking: times are valid, and no schedule becomes longer."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.justify.context import ScheduleContext, plan_of
from spmilp.solvers.justify.repacking import (
    SEARCHED,
    Effort,
    Repacking,
    justified,
    with_transfers_late,
)
from spmilp.solvers.justify.schedule import TimedSchedule
from spmilp.solvers.schedule.kernels.records import NONE
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled

MODELS = Path(__file__).parents[3] / "models"


def repacking_of(context: ScheduleContext, effort: Effort = SEARCHED) -> Repacking:
    return Repacking(context, Clock(None), effort)


def on_random_problems(
    claim: Callable[[Problem], int],
    count: int = 30,
    among: st.SearchStrategy[Problem] | None = None,
) -> int:
    """Check a claim on random problems; return the sum of what it returns."""
    total = 0

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(problem=problems() if among is None else among)
    def check_one(problem: Problem) -> None:
        nonlocal total
        total += claim(problem)

    check_one()
    return total


def is_packed_and_valid(work: Repacking, opened: TimedSchedule) -> bool:
    found = work.packed(opened)
    if found is None:
        return False
    assert found.makespan <= opened.makespan
    assert check(work.context.problem, plan_of(work.context, found)) == ()
    return True


@pytest.mark.full
def test_justification_never_lengthens_a_plan_and_the_checker_accepts_it() -> None:
    def claim(problem: Problem) -> int:
        context, first = scheduled(problem)
        found = justified(context, first)
        built = plan_of(context, found)
        assert check(problem, built) == ()
        assert built.claim.makespan == found.makespan <= first.makespan
        return found.makespan < first.makespan

    assert on_random_problems(claim, 60) >= 5


def test_every_repacked_schedule_is_a_valid_plan_that_is_shorter_than_all_before() -> None:
    def claim(problem: Problem) -> int:
        context, first = scheduled(problem)
        first, count = justified(context, first), 0
        least = first.makespan
        for found in repacking_of(context).repacked(first, least):
            built = plan_of(context, found)
            assert check(problem, built) == ()
            assert built.claim.makespan < least
            least, count = built.claim.makespan, count + 1
        return count

    assert on_random_problems(claim, 20) >= 8


def moved_right(problem: Problem) -> tuple[int, int]:
    """Check what has moved, and return how many loads out of a DRAM have, and how many copies."""
    context, first = scheduled(problem)
    late = with_transfers_late(context, first)
    schedule = first.schedule
    is_dram = context.is_dram[schedule.memory]
    moves = np.flatnonzero((schedule.moved_slice != NONE) & (schedule.cycles > 0))
    moves = moves[~is_dram[schedule.fills.items[schedule.fills.begin[moves]]]]
    others = np.setdiff1d(np.flatnonzero(schedule.cycles > 0), moves)
    assert (late.start[others] == first.start[others]).all()
    assert (late.start[moves] >= first.start[moves]).all()
    (begins, ends), (late_begins, late_ends) = first.lifetimes(), late.lifetimes()
    assert (late_begins >= begins)[~is_dram].all()
    assert (late_ends <= ends)[~is_dram].all()
    built = plan_of(context, late)
    assert check(problem, built) == ()
    assert built.claim.makespan == late.makespan == first.makespan
    moved = moves[late.start[moves] > first.start[moves]]
    loads = int(is_dram[schedule.reads.items[schedule.reads.begin[moved]]].sum())
    return loads, moved.size - loads


def test_copies_between_scratchpads_move_right_too() -> None:
    loads, copies = moved_right(problem_of(MODELS / "resnet8_int8.onnx", "mesh4x4"))
    assert loads >= 10
    assert copies >= 50
