"""Loads as late as they can be."""

from hypothesis import given

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.partial_order.late_loads import is_load, with_loads_late
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.partial_order.test_justification import MODEST
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled


def test_loads_move_right_all_else_stays_and_the_plan_stays_valid() -> None:
    moved = 0

    @MODEST
    @given(problem=problems())
    def check_all(problem: Problem) -> None:
        nonlocal moved
        context, first = scheduled(problem)
        late = with_loads_late(context, first)
        loads = is_load(context, first.schedule)
        runs = first.schedule.cycles > 0
        assert (late.start[~loads & runs] == first.start[~loads & runs]).all()
        assert (late.start[loads] >= first.start[loads]).all()
        built = plan_of(context, late)
        assert check(problem, built) == ()
        assert built.claim.makespan == late.makespan == first.makespan
        moved += int((late.start[loads] > first.start[loads]).sum())

    check_all()
    assert moved >= 10
