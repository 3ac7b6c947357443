"""Transfers as late as they can be."""

from pathlib import Path

import numpy as np
from hypothesis import given

from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.partial_order.late_transfers import with_transfers_late
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.partial_order.test_justification import MODEST
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled

MODEL = Path(__file__).parents[3] / "models" / "resnet8_int8.onnx"


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


def test_transfers_move_right_nothing_lies_longer_and_the_plan_stays_valid() -> None:
    loads = 0

    @MODEST
    @given(problem=problems())
    def check_all(problem: Problem) -> None:
        nonlocal loads
        loads += moved_right(problem)[0]

    check_all()
    assert loads >= 5


def test_copies_between_scratchpads_move_right_too() -> None:
    loads, copies = moved_right(problem_of(MODEL, "mesh4x4"))
    assert loads >= 10
    assert copies >= 50
