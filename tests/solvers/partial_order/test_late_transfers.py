"""Transfers as late as they can be."""

import numpy as np
from hypothesis import given

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.partial_order.late_transfers import with_transfers_late
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.partial_order.test_justification import MODEST
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled


def test_transfers_move_right_nothing_lies_longer_and_the_plan_stays_valid() -> None:
    loads = copies = 0

    @MODEST
    @given(problem=problems())
    def check_all(problem: Problem) -> None:
        nonlocal loads, copies
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
        from_dram = is_dram[schedule.reads.items[schedule.reads.begin[moved]]]
        loads += int(from_dram.sum())
        copies += int((~from_dram).sum())

    check_all()
    assert loads >= 5
    assert copies >= 5
